import { isIP } from 'node:net'
import { type Static, Type } from 'typebox'
import { objectNameError } from '../../model/names.ts'
import {
  type Device,
  FACTORY_CONNECTION_POLICIES,
  HOST_KEY_POLICIES,
  hostKeyPolicyFlaw,
  type Service,
} from '../../model/objects.ts'
import { isTerminalProtocol, PROTOCOLS } from '../../model/rights.ts'
import type { ApiRequest } from '../access/caller.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { deviceOf } from '../collection/parents.ts'
import { referred, serviceOf } from '../collection/references.ts'
import { resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { fieldError } from '../http/errors.ts'
import { HOST_NAME } from '../schema/external-auth-options.ts'
import { check, exact, name, oneOf, partial, shown } from '../schema/fields.ts'
import { rightsIn, rightsOf } from '../schema/rights.ts'

const serviceName = name('unique on its device', 'ssh')
const protocol = oneOf(PROTOCOLS, 'what the device speaks there')
const port = Type.Integer({ minimum: 1, maximum: 65535 })
const subprotocols = rightsIn('what the service allows at most; empty: whatever authorizations grant')
const connectionPolicy = name('of the same protocol; the one from the factory is called like it', 'SSH')
const hostKeyPolicy = Type.Union([oneOf(HOST_KEY_POLICIES, 'policy'), Type.Null()], {
  description: 'goes before what the connection policy says; null, the default: as that says',
})
const kerberosHost = Type.Union([Type.String({ minLength: 1, maxLength: 253 }), Type.Null()], {
  description: "RDP: name under which KDCs know the service (TERMSRV/NAME); null: the device's host",
})
const Create = exact({
  service_name: serviceName,
  protocol,
  port: Type.Optional(port),
  subprotocols: Type.Optional(subprotocols),
  connection_policy: Type.Optional(connectionPolicy),
  host_key_policy: Type.Optional(hostKeyPolicy),
  kerberos_host: Type.Optional(kerberosHost),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  service_name: serviceName,
  device: Type.String(),
  protocol,
  port,
  subprotocols,
  connection_policy: connectionPolicy,
  host_key_policy: hostKeyPolicy,
  kerberos_host: kerberosHost,
})
const labelOf = (device: unknown, service: unknown) => `${device}:${service}`
const DEFAULT_PORTS = { SSH: 22, TELNET: 23, RLOGIN: 513, VNC: 5900, RDP: 3389 } as const

export function serviceResource(context: ResourceContext) {
  const { store } = context.deps

  const changeOf = async (
    device: Device,
    body: Static<typeof Update>,
    own?: Service,
  ): Promise<Partial<Omit<Service, 'id'>>> => {
    if (body.service_name !== undefined) {
      check('service_name', objectNameError(body.service_name))
      const other = await serviceOf(store, device, body.service_name)
      if (other && other.id !== own?.id)
        throw fieldError(
          'duplicate',
          'service_name',
          `${device.deviceName} has a service "${other.serviceName}"`,
        )
    }
    const protocol = body.protocol ?? own?.protocol
    const connectionPolicyId =
      body.connection_policy === undefined
        ? own?.connectionPolicyId
        : (await referred(store.connectionPolicies, 'connection_policy', body.connection_policy)).id
    const policy = connectionPolicyId && (await store.connectionPolicies.find(connectionPolicyId))
    if (policy && policy.protocol !== protocol) {
      const message = `"${policy.policyName}" is for ${policy.protocol}, the service speaks ${protocol}`
      throw fieldError('invalid_field', 'connection_policy', message)
    }
    if (protocol !== undefined && isTerminalProtocol(protocol) && body.host_key_policy != null) {
      throw fieldError('invalid_field', 'host_key_policy', `${protocol} has no host keys`)
    }
    const hostKeyPolicy = body.host_key_policy === undefined ? own?.hostKeyPolicy : body.host_key_policy
    if (protocol) check('host_key_policy', hostKeyPolicyFlaw(protocol, hostKeyPolicy ?? undefined))
    if (body.kerberos_host != null) {
      const { kerberos_host } = body
      const isName = HOST_NAME.test(kerberos_host) && isIP(kerberos_host) === 0
      check('kerberos_host', isName ? undefined : 'expected the name of a host, such as win1.corp.example')
      check('kerberos_host', protocol === 'RDP' ? undefined : `${protocol} uses no Kerberos at targets`)
    }
    return {
      ...(connectionPolicyId !== undefined && { connectionPolicyId }),
      ...(body.service_name !== undefined && { serviceName: body.service_name }),
      ...(body.protocol !== undefined && { protocol: body.protocol }),
      ...(body.port !== undefined && { port: body.port }),
      ...(body.subprotocols !== undefined && { subprotocols: rightsOf(body.subprotocols) }),
      ...(body.host_key_policy !== undefined && { hostKeyPolicy: body.host_key_policy ?? undefined }),
      ...(body.kerberos_host !== undefined && { kerberosHost: body.kerberos_host ?? undefined }),
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
        const plan = () =>
          store.services.create({
            deviceId: device.id,
            serviceName: body.service_name,
            protocol: body.protocol,
            port: DEFAULT_PORTS[body.protocol],
            subprotocols: [],
            ...change,
          })
        return Object.assign(plan, { label: labelOf(device.deviceName, body.service_name) })
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        const change = await changeOf(await parent(request), body, old)
        return () => store.services.update(old.id, change, old)
      },
    },
    removeFrom: (old) => store.services.remove(old.id, old),
    view: View,
    show: async (service, read) => ({
      service_name: service.serviceName,
      device: await read.device(service.deviceId),
      protocol: service.protocol,
      port: service.port,
      subprotocols: service.subprotocols,
      connection_policy: await read.connectionPolicy(
        service.connectionPolicyId ?? FACTORY_CONNECTION_POLICIES[service.protocol],
      ),
      host_key_policy: service.hostKeyPolicy ?? null,
      kerberos_host: service.kerberosHost ?? null,
    }),
    parents: ({ deviceId }) => ({ device: deviceId }),
    label: (service) => labelOf(service['device'], service['service_name']),
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
