/** Many running SSH sessions at a gate, each of its own user to its own device. */
import { AuditLog } from '../../src/audit/log.ts'
import type { GateNotice } from '../../src/contract/gate.ts'
import { BrokerGate } from '../../src/gate/gate.ts'
import type { AttemptCounter } from '../../src/identity/attempts.ts'
import { Identities } from '../../src/identity/chain.ts'
import { Lockout } from '../../src/identity/lockout.ts'
import { Secret } from '../../src/model/secret.ts'
import { openRecordingKeys, RecordingService } from '../../src/recording-service/service.ts'
import type { Store } from '../../src/store/store.ts'
import { openVault } from '../../src/vault/vault.ts'
import { opensshKey, signedData } from '../identity/keys.ts'
import { quickHasher } from '../identity/quick-hasher.ts'
import { isOnPostgres } from '../peers/databases.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

/** Sessions that open at a time. */
const TOGETHER = 32

export interface Place {
  temporary: TemporaryStore
  audit: AuditLog
  gate: BrokerGate
  /** Opens a session of the user of that number. Returns its id. */
  open(number: number): Promise<string>
}

export interface Crowd extends Place {
  /** The session of each user, by the user's number. */
  sessions: string[]
  /** Sessions that were told to end. */
  stopped: Set<string>
}

const KINDS = {
  user: '0A',
  group: '0B',
  device: '0C',
  service: '0D',
  domain: '0E',
  account: '0F',
  grant: '0G',
}

/** Returns the id of the object of that number. */
export const idOf = (kind: keyof typeof KINDS, number = 0): string =>
  `${KINDS[kind]}${String(number).padStart(24, '0')}`

export interface Options {
  groups?: number
  lockout?: (store: Store) => AttemptCounter
}

/**
 * Opens `count` sessions. Users and targets are numbered from 0. The user group of number g holds the users n with
 * n % groups = g, the target group of that number their targets, and the grant of that number joins them.
 */
export async function crowd(count: number, options: Options = {}): Promise<Crowd> {
  const place = await crowdPlace(count, options)
  const { gate, open } = place
  const stopped = new Set<string>()
  gate.onNotice((notice: GateNotice) => {
    if (notice.type === 'stop') stopped.add(notice.session)
  })
  const sessions: string[] = []
  for (let begin = 0; begin < count; begin += TOGETHER) {
    const some = Array.from({ length: Math.min(TOGETHER, count - begin) }, (_, at) => open(begin + at))
    sessions.push(...(await Promise.all(some)))
  }
  await gate.review()
  return { ...place, sessions, stopped }
}

/** The users and targets of a crowd, without a session. */
export async function crowdPlace(
  count: number,
  { groups = 1, lockout = () => new Lockout() }: Options = {},
): Promise<Place> {
  const temporary = await temporaryStore()
  const { store, path } = temporary
  const key = opensshKey('ed25519')
  await fill(temporary, count, groups, key.line)
  const vault = await openVault(store, { file: `${path}.key` })
  const identities = new Identities(store.users, quickHasher(), lockout(store), Date.now, vault)
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
  const given = new Set<number>()
  const open = async (number: number): Promise<string> => {
    if (!given.has(number)) {
      given.add(number)
      const credentials = [{ type: 'password', password: Secret.of('shell') }] as const
      await vault.setCredentials(idOf('account', number), credentials)
    }
    const login = `ops${number}+root@srv${number}`
    const data = signedData(login, 'ssh-ed25519', key.blob)
    const signed = { data, signature: key.sign(data, 'ssh-ed25519') }
    const proof = { method: 'publickey', key: key.blob, signed } as const
    const from = {
      protocol: 'SSH',
      source: { address: '192.0.2.7', port: 1024 + (number % 60_000) },
    } as const
    const answer = await gate.authenticate({ ...from, login, proof })
    if (answer.result !== 'accepted') throw new Error(answer.result)
    const opened = await gate.open({ ...from, identity: answer.identity.token })
    if (opened.result !== 'opened') throw new Error(JSON.stringify(opened))
    return opened.session.id
  }
  return { temporary, audit, gate, open }
}

/** Writes into the tables directly: the repositories would need minutes. */
async function fill({ sql }: TemporaryStore, count: number, groups: number, key: string): Promise<void> {
  // Both engines know these: printf is SQLite's, lpad PostgreSQL's.
  const padded = (text: string) => `substr('${'0'.repeat(24)}' || ${text}, length('' || ${text}) + 1)`
  const id = (kind: keyof typeof KINDS) => `'${KINDS[kind]}' || ${padded('n')}`
  const upTo = (end: number) =>
    `with recursive n (n) as (select 0 union all select n + 1 from n where n < ${end - 1})`
  const [numbers, each] = [upTo(count), upTo(groups)]
  const group = `'${KINDS.group}' || ${padded(`(n % ${groups})`)}`
  await sql(`begin;
    insert into user_groups (id, group_name, name_key, description)
      ${each} select ${group}, 'ug' || n, 'ug' || n, '' from n;
    insert into target_groups (id, group_name, name_key, description)
      ${each} select ${group}, 'tg' || n, 'tg' || n, '' from n;
    insert into authorizations (id, user_group_id, target_group_id, description, authorize_sessions,
        authorize_password_retrieval, subprotocols, is_recorded)
      ${each} select ${id('grant')}, ${group}, ${group}, '', 1, 0, '["SSH_SHELL"]', 0 from n;
    insert into users (id, user_name, name_key, display_name, email, profile, user_auths, ssh_public_keys,
        is_disabled, ip_source)
      ${numbers} select ${id('user')}, 'ops' || n, 'ops' || n, '', '', 'user', '["local_sshkey"]', '["${key}"]',
        0, '[]' from n;
    insert into user_group_members (group_id, user_id) ${numbers} select ${group}, ${id('user')} from n;
    insert into devices (id, device_name, name_key, host, description)
      ${numbers} select ${id('device')}, 'srv' || n, 'srv' || n, '192.0.2.1', '' from n;
    insert into services (id, device_id, service_name, name_key, protocol, port, subprotocols, host_key_policy)
      ${numbers} select ${id('service')}, ${id('device')}, 'ssh', 'ssh', 'SSH', 22, '[]', 'first_sight' from n;
    insert into domains (id, domain_name, name_key, description, device_id)
      ${numbers} select ${id('domain')}, 'local', 'local', '', ${id('device')} from n;
    insert into accounts (id, account_name, name_key, account_login, domain_id, description)
      ${numbers} select ${id('account')}, 'root', 'root', 'root', ${id('domain')}, '' from n;
    insert into target_group_sessions (target_group_id, account_id, service_id)
      ${numbers} select ${group}, ${id('account')}, ${id('service')} from n;
    commit`)
  // As a server does by itself within a minute: until then it would read all targets for each.
  if (isOnPostgres()) await sql('analyze')
}
