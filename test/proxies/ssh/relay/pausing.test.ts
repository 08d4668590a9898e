/** Back-pressure: which of its two legs a relay reads. */
import { afterEach, expect, test, vi } from 'vitest'
import { TAKING_MS } from '../../../../proxies/ssh/channel/taking-watch.ts'
import {
  buildData,
  buildGlobalRequest,
  buildPtyRequest,
  buildShell,
  buildWindowAdjust,
} from '../../../../proxies/ssh/codec/build.ts'
import { MSG } from '../../../../proxies/ssh/codec/messages.ts'
import { type Flow, newWorld, type World } from '../relay-world.ts'

afterEach(() => void vi.useRealTimers())

/** Returns a world with a shell on a terminal. */
async function withShell(): Promise<{ world: World; channel: number }> {
  const world = newWorld(['SSH_SHELL'])
  const channel = world.openSession()
  const size = { columns: 80, rows: 24, widthPixels: 0, heightPixels: 0 }
  const pty = { ...size, terminal: 'xterm', modes: new Uint8Array(0) }
  world.client.say(buildPtyRequest(channel, false, pty), buildShell(channel, false))
  await world.settle()
  return { world, channel }
}

test.each([
  ['the client', 'the target takes nothing', { target: { congested: true } }],
  ['the target', 'the client takes nothing', { client: { congested: true } }],
  ['the client', 'it reads none of its answers', { client: { flooded: true } }],
  ['the target', 'it reads none of its answers', { target: { flooded: true } }],
])('%s is not read while %s, and is again after that', (which, _, states) => {
  const world = newWorld(['SSH_SHELL'])
  const channel = world.openSession()
  const looked = (state: Partial<Record<'client' | 'target', Partial<Flow>>>) => {
    for (const leg of ['client', 'target'] as const) Object.assign(world.flow[leg], state[leg])
    world.client.say(buildWindowAdjust(channel, 1))
    return [world.flow.client.paused, world.flow.target.paused]
  }
  expect(looked(states)).toEqual([which === 'the client', which === 'the target'])
  const free = { congested: false, flooded: false }
  expect(looked({ client: free, target: free })).toEqual([false, false])
})

test('neither leg is read while the recording takes no more', () => {
  const world = newWorld(['SSH_SHELL'])
  const channel = world.openSession()
  for (const isFull of [true, false]) {
    world.setFull(isFull)
    world.client.say(buildWindowAdjust(channel, 1))
    expect([world.flow.client.paused, world.flow.target.paused]).toEqual([isFull, isFull])
  }
})

test('input typed while the client did not read is sent once it reads again, whatever it sends then', async () => {
  const { world, channel } = await withShell()
  const { client, target, flow } = world
  vi.useFakeTimers({ toFake: ['performance'] })
  Object.assign(flow.client, { written: 1_000, waiting: 2 })
  target.say(buildData(channel, '$ '))
  vi.advanceTimersByTime(TAKING_MS)
  client.say(buildData(channel, 'id'))
  expect(target.take(MSG.channelData)).toEqual([])
  flow.client.waiting = 0
  client.say(buildGlobalRequest({ name: 'keepalive@openssh.com', wantReply: true, data: new Uint8Array(0) }))
  await world.settle()
  expect(target.take(MSG.channelData)).toHaveLength(1)
})

test.each([
  ['a little of it now and then', 10, false],
  ['all of it in time, and never waits for nothing', 1_000, true],
])('what is typed for a client that takes %s', async (_, taken, goesOn) => {
  const { world, channel } = await withShell()
  const { client, target, flow } = world
  vi.useFakeTimers({ toFake: ['performance'] })
  Object.assign(flow.client, { written: 1_000, waiting: 1_000 })
  target.say(buildData(channel, '$ '))
  for (let round = 0; round < 4; round++) {
    vi.advanceTimersByTime(TAKING_MS / 4)
    flow.client.written += taken
    target.say(buildData(channel, '$ '))
  }
  client.say(buildData(channel, 'id'))
  expect(target.take(MSG.channelData)).toHaveLength(goesOn ? 1 : 0)
})

test('a target is heard to its end, though the client that has gone takes nothing', async () => {
  const { world, channel } = await withShell()
  const { target, flow } = world
  flow.client.congested = true
  target.say(buildData(channel, '$ '))
  expect(flow.target.paused).toBe(true)
  world.end()
  expect(flow.target.paused).toBe(false)
  expect(world.ended).toBeUndefined()
})

test('the client is not read while the audit log is asked', async () => {
  const world = newWorld(['SSH_SHELL'])
  const channel = world.openSession()
  world.client.say(buildShell(channel, true))
  expect(world.flow.client.paused).toBe(true)
  expect(world.flow.target.paused).toBe(false)
  await world.settle()
  expect(world.opened).toEqual(['SSH_SHELL'])
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
