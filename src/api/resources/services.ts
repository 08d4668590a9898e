import { type Static, Type } from 'typebox'
import { nameKey, objectNameError } from '../../model/names.ts'
import { type Device, HOST_KEY_POLICIES, type Service } from '../../model/objects.ts'
import { PROTOCOLS } from '../../model/rights.ts'
import type { ApiRequest } from '../caller.ts'
import { registerCollection, resource } from '../collection.ts'
import type { Context } from '../context.ts'
import type { Api } from '../deps.ts'
import { fieldError } from '../errors.ts'
import { check, exact, name, oneOf, partial, shown } from '../fields.ts'
import { deviceOf } from '../parents.ts'
import { serviceOf } from '../references.ts'
import { rightsIn, rightsOf } from '../rights.ts'

const serviceName = name('unique on its device', 'ssh')
const protocol = oneOf(PROTOCOLS, 'what the device speaks there')
const port = Type.Integer({ minimum: 1, maximum: 65535 })
const subprotocols = rightsIn('what the service allows at most; empty: whatever authorizations grant')
const policy = oneOf(
  HOST_KEY_POLICIES,
  'a host key that was not seen before: pin it at `first_sight`, or `pinned`: refuse until it is accepted at /hostkeys',
)
const Create = exact({
  service_name: serviceName,
  protocol,
  port: Type.Optional(port),
  subprotocols: Type.Optional(subprotocols),
  host_key_policy: Type.Optional(policy),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  service_name: serviceName,
  device: Type.String(),
  protocol,
  port,
  subprotocols,
  host_key_policy: policy,
})
const DEFAULT_PORTS = { SSH: 22 } as const

export function serviceResource(context: Context) {
  const { store } = context.deps

  const changeOf = async (
    device: Device,
    body: Static<typeof Update>,
    own?: Service,
  ): Promise<Partial<Omit<Service, 'id'>>> => {
    if (body.service_name !== undefined) {
      check('service_name', objectNameError(body.service_name))
      const taken = (await store.services.ofDevice(device.id)).find(
        (other) => other.id !== own?.id && nameKey(other.serviceName) === nameKey(body.service_name ?? ''),
      )
      if (taken)
        throw fieldError(
          'duplicate',
          'service_name',
          `${device.deviceName} has a service "${taken.serviceName}"`,
        )
    }
    return {
      ...(body.service_name !== undefined && { serviceName: body.service_name }),
      ...(body.protocol !== undefined && { protocol: body.protocol }),
      ...(body.port !== undefined && { port: body.port }),
      ...(body.subprotocols !== undefined && { subprotocols: rightsOf(body.subprotocols) }),
      ...(body.host_key_policy !== undefined && { hostKeyPolicy: body.host_key_policy }),
    }
  }
  const parent = (request: ApiRequest) => deviceOf(store, request)

  return resource({
    path: '/devices/:device/services',
    type: 'service',
    title: 'Services',
    description: 'What a device offers: a protocol at a port.',
    create: {
      schema: Create,
      async plan(body, request) {
        const device = await parent(request)
        const change = await changeOf(device, body)
        return () =>
          store.services.create({
            deviceId: device.id,
            serviceName: body.service_name,
            protocol: body.protocol,
            port: DEFAULT_PORTS[body.protocol],
            subprotocols: [],
            hostKeyPolicy: 'first_sight',
            ...change,
          })
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        const change = await changeOf(await parent(request), body, old)
        return () => store.services.update(old.id, change)
      },
    },
    removeFrom: (old) => store.services.remove(old.id),
    view: View,
    show: async (service, read) => ({
      service_name: service.serviceName,
      device: await read.device(service.deviceId),
      protocol: service.protocol,
      port: service.port,
      subprotocols: service.subprotocols,
      host_key_policy: service.hostKeyPolicy,
    }),
    label: (service) => String(service['service_name']),
    secrets: [],
    async list(request, page) {
      return store.services.list(page, (await parent(request)).id)
    },
    find: async (request, ref) => serviceOf(store, await parent(request), ref),
  })
}

export function registerServices(app: Api, context: Context): void {
  registerCollection(app, context, serviceResource(context))
}
