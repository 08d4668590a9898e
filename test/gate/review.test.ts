/** Reviews that let others work in between. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { GateNotice } from '../../src/contract/gate.ts'
import { Withdrawals } from '../../src/gate/withdrawals.ts'
import { type VncWorld, vncWorld } from './desktop-world.ts'

let world: VncWorld
let notices: GateNotice[]
beforeEach(async () => {
  world = await vncWorld()
  notices = []
  world.gate.onNotice((notice) => notices.push(notice))
})
afterEach(() => world.temporary.remove())

/** Keeps the thread busy for longer than the slice of a review. */
function burn(): void {
  for (const until = performance.now() + 6; performance.now() < until; );
}

test('let waiting work run after each slice, and judge all the same', async () => {
  const order: string[] = []
  const withdrawals = new Withdrawals()
  await withdrawals.each([1, 2, 3], async (one) => {
    order.push(`judged ${one}`)
    if (one === 1) setImmediate(() => order.push('other work'))
    burn()
    return undefined
  })
  expect(order).toEqual(['judged 1', 'other work', 'judged 2', 'judged 3'])
})

test('catch a right that is removed in the middle, from a session that was passed already', async () => {
  const { store } = world.temporary
  const { id } = await world.opened()
  const { grants } = store.access
  let second: Promise<void> | undefined
  store.access.grants = async (...asked) => {
    const rows = await grants(...asked)
    if (second) return rows
    // The first review has read the rights; they change before it is done, as its slices allow.
    await store.authorizations.update(world.estate.authorization.id, { authorizeSessions: false })
    second = world.gate.review()
    return rows
  }
  await world.gate.review()
  await second
  expect(notices).toEqual([
    { type: 'stop', session: id, reason: 'the authorization for this target is gone' },
  ])
})

test('see a session that was opened meanwhile', async () => {
  const { store } = world.temporary
  const first = await world.opened()
  const { some } = store.users
  let meanwhile: string | undefined
  let second: Promise<void> | undefined
  store.users.some = async (ids) => {
    const users = await some(ids)
    if (second) return users
    second = Promise.resolve()
    meanwhile = (await world.opened()).id
    await store.users.update(world.estate.user.id, { isDisabled: true })
    second = world.gate.review()
    return users
  }
  await world.gate.review()
  await second
  const stopped = notices.flatMap((notice) => (notice.type === 'stop' ? [notice.session] : []))
  expect(stopped).toEqual(expect.arrayContaining([first.id, meanwhile]))
})
