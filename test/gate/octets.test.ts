/** Octets of running sessions, as the gate asks their proxies for them. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { GateNotice } from '../../src/contract/gate.ts'
import { type VncWorld, vncWorld } from './desktop-world.ts'

let world: VncWorld
let notices: GateNotice[]
beforeEach(async () => {
  world = await vncWorld()
  notices = []
  world.gate.onNotice((notice) => notices.push(notice))
})
afterEach(() => world.temporary.remove())

test('are those of the answers; one that was not asked for, or has closed, is left out', async () => {
  expect(await world.gate.octets()).toEqual(new Map())
  const [one, other] = [(await world.opened()).id, (await world.opened()).id]
  await world.gate.counted({ session: one, bytesIn: 9, bytesOut: 9 })
  const [counted, same] = [world.gate.octets(), world.gate.octets()]
  expect(notices.filter(({ type }) => type === 'count')).toEqual([
    { type: 'count', session: one },
    { type: 'count', session: other },
  ])
  await world.gate.counted({ session: one, bytesIn: 1, bytesOut: 2 })
  await world.gate.counted({ session: one, bytesIn: 7, bytesOut: 7 })
  await world.gate.close({ session: other, result: 'success', bytesIn: 3, bytesOut: 4, rightsUsed: [] })
  expect(await counted).toEqual(new Map([[one, { bytesIn: 1, bytesOut: 2 }]]))
  expect(await same).toBe(await counted)
})
