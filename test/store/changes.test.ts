/** The log of changes: no write of a right stays out of it, by any program. */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { NO_CONDITIONS } from '../../src/model/conditions.ts'
import { openStore } from '../../src/store/open.ts'
import { newApproval, newExternalAuth, newUser, smallEstate } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

/** Tables with rights: the kind of object that a row is about, and the column of its id. */
const RIGHTS: Readonly<Record<string, readonly [kind: string, column?: string]>> = {
  users: ['user', 'id'],
  user_groups: ['user_group', 'id'],
  user_group_members: ['user', 'user_id'],
  user_group_timeframes: ['user_group', 'group_id'],
  timeframes: ['everyone'],
  authorizations: ['user_group', 'user_group_id'],
  target_groups: ['target_group', 'id'],
  target_group_sessions: ['service', 'service_id'],
  target_group_logins: ['service', 'service_id'],
  target_group_retrievals: ['account', 'account_id'],
  devices: ['device', 'id'],
  services: ['service', 'id'],
  domains: ['domain', 'id'],
  domain_authorities: ['domain', 'domain_id'],
  accounts: ['account', 'id'],
  account_credentials: ['account', 'account_id'],
  api_keys: ['api_key', 'id'],
  api_key_users: ['api_key', 'api_key_id'],
  api_key_groups: ['api_key', 'api_key_id'],
  profiles: ['everyone'],
  checkout_policies: ['everyone'],
  connection_policies: ['everyone'],
  approvals: ['approval', 'id'],
  approval_answers: ['approval', 'approval_id'],
  provider_sessions: ['user', 'user_id'],
  user_certificates: ['user', 'user_id'],
}

/** Tables on which no right of what runs rests, and why not. */
const OTHERS: Readonly<Record<string, string>> = {
  audit: 'tells what was',
  auth_domain_auths: 'asked at a sign-in; the persons of a changed domain are forgotten',
  auth_domain_mappings: 'applied to the persons, who are users',
  auth_domains: 'asked at a sign-in; the persons of a removed one are forgotten',
  authorization_approvers: 'looked up with each answer',
  changes: 'the log itself',
  checkouts: 'what is reviewed, and no session rests on one',
  external_auth_secrets: 'used at a sign-in',
  external_auths: 'asked at a sign-in',
  last_sign_ins: 'shown only',
  notification_secrets: 'of receivers of events',
  notification_target_groups: 'choose events',
  notification_user_groups: 'choose events',
  notifications: 'receivers of events',
  offline_proofs: 'asked at a sign-in',
  host_keys: 'judged when a session connects',
  idempotency_claims: 'answers that are being made',
  idempotency_keys: 'answers that were given',
  invitations: 'looked up when they are used',
  lockout_attempts: 'refuses new sign-ins, and ends none',
  password_change_policies: 'judged when a secret is changed',
  pending_secrets: 'of changes in progress: the account changes when one is promoted',
  lockouts: 'refuses new sign-ins, and ends none',
  person_mappings: 'applied to the persons, who are users',
  recovery_codes: 'asked at a sign-in',
  remembered_factors: 'asked at a sign-in',
  schema_migrations: 'of the program',
  scim_groups: 'applied to the persons, who are users',
  scim_members: 'applied to the persons, who are users',
  scim_tokens: 'looked up with each request',
  scim_users: 'applied to the persons, who are users',
  second_factors: 'asked at a sign-in',
  security_keys: 'asked at a sign-in',
  secret_jobs: 'changes in progress, and what was: the account changes with them',
  secret_schedules: 'when secrets are changed',
  sessions: 'tells what runs',
  settings: 'of the broker',
  sign_ins: 'looked up with each request',
  sqlite_sequence: 'of SQLite',
  tickets: 'looked up when they are used',
  uploads: 'of recordings',
  used_messages: 'asked at a sign-in',
}

