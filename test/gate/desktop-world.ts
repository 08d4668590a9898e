/** A gate with one desktop, which ops1 may open: root@local:srv1:vnc, or root@local:srv1:rdp. */
import { AuditLog } from '../../src/audit/log.ts'
import type { OpenAnswer, OpenRequest, OpenSession } from '../../src/contract/gate.ts'
import { BrokerGate } from '../../src/gate/gate.ts'
import type { Basis } from '../../src/identity/basis.ts'
import { Identities } from '../../src/identity/chain.ts'
import { Lockout } from '../../src/identity/lockout.ts'
import { SecondFactors } from '../../src/identity/second-factor/second-factors.ts'
import { SecurityKeys } from '../../src/identity/second-factor/security-keys.ts'
import { type ConnectionPolicy, FACTORY_CONNECTION_POLICIES } from '../../src/model/objects.ts'
import { RDP_OPTIONS, type RdpOptions } from '../../src/model/rdp-options.ts'
import type { DesktopProtocol, Protocol, Right } from '../../src/model/rights.ts'
import { Secret } from '../../src/model/secret.ts'
import { VNC_OPTIONS, type VncOptions } from '../../src/model/vnc-options.ts'
import { openRecordingKeys, RecordingService } from '../../src/recording-service/service.ts'
import { openVault, type Vault } from '../../src/vault/vault.ts'
import { quickHasher } from '../identity/quick-hasher.ts'
import { type Estate, newService, smallEstate } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'
import { byPassword } from './grounds.ts'

export const SOURCE = { address: '192.0.2.7', port: 4711 }

export interface DesktopWorld<Options> {
  temporary: TemporaryStore
  /** The estate's service speaks SSH. */
  estate: Estate
  /** Id of the desktop's service, and its login string. */
  service: string
  login: string
  gate: BrokerGate
  vault: Vault
  identities: Identities
  factors: SecondFactors
  /** Milliseconds since the epoch; a test moves it. */
  clock: { now: number }
  /** Returns the basis of ops1's sign-ins. */
  basis(): Basis
  /** Signs in by password, at the desktop's front unless `by` names another; returns the token. */
  signIn(login?: string, by?: Protocol): Promise<string>
  open(more?: Partial<OpenRequest>): Promise<OpenAnswer>
  opened(): Promise<OpenSession>
  /** Changes the options of the built-in policy. */
  setPolicy(options: Partial<Options>): Promise<void>
  /** Returns the audited events, newest last: code and fields. */
  events(): Promise<[code: string, fields: Record<string, unknown>][]>
}

export type VncWorld = DesktopWorld<VncOptions>
export type RdpWorld = DesktopWorld<RdpOptions>

export function vncWorld(): Promise<VncWorld> {
  return desktopWorld('VNC', 5900, ['VNC', 'VNC_CLIPBOARD_UP'], (options) => ({
    vnc: { ...VNC_OPTIONS, ...options },
  }))
}

export function rdpWorld(): Promise<RdpWorld> {
  return desktopWorld('RDP', 3389, ['RDP', 'RDP_CLIPBOARD_UP'], (options) => ({
    rdp: { ...RDP_OPTIONS, ...options },
  }))
}

async function desktopWorld<Options>(
  protocol: DesktopProtocol,
  port: number,
  subprotocols: Right[],
  policyOf: (options: Partial<Options>) => Partial<ConnectionPolicy>,
): Promise<DesktopWorld<Options>> {
  const temporary = await temporaryStore()
  const { store } = temporary
  const estate = await smallEstate(store)
  const { id: service } = await store.services.create(
    newService(estate.device.id, { serviceName: protocol.toLowerCase(), protocol, port }),
  )
  await store.targetGroups.update(estate.targetGroup.id, {
    sessionAccounts: [{ accountId: estate.account.id, serviceId: service }],
  })
  await store.authorizations.update(estate.authorization.id, { subprotocols })
  const vault = await openVault(store, { file: `${temporary.path}.key` })
  await vault.setCredentials(estate.account.id, [{ type: 'password', password: Secret.of('screen') }])
  const clock = { now: Date.now() }
  const now = () => clock.now
  const keys = new SecurityKeys({ store, site: 'https://bastion.example.org', now })
  const factors = new SecondFactors({ store, vault, keys, now })
  const identities = new Identities(store.users, quickHasher(), new Lockout(), now, vault, undefined, factors)
  await identities.setPassword(estate.user.id, Secret.of('ops1 password'))
  const basis = byPassword((await store.users.find(estate.user.id))!, SOURCE.address)
  const recordings = new RecordingService({
    root: `${temporary.path}.recordings`,
    keys: await openRecordingKeys(store.settings, vault),
    recipients: [],
    brokerKey: true,
    minimumFree: 0,
  })
  await recordings.start()
  const audit = new AuditLog({ repository: store.audit, now })
  const drawer = {
    state: async () => [],
    feed: () => undefined,
    listen: () => undefined,
    forget: () => undefined,
  }
  const gate = new BrokerGate({ store, identities, vault, audit, recordings, drawer, now })
  const world: DesktopWorld<Options> = {
    temporary,
    estate,
    service,
    login: `ops1:root@srv1:${protocol.toLowerCase()}`,
    gate,
    vault,
    identities,
    factors,
    clock,
    basis: () => basis,
    async signIn(login = world.login, by = protocol) {
      const proof = { method: 'password', password: 'ops1 password' } as const
      const answer = await gate.authenticate({ protocol: by, source: SOURCE, login, proof })
      if (answer.result !== 'accepted') throw new Error(answer.result)
      return answer.identity.token
    },
    async open(more = {}) {
      const identity = more.identity ?? (await world.signIn())
      return await gate.open({ protocol, source: SOURCE, ...more, identity })
    },
    async opened() {
      const answer = await world.open()
      if (answer.result !== 'opened') throw new Error(JSON.stringify(answer))
      return answer.session
    },
    async setPolicy(options) {
      await store.connectionPolicies.update(FACTORY_CONNECTION_POLICIES[protocol], policyOf(options))
    },
    async events() {
      const rows = await store.audit.range(0, 1000)
      return rows.map(({ code, json }) => [code, JSON.parse(json).fields])
    },
  }
  return world
}
