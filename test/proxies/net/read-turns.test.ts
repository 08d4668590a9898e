import { expect, test } from 'vitest'
import { READ_SHARE, READ_SHARE_OF_MANY, ReadTurns } from '../../../proxies/net/read-turns.ts'

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