let temp: TemporaryStore
beforeEach(async () => {
  temp = await temporaryStore()
})
afterEach(() => temp.remove())

/** Works on the database as another program would, whose foreign keys may be off. */
function elsewhere<T>(work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(temp.path, { enableForeignKeyConstraints: false })
  try {
    return work(database)
  } finally {
    database.close()
  }
}

const changesOf = async (work: () => unknown): Promise<string[]> => {
  const { last } = await temp.store.changes.kept()
  await work()
  const changes = await temp.store.changes.after(last, 1000)
  return changes.map(({ kind, object }) => `${kind} ${object}`.trim())
}

/** Puts a row into each table with rights. */
async function everything(): Promise<void> {
  const { store } = temp
  const estate = await smallEstate(store)
  const { user, userGroup, account, service, domain, targetGroup, authorization } = estate
  await store.targetGroups.update(targetGroup.id, {
    interactiveServiceIds: [service.id],
    passwordRetrievalAccountIds: [account.id],
  })
  await store.accounts.setSealedCredentials(account.id, [{ type: 'password', sealed: new Uint8Array(1) }])
  await store.domains.setSealedAuthority(domain.id, { sealed: new Uint8Array(1), publicKey: 'key' })
  const { id: timeframeId } = await store.timeframes.create({
    timeframeName: 'day',
    description: '',
    isOvertimable: false,
    timeZone: 'UTC',
    periods: [],
    isFactory: false,
  })
  await store.userGroups.update(userGroup.id, { timeframeIds: [timeframeId] })
  const actsFor = { userIds: [user.id], groupIds: [userGroup.id] }
  const chief = await store.users.create(newUser('chief', { profile: 'approver', groupIds: [userGroup.id] }))
  const conditions = { ...NO_CONDITIONS, approvalRequired: true, approverGroupIds: [userGroup.id] }
  await store.authorizations.update(authorization.id, { conditions })
  const asked = await store.approvals.create(newApproval(estate, 1), { ofUser: 10, all: 10 })
  const given = { userId: chief.id, userName: 'chief', approved: true, comment: '', time: 2, apiKey: '' }
  await store.approvals.answer(asked!.id, given)
  const auth = await store.externalAuths.create(newExternalAuth('login'))
  await store.providerSessions.begin(
    { userId: user.id, externalAuthId: auth.id, subject: 's', sid: '', begin: 0, ends: 1 },
    undefined,
    { ofUser: 1, all: 1 },
  )
  await store.userCertificates.add(
    { userId: user.id, serial: 1n, secretRevision: 0, fingerprint: 'f', address: 'a', begin: 0, end: 1 },
    1,
  )
  await store.apiKeys.create({ keyName: 'key', profile: 'user', ipSource: [], createdAt: 0, actsFor })
}

