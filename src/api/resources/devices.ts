import { type Static, Type } from 'typebox'
import type { Device } from '../../model/objects.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { checkName, exact, name, partial, shown, text } from '../schema/fields.ts'

const deviceName = name('unique', 'srv1')
/** A host name (RFC 1123), an IPv4 or an IPv6 address; nothing that could be an option or a URL. */
const host = Type.String({
  minLength: 1,
  maxLength: 253,
  pattern: '^[A-Za-z0-9_:]([A-Za-z0-9._:-]*[A-Za-z0-9_.:])?$',
  description: 'address or host name',
  examples: ['10.0.0.5'],
})
const Create = exact({
  device_name: deviceName,
  host,
  description: Type.Optional(text('shown in the menu of targets')),
})
const Update = partial(Create)
const View = exact({ ...shown, device_name: deviceName, host, description: Type.String() })

export function deviceResource(context: ResourceContext) {
  const { store } = context.deps

  const changeOf = async (
    body: Static<typeof Update>,
    own?: Device,
  ): Promise<Partial<Omit<Device, 'id'>>> => {
    await checkName('device_name', body.device_name, own, store.devices, 'deviceName')
    return {
      ...(body.device_name !== undefined && { deviceName: body.device_name }),
      ...(body.host !== undefined && { host: body.host }),
      ...(body.description !== undefined && { description: body.description }),
    }
  }

  return resource({
    path: '/devices',
    type: 'device',
    title: 'Devices',
    description:
      'Machines, physical or virtual. Services, host keys and empty local domains go with their device.',
    create: {
      schema: Create,
      async plan(body) {
        const change = await changeOf(body)
        return () =>
          store.devices.create({ deviceName: body.device_name, host: body.host, description: '', ...change })
      },
    },
    update: {
      schema: Update,
      async plan(old, body) {
        const change = await changeOf(body, old)
        return () => store.devices.update(old.id, change, old)
      },
    },
    removeFrom: (old) => store.devices.remove(old.id, old),
    view: View,
    show: async (device) => ({
      device_name: device.deviceName,
      host: device.host,
      description: device.description,
    }),
    label: (device) => String(device['device_name']),
    secrets: [],
    list: (_request, page) => store.devices.list(page),
    find: (_request, ref) => store.devices.find(ref),
  })
}

export function registerDevices(app: Api, context: Context): void {
  registerCollection(app, context, deviceResource(context))
}
