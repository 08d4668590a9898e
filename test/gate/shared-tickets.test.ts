/** Tickets of several brokers on one database. */
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { MAX_TICKETS_PER_USER, type Ticket, Tickets } from '../../src/gate/tickets.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { loadMasterKey } from '../../src/vault/key-file.ts'
import { newMasterKey } from '../../src/vault/master-key.ts'
import { renewDataKey } from '../../src/vault/renewal.ts'
import { openVault } from '../../src/vault/vault.ts'
import { smallEstate } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

const ARRIVAL = { protocol: 'VNC', address: '192.0.2.7' } as const
const TARGET = { account: 'root', domain: 'local', device: 'srv1', service: 'vnc' }

let temp: TemporaryStore
let other: Store
let first: Tickets
let second: Tickets
let userId: string
beforeEach(async () => {
  temp = await temporaryStore()
  other = await openStore({ path: temp.path })
  const key = { file: `${temp.path}.key` }
  first = new Tickets(temp.store.tickets, await openVault(temp.store, key))
  second = new Tickets(other.tickets, await openVault(other, key))
  userId = (await smallEstate(temp.store)).user.id
})
afterEach(async () => {
  await other.close()
  await temp.remove()
})

async function issued(by = first, more: Partial<Ticket> = {}) {
  const basis = { userId, address: ARRIVAL.address, proof: { method: 'password', revision: 1 } } as const
  const ticket = { ...ARRIVAL, userId, user: 'ops1', basis, expires: 1000, target: TARGET, ...more }
  const answer = await by.issue(ticket, 0)
  if (!answer) throw new Error('too many')
  return { id: answer.id, password: answer.password.revealText(), ticket }
}

test('a ticket of one broker is one of the other, with all that it rests on', async () => {
  const { id, password, ticket } = await issued()
  const login = { user: 'ops1', target: TARGET }
  expect(await second.byPassword(ARRIVAL, login, password, 999)).toBe(id)
  expect(await second.byPassword(ARRIVAL, login, password, 1000)).toBeUndefined()
  expect(await second.take(id, 999)).toEqual(ticket)
  expect(await first.byPassword(ARRIVAL, login, password, 999)).toBeUndefined()
})

test('of two brokers that take one at the same moment one gets it', async () => {
  for (let n = 0; n < 30; n++) {
    const { id } = await issued(n % 2 ? first : second)
    const taken = await Promise.all([first.take(id, 1), second.take(id, 1), first.take(id, 1)])
    expect(taken.filter(Boolean)).toHaveLength(1)
  }
})

test('those of one user are counted over both', async () => {
  for (let n = 0; n < MAX_TICKETS_PER_USER; n++) await issued(n % 2 ? first : second)
  await expect(issued(first)).rejects.toThrow('too many')
  await expect(issued(second)).rejects.toThrow('too many')
  expect(await second.waiting(999)).toHaveLength(MAX_TICKETS_PER_USER)
  expect(await second.waiting(1000)).toHaveLength(0)
})

test('the stored row does not show the password, and does not open in another row', async () => {
  const { id, password } = await issued()
  const { id: victim } = await issued()
  const database = new DatabaseSync(temp.path)
  const rows = database.prepare('select * from tickets').all()
  for (const row of rows) {
    for (const value of Object.values(row))
      expect(Buffer.from(typeof value === 'number' ? '' : (value as string)).includes(password)).toBe(false)
  }
  database
    .prepare('update tickets set sealed = (select sealed from tickets where id = ?) where id = ?')
    .run(id, victim)
  database.close()
  await expect(first.byPassword(ARRIVAL, { user: 'ops1' }, password, 1)).rejects.toThrow(
    'changed or belongs elsewhere',
  )
})

test('a ticket outlives a new data key', async () => {
  const { id, password } = await issued()
  const old = await loadMasterKey({ file: `${temp.path}.key` }, temp.store.settings)
  const renewed = await temp.store.transaction((within) => renewDataKey(within, old, newMasterKey()))
  const tickets = new Tickets(temp.store.tickets, renewed)
  expect(await tickets.byPassword(ARRIVAL, { user: 'ops1' }, password, 1)).toBe(id)
})
