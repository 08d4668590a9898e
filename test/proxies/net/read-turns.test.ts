import { expect, test } from 'vitest'
import { READ_SHARE, READ_SHARE_OF_MANY, ReadTurn, ReadTurns } from '../../../proxies/net/read-turns.ts'

test('the legs of one session read much at a time, and little while others read too', () => {
  let now = 0
  const turns = new ReadTurns(() => now)
  const [client, target, other] = [{}, {}, {}]
  turns.read(client)
  turns.read(target)
  expect(turns.share()).toBe(READ_SHARE)
  turns.read(other)
  expect(turns.share()).toBe(READ_SHARE_OF_MANY)
  for (let round = 0; round < 4; round++) {
    now += 600
    turns.read(client)
    turns.read(target)
    turns.share()
  }
  expect(turns.share()).toBe(READ_SHARE)
  turns.read(other)
  turns.onClosed(other)
  expect(turns.share()).toBe(READ_SHARE)
})

test('a connection rests after its share, until the others have had their turn', async () => {
  const changes: boolean[] = []
  const turn = new ReadTurn(() => changes.push(turn.isResting))
  for (let read = 0; read < READ_SHARE; read += 64 * 1024) turn.spend(64 * 1024)
  expect(turn.isResting).toBe(true)
  await new Promise((resolve) => setImmediate(resolve))
  expect(changes).toEqual([true, false])
  turn.onClosed()
})

test('a read that has emptied the socket ends the turn by itself', () => {
  const turn = new ReadTurn(() => undefined)
  for (let n = 0; n < 20; n++) {
    turn.spend(READ_SHARE / 2)
    turn.spend(READ_SHARE / 4, true)
  }
  expect(turn.isResting).toBe(false)
  turn.onClosed()
})
