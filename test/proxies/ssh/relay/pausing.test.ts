/** Which of its two legs a relay reads. */
import { expect, test } from 'vitest'
import { buildWindowAdjust } from '../../../../proxies/ssh/codec/build.ts'
import { newWorld } from '../relay-world.ts'

test('a leg is not read while the other one takes nothing', () => {
  const world = newWorld(['SSH_SHELL'])
  const channel = world.openSession()
  world.flow.target.congested = true
  world.client.say(buildWindowAdjust(channel, 1))
  expect(world.flow.client.paused).toBe(true)
  expect(world.flow.target.paused).toBe(false)
  world.flow.target.congested = false
  world.client.say(buildWindowAdjust(channel, 1))
  expect(world.flow.client.paused).toBe(false)
})

test('two legs that exchange keys do not wait for each other', () => {
  const world = newWorld(['SSH_SHELL'])
  const channel = world.openSession()
  for (const leg of [world.flow.client, world.flow.target]) leg.congested = leg.inKex = true
  world.client.say(buildWindowAdjust(channel, 1))
  expect(world.flow.client.paused).toBe(false)
  expect(world.flow.target.paused).toBe(false)
})

test('the bastion asks one peer for new keys after the other', () => {
  const { flow } = newWorld(['SSH_SHELL'])
  expect(flow.client.mayRekey?.()).toBe(true)
  flow.target.inKex = true
  expect(flow.client.mayRekey?.()).toBe(false)
  expect(flow.target.mayRekey?.()).toBe(true)
})