describe('the log of changes', () => {
  it('knows each table: whom its rows are about, or that no right rests on them', () => {
    const tables = elsewhere((database) =>
      database.prepare("select name from sqlite_master where type = 'table'").all(),
    )
    const names = tables.map(({ name }) => name).sort()
    expect(names).toEqual([...Object.keys(RIGHTS), ...Object.keys(OTHERS)].sort())
  })

  it.each(Object.entries(RIGHTS))('has each write of %s', async (table, [kind, column]) => {
    await everything()
    const row = elsewhere((database) => database.prepare(`select * from ${table} limit 1`).get())
    if (!row) throw new Error(`no row of ${table}`)
    const columns = Object.keys(row)
    const values = Object.values(row) as SQLInputValue[]
    const same = columns.map((name) => `${name} is ?`).join(' and ')
    const about = `${kind} ${column === undefined ? '' : row[column]}`.trim()
    const run = (text: string, ...more: SQLInputValue[]) =>
      changesOf(() => elsewhere((database) => database.prepare(text).run(...more, ...values)))
    const [first = ''] = columns
    expect(await run(`update ${table} set ${first} = ${first} where ${same}`)).toEqual([about])
    expect(await run(`delete from ${table} where ${same}`)).toEqual([about])
    const places = columns.map(() => '?').join(', ')
    expect(await run(`insert into ${table} (${columns.join(', ')}) values (${places})`)).toEqual([about])
    if (column === undefined) return
    const moved = await run(`update ${table} set ${column} = ? where ${same}`, 'ELSEWHERE')
    expect(moved).toEqual([about, `${kind} ELSEWHERE`])
  })

  it('has what goes with a removed object', async () => {
    const { store } = temp
    const { user, device } = await smallEstate(store)
    const changes = await changesOf(() => store.users.remove(user.id))
    // The user and the membership.
    expect(changes).toEqual([`user ${user.id}`, `user ${user.id}`])
    const own = await store.services.ofDevice(device.id)
    await elsewhereRemovingTargets()
    expect(await changesOf(() => store.devices.remove(device.id))).toContain(`service ${own[0]?.id}`)
  })

  const elsewhereRemovingTargets = async () =>
    elsewhere((database) => database.exec('delete from target_group_sessions; delete from accounts'))

  it('has nothing of a transaction that is undone', async () => {
    const { store } = temp
    const undone = store.transaction(async (inner) => {
      await inner.users.create(newUser('ops1'))
      throw new Error('no')
    })
    expect(await changesOf(() => expect(undone).rejects.toThrow('no'))).toEqual([])
  })

  it('has only the rows of a group that come or go', async () => {
    const { store } = temp
    const users = [await store.users.create(newUser('a')), await store.users.create(newUser('b'))]
    const [a, b] = users.map(({ id }) => id) as [string, string]
    const group = await store.userGroups.create({ groupName: 'ops', description: '', userIds: [a] })
    expect(await changesOf(() => store.userGroups.update(group.id, { userIds: [a, b] }))).toEqual([
      `user ${b}`,
    ])
    expect(await changesOf(() => store.userGroups.update(group.id, { userIds: [b] }))).toEqual([`user ${a}`])
    expect((await store.userGroups.find(group.id))?.userIds).toEqual([b])
    expect(await changesOf(() => store.userGroups.update(group.id, { userIds: [b] }))).toEqual([])
  })

  it('is read from a revision on, some at a time, and keeps the newest', async () => {
    const { store } = temp
    expect(await store.changes.kept()).toEqual({ first: 0, last: 0 })
    expect(await store.changes.removeOldest(0, 10)).toBe(0)
    const ids: string[] = []
    for (const name of ['a', 'b', 'c', 'd', 'e']) ids.push((await store.users.create(newUser(name))).id)
    const { first, last } = await store.changes.kept()
    expect(last - first).toBe(4)
    const [one, two] = await store.changes.after(first, 2)
    expect([one, two]).toMatchObject([{ kind: 'user', object: ids[1] }, { object: ids[2] }])
    expect(await store.changes.after(two?.revision ?? 0, 5)).toHaveLength(2)
    expect(await store.changes.after(last, 5)).toEqual([])
    expect(await store.changes.removeOldest(5, 10)).toBe(0)
    expect(await store.changes.removeOldest(2, 1)).toBe(1)
    expect(await store.changes.kept()).toEqual({ first: first + 1, last })
    expect(await store.changes.removeOldest(2, 10)).toBe(2)
    expect(await store.changes.kept()).toEqual({ first: first + 3, last })
    // A revision is not used twice, even if all rows are gone.
    elsewhere((database) => database.exec('delete from changes'))
    await store.users.create(newUser('f'))
    expect((await store.changes.kept()).first).toBe(last + 1)
  })

  it('is the same for another process', async () => {
    const other = await openStore({ path: temp.path })
    const changes = await changesOf(() => other.users.create(newUser('ops1')))
    await other.close()
    expect(changes).toEqual([`user ${(await temp.store.users.find('ops1'))?.id}`])
  })
})
