/** A real gate with two users who may each open a target of their own, and what a worker does with it. */
import { GateFile } from '../../proxies/session/gate-file.ts'
import { RecordingWriter } from '../../recordings/container/writer.ts'
import { AuditLog } from '../../src/audit/log.ts'
import type { Gate, OpenSession, Source } from '../../src/contract/gate.ts'
import { BrokerGate } from '../../src/gate/gate.ts'
import { Identities } from '../../src/identity/chain.ts'
import { Lockout } from '../../src/identity/lockout.ts'
import { Secret } from '../../src/model/secret.ts'
import { openRecordingKeys, RecordingService } from '../../src/recording-service/service.ts'
import type { Store } from '../../src/store/store.ts'
import { openVault } from '../../src/vault/vault.ts'
import { quickHasher } from '../identity/quick-hasher.ts'
import { newService, newUser, smallEstate } from '../store/fixture.ts'
import { temporaryStore } from '../store/temp.ts'

export const SOURCE: Source = { address: '192.0.2.7', port: 4711 }
export const OTHER_SOURCE: Source = { address: '192.0.2.8', port: 4712 }

/** The blob of an Ed25519 host key: at first sight any is accepted. */
export const HOST_KEY = Buffer.concat([
  Buffer.from([0, 0, 0, 11]),
  Buffer.from('ssh-ed25519'),
  Buffer.from([0, 0, 0, 32]),
  Buffer.alloc(32, 7),
])

export interface GateWorld {
  store: Store
  gate: BrokerGate
  recordings: RecordingService
  /** The account of ops1's target. */
  accountId: string
  /** Path of the database file. */
  path: string
  /** Path of the master key. */
  keyFile: string
  /** Returns the codes of all audit events. */
  codes(): Promise<string[]>
  remove(): Promise<void>
}

/** `ops1` may open root@local:srv1:ssh, `ops2` root@local:srv2:ssh; their passwords are `ops1 password` and so on. */
export async function gateWorld(): Promise<GateWorld> {
  const temporary = await temporaryStore()
  const { store, path } = temporary
  const { user, account } = await smallEstate(store)
  const other = await secondUser(store)
  const keyFile = `${path}.key`
  const vault = await openVault(store, { file: keyFile })
  for (const [id, password] of [
    [account.id, 'root password'],
    [other.accountId, 'other password'],
  ] as const) {
    await vault.setCredentials(id, [{ type: 'password', password: Secret.of(password) }])
  }
  const identities = new Identities(store.users, quickHasher(), new Lockout(), Date.now, vault)
  await identities.setPassword(user.id, Secret.of('ops1 password'))
  await identities.setPassword(other.userId, Secret.of('ops2 password'))
  const recordings = new RecordingService({
    root: `${path}.recordings`,
    keys: await openRecordingKeys(store.settings, vault),
    recipients: [],
    brokerKey: true,
    minimumFree: 0,
  })
  await recordings.start()
  const audit = new AuditLog({ repository: store.audit, now: Date.now })
  const drawer = {
    state: async () => [],
    feed: () => undefined,
    listen: () => undefined,
    forget: () => undefined,
  }
  const gate = new BrokerGate({ store, identities, vault, audit, recordings, drawer, now: Date.now })
  return {
    store,
    gate,
    recordings,
    accountId: account.id,
    path,
    keyFile,
    codes: async () => (await store.audit.range(0, 10_000)).map(({ code }) => code),
    remove: () => temporary.remove(),
  }
}

async function secondUser(store: Store): Promise<{ userId: string; accountId: string }> {
  const group = await store.userGroups.create({ groupName: 'others', description: '', userIds: [] })
  const user = await store.users.create(newUser('ops2', { groupIds: [group.id] }))
  const device = await store.devices.create({ deviceName: 'srv2', host: '192.0.2.2', description: '' })
  const service = await store.services.create(newService(device.id))
  const domain = await store.domains.create({ domainName: 'local', description: '', deviceId: device.id })
  const account = await store.accounts.create({
    accountName: 'root',
    accountLogin: 'root',
    domainId: domain.id,
    description: '',
    credentialTypes: [],
  })
  const targetGroup = await store.targetGroups.create({
    groupName: 'others',
    description: '',
    sessionAccounts: [{ accountId: account.id, serviceId: service.id }],
    interactiveServiceIds: [],
    mappingServiceIds: [],
    passwordRetrievalAccountIds: [],
  })
  await store.authorizations.create({
    userGroupId: group.id,
    targetGroupId: targetGroup.id,
    description: '',
    authorizeSessions: true,
    authorizePasswordRetrieval: true,
    subprotocols: ['SSH_SHELL'],
    isRecorded: true,
    recordingMode: 'standard',
  })
  return { userId: user.id, accountId: account.id }
}

/** Writes the session's recording as a worker does. */
export function writing(gate: Gate, { id, recording }: OpenSession): Promise<RecordingWriter> {
  return RecordingWriter.open(recording!, {
    create: (first) => GateFile.create(gate, id, first),
    sign: (statement) => gate.sign({ session: id, statement }),
    clock: { now: Date.now, monotonic: () => process.hrtime.bigint() / 1000n },
    onFailure: () => undefined,
  })
}
