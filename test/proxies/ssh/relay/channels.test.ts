/** Replies to channel openings, from clients that reply late or without request. */
import { expect, test } from 'vitest'
import { buildChannelOpenFailure } from '../../../../proxies/ssh/codec/build.ts'
import { MSG, recipientOf } from '../../../../proxies/ssh/codec/messages.ts'
import { confirmation, newWorld } from '../relay-world.ts'

test('a channel of the lobby that is confirmed too late is closed, and the session goes on', () => {
  const world = newWorld(['SSH_SHELL'], {}, 2)
  world.client.say(confirmation(1, 30))
  expect(world.client.take(MSG.channelClose).map(recipientOf)).toEqual([30])
  world.client.say(buildChannelOpenFailure(0, 2, 'no'))
  expect(world.ended).toBeUndefined()
  world.openSession()
  world.end()
})

test('a reply without a CHANNEL_OPEN ends the session', () => {
  const world = newWorld(['SSH_SHELL'], {}, 2)
  world.client.say(confirmation(2, 30))
  expect(world.ended).toMatch(/nobody opened/)
})
