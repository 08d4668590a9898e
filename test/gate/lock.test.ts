/** The lock of a checkout policy: of several users at the same moment, one gets the account. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { AuditLog } from '../../src/audit/log.ts'
import { BrokerGate } from '../../src/gate/gate.ts'
import { Identities } from '../../src/identity/chain.ts'
import { Lockout } from '../../src/identity/lockout.ts'
import { DEFAULT_CHECKOUT_POLICY, type User } from '../../src/model/objects.ts'
import { Secret } from '../../src/model/secret.ts'
import { openRecordingKeys, RecordingService } from '../../src/recording-service/service.ts'
import { Checkouts } from '../../src/vault/checkout.ts'
import { openVault } from '../../src/vault/vault.ts'
import { quickHasher } from '../identity/quick-hasher.ts'
import { type Estate, newUser, smallEstate } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

const SOURCE = { address: '192.0.2.7', port: 4711 }

let temporary: TemporaryStore
let estate: Estate
let other: User
let gate: BrokerGate
let checkouts: Checkouts

beforeEach(async () => {
  temporary = await temporaryStore()
  const { store } = temporary
  estate = await smallEstate(store)
  const vault = await openVault(store, { file: `${temporary.path}.key` })
  await vault.setCredentials(estate.account.id, [{ type: 'password', password: Secret.of('root password') }])
  await store.checkoutPolicies.update(DEFAULT_CHECKOUT_POLICY, { enableLock: true })
  const identities = new Identities(store.users, quickHasher(), new Lockout(), Date.now, vault)
  other = await store.users.create(newUser('ops2', { groupIds: [estate.userGroup.id] }))
  for (const user of [estate.user, other]) await identities.setPassword(user.id, Secret.of('password'))
  const recordings = new RecordingService({
    root: `${temporary.path}.recordings`,
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
  gate = new BrokerGate({ store, identities, vault, audit, recordings, drawer, now: Date.now })
  checkouts = new Checkouts(store, vault, gate)
})
afterEach(() => temporary.remove())

async function identity(user: string): Promise<string> {
  const proof = { method: 'password' as const, password: 'password' }
  const answer = await gate.authenticate({
    protocol: 'SSH',
    source: SOURCE,
    login: `${user}:root@srv1`,
    proof,
  })
  if (answer.result !== 'accepted') throw new Error(answer.result)
  return answer.identity.token
}
const open = (token: string) => gate.open({ identity: token, protocol: 'SSH', source: SOURCE })
const checkout = (user: User) =>
  checkouts.checkout(user, estate.account, Date.now).then(
    () => 'out',
    (error: { reason: string }) => error.reason,
  )

test('one of two users who open at the same moment; the same user twice', async () => {
  const tokens = [await identity('ops1'), await identity('ops2')]
  const answers = await Promise.all(tokens.map(open))
  expect(answers.map(({ result }) => result).toSorted()).toEqual(['denied', 'opened'])
  const first = answers.findIndex(({ result }) => result === 'opened')
  expect(await open(await identity(['ops1', 'ops2'][first]!))).toMatchObject({ result: 'opened' })
  expect(await open(tokens[1 - first]!)).toMatchObject({
    result: 'denied',
    message: expect.stringContaining('somebody else is using this account'),
  })
})

test('a session or a checkout, at whatever moment the one comes after the other', async () => {
  for (let turns = 0; turns < 40; turns++) {
    const token = await identity('ops1')
    const opening = open(token)
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
    const [answer, taken] = await Promise.all([opening, checkout(other)])
    const has = [answer.result === 'opened', taken === 'out']
    expect(has.filter((one) => one).length, `${turns}: ${answer.result}, ${taken}`).toBeLessThanOrEqual(1)
    expect(await temporary.store.checkouts.active(estate.account.id, Date.now())).toHaveLength(Number(has[1]))
    if (answer.result === 'opened') {
      const nothing = { bytesIn: 0, bytesOut: 0, rightsUsed: [] }
      await gate.close({ session: answer.session.id, result: 'success', ...nothing })
    }
    for (const { id } of await temporary.store.checkouts.active(estate.account.id, Date.now())) {
      await temporary.store.checkouts.end(id, Date.now())
    }
  }
})

test('a checkout that is out, until it is taken back', async () => {
  const { checkoutId } = await checkouts.checkout(other, estate.account, Date.now)
  expect(await open(await identity('ops1'))).toMatchObject({ result: 'denied' })
  const forced = { by: 'admin', comment: 'left the company' }
  await temporary.store.checkouts.end(checkoutId, Date.now(), forced)
  expect(await open(await identity('ops1'))).toMatchObject({ result: 'opened' })
})

test('nobody is kept away by a session that was not opened after all', async () => {
  const token = await identity('ops1')
  await temporary.store.accounts.setSealedCredentials(estate.account.id, [])
  expect(await open(token)).toMatchObject({
    result: 'denied',
    message: expect.stringContaining('no credential is stored'),
  })
  expect(gate.holdFor(estate.account.id, other.id)).toBe(false)
})

test('a session in a broker that this one has replaced holds its account too, until it ends', async () => {
  const kill = async () => true
  const others = { suspend: async () => true, release: async () => 'released' as const }
  gate.elsewhere.set('old', {
    id: 'old',
    userId: estate.user.id,
    accountId: estate.account.id,
    kill,
    ...others,
  })
  expect(gate.holdFor(estate.account.id, other.id)).toBe(true)
  expect(await open(await identity('ops2'))).toMatchObject({
    result: 'denied',
    message: expect.stringContaining('somebody else is using this account'),
  })
  expect(await checkout(other)).not.toBe('out')
  expect(await gate.kill('old', 'enough', 'admin')).toBe(true)
  expect(await gate.kill('none', 'enough', 'admin')).toBe(false)
  expect(gate.watchRefusal('old')).toBe('runs_elsewhere')
  gate.elsewhere.delete('old')
  expect(await open(await identity('ops2'))).toMatchObject({ result: 'opened' })
})

test('a drained gate opens nothing, and waits for the session that is being opened', async () => {
  const tokens = [await identity('ops1'), await identity('ops1')]
  const opening = open(tokens[0]!)
  await gate.drain('the bastion is being replaced')
  expect(gate.running).toBe(1)
  expect(await opening).toMatchObject({ result: 'opened' })
  expect(await open(tokens[1]!)).toMatchObject({
    result: 'denied',
    message: 'the bastion is being replaced',
  })
})
