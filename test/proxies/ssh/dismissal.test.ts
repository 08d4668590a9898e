/** Ends of a session by the bastion: replies to earlier input are recorded, and nothing follows. */
import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { DRAIN_MS, DRAIN_QUIET_MS } from '../../../proxies/ssh/channel/limits.ts'
import {
  buildData,
  buildExtendedData,
  buildPtyRequest,
  buildShell,
} from '../../../proxies/ssh/codec/build.ts'
import { MSG } from '../../../proxies/ssh/codec/messages.ts'
import { newWorld, open, type World } from './relay-world.ts'

const SIZE = { columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: new Uint8Array(0) }
let world: World
let id: number

/** A shell, on a terminal or not, that has just received input. */
async function typedIn({ terminal }: { terminal: boolean }): Promise<void> {
  id = world.openSession()
  if (terminal) world.client.say(buildPtyRequest(id, false, { terminal: 'xterm', ...SIZE }))
  world.client.say(buildShell(id, true))
  await world.settle()
  world.client.say(buildData(id, 'id\r'))
  expect(world.target.take(MSG.channelData)).toHaveLength(1)
}

const toldClient = () => Buffer.concat(world.client.sent).toString('latin1')

beforeEach(() => {
  vi.useFakeTimers({ now: 0, toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  world = newWorld(['SSH_SHELL'], { idleTimeout: 0, maxDuration: 60 })
})
afterEach(() => {
  vi.advanceTimersByTime(DRAIN_MS)
  vi.useRealTimers()
})

describe.each([
  ['a breach of the client', /extended data/, () => world.client.say(buildExtendedData(id, 'x'))],
  ['a kill', /somebody said so/, () => world.kill()],
  [
    'the time limit',
    /has lasted/,
    () => {
      vi.advanceTimersByTime(59_900)
      world.client.say(buildData(id, 'id\r'))
      world.target.take(MSG.channelData)
      vi.advanceTimersByTime(100)
    },
  ],
])('%s', (_, why, happens) => {
  test('is reported at once; output for earlier input is recorded, but no longer shown', async () => {
    await typedIn({ terminal: true })
    happens()
    expect(toldClient()).toMatch(why)
    expect(world.client.take(MSG.channelClose)).toHaveLength(1)
    expect(world.ended).toBeUndefined()
    world.target.say(Buffer.from([MSG.channelSuccess, 0, 0, 0, id]), buildData(id, 'uid=0'))
    vi.advanceTimersByTime(DRAIN_QUIET_MS - 1)
    world.target.say(buildData(id, ' (root)'))
    vi.advanceTimersByTime(DRAIN_QUIET_MS - 1)
    expect(world.ended).toBeUndefined()
    expect(world.target.sent.some(([type]) => type === MSG.channelClose)).toBe(false)
    vi.advanceTimersByTime(1)
    expect(world.ended).toMatch(why)
    expect(world.recorded).toBe('uid=0 (root)')
    expect(toldClient()).not.toContain('uid=0')
    expect(world.target.take(MSG.channelClose)).toHaveLength(1)
  })

  test('lets nothing more of the client pass, nor of the target to it', async () => {
    await typedIn({ terminal: true })
    happens()
    const asked = world.opened.length
    world.client.say(buildData(id, 'reboot\r'), open('session', 9))
    world.target.say(open('x11', 9))
    expect(
      world.target.sent.filter(([type]) => type === MSG.channelData || type === MSG.channelOpen),
    ).toEqual([])
    expect(world.client.sent.filter(([type]) => type === MSG.channelOpen)).toEqual([])
    expect(world.opened).toHaveLength(asked)
    expect(world.flow.client.paused).toBe(true)
  })

  test('is not put off by a target that goes on, nor by a client that leaves', async () => {
    await typedIn({ terminal: true })
    happens()
    world.end()
    for (let waited = 0; waited < DRAIN_MS; waited += 100) {
      expect(world.ended).toBeUndefined()
      world.target.say(buildData(id, '.'))
      vi.advanceTimersByTime(100)
    }
    expect(world.ended).toMatch(why)
  })

  test('waits for nothing where there is no terminal', async () => {
    await typedIn({ terminal: false })
    happens()
    expect(world.ended).toMatch(why)
  })
})

test('a breach of the target ends the session at once', async () => {
  await typedIn({ terminal: true })
  world.target.say(buildData(id + 1, 'x'))
  expect(world.ended).toMatch(/the target broke the SSH protocol/)
})
