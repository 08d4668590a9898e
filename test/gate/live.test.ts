/** Watchers, with a drawer and a proxy under the test's control. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { FRAME } from '../../recordings/container/frames.ts'
import type { ChannelState } from '../../recordings/show/screens/screen.ts'
import type { GateNotice, LiveFrame } from '../../src/contract/gate.ts'
import { LiveSessions, MAX_WATCHERS_PER_SESSION } from '../../src/gate/live.ts'
import { MAX_WAITING, MAX_WATCHER_BACKLOG, RESYNC_MS, type Watcher } from '../../src/gate/live-session.ts'
import type { RunningSession } from '../../src/gate/running.ts'
import { Secret } from '../../src/model/secret.ts'

const SESSION = {
  id: 's1',
  userId: 'u1',
  user: 'ops1',
  source: { address: '192.0.2.9', port: 1 },
  target: {
    accountName: 'root',
    domainName: 'local',
    deviceName: 'srv1',
    serviceName: 'ssh',
    protocol: 'SSH',
  },
  begin: 0,
  isRecorded: true,
  tellsWatched: true,
  hostCaKeys: [],
  recording: { path: '/nowhere', key: Secret.of('k') },
} as unknown as RunningSession

interface Message {
  type: string
  data?: { line: string }
  gap?: boolean
  channels?: { data: { frames: number } }[]
}

class Person implements Watcher {
  readonly name: string
  messages: Message[] = []
  ended: string | undefined
  backlog = 0
  constructor(name: string) {
    this.name = name
  }
  send(message: string): void {
    this.messages.push(JSON.parse(message) as Message)
  }
  stop(why: string): void {
    this.ended = why
  }
  /** Number of the last keyframe's last frame, and the frames after it. */
  get sees(): { from: number | undefined; later: number[] } {
    const at = this.messages.findLastIndex(({ type }) => type === 'keyframe')
    const from = this.messages[at]?.channels?.[0]?.data.frames
    const later = this.messages.slice(at + 1).filter(({ type }) => type === 'command')
    return { from, later: later.map(({ data }) => Number(data!.line)) }
  }
}

let notices: GateNotice[]
let drawings: { frames: number; finish: (drawn?: number) => void; fail: () => void }[]
let forgotten: string[]
let live: LiveSessions
let frames: number

beforeEach(() => {
  vi.useFakeTimers()
  notices = []
  drawings = []
  forgotten = []
  frames = 0
  live = new LiveSessions({
    drawer: {
      state: (_drawn, count) =>
        new Promise<ChannelState[]>((resolve, reject) => {
          const open = Buffer.from(JSON.stringify({ frames: count }))
          drawings.push({
            frames: count,
            finish: (drawn = 0) =>
              resolve([
                { channel: 1, open, screen: { columns: 80, rows: 24, drawing: Buffer.alloc(drawn, '.') } },
              ]),
            fail: () => reject(new Error('no')),
          })
        }),
      feed: () => undefined,
      listen: () => undefined,
      forget: (session) => forgotten.push(session),
    },
    notify: (notice) => notices.push(notice),
  })
})
afterEach(() => vi.useRealTimers())

const syncs = () => notices.flatMap((notice) => (notice.type === 'watch' ? [notice.sync] : []))
function happens(size = 1): LiveFrame {
  frames++
  const payload = Buffer.from(JSON.stringify({ line: String(frames), fill: 'x'.repeat(size) }))
  return { type: FRAME.command, channel: 1, time: frames, payload, after: frames }
}
const take = (batch: LiveFrame[], more = {}) => live.take({ session: 's1', frames: batch, ...more })
const synced = () => take([], { synced: { sync: syncs().at(-1), frames } })
const settle = () => vi.advanceTimersByTimeAsync(0)
function join(name = 'ann'): { person: Person; stop: () => void } {
  const person = new Person(name)
  const watching = live.watch(SESSION, person)
  if (watching.result !== 'watching') throw new Error(watching.result)
  return { person, stop: watching.stop }
}

describe('somebody who watches', () => {
  test('misses nothing and sees nothing twice, whenever they come and however long it takes', async () => {
    const step = fc.constantFrom('frame', 'frame', 'frame', 'join', 'sync', 'draw', 'lost', 'wait')
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const people: Person[] = []
        // Like the proxy, sends nothing after a loss until the next notice.
        let isOn = false
        let answered = 0
        const proxy = () => {
          const sync = syncs().at(-1) ?? 0
          if (sync > answered) {
            answered = sync
            isOn = true
            take([], { synced: { sync, frames } })
          }
        }
        const act: Record<string, () => unknown> = {
          frame: () => {
            const frame = happens()
            if (isOn) take([frame])
          },
          join: () => people.length < MAX_WATCHERS_PER_SESSION && people.push(join().person),
          sync: proxy,
          draw: () => drawings.shift()?.finish(),
          lost: () => {
            if (!isOn) return
            isOn = false
            frames++
            take([], { lost: true })
          },
          wait: () => vi.advanceTimersByTimeAsync(RESYNC_MS),
        }
        for (const name of [...steps, ...Array(6).fill(['wait', 'sync', 'draw', 'frame']).flat()]) {
          await act[name]!()
          await settle()
        }
        for (const { sees } of people) {
          expect(sees.from).toBeDefined()
          const expected = Array.from({ length: frames - sees.from! }, (_, index) => sees.from! + index + 1)
          expect(sees.later).toEqual(expected)
        }
        live.onClosed('s1', { result: 'success' })
        expect(people.every(({ ended }) => ended === 'session_over')).toBe(true)
        notices = []
        drawings = []
        frames = 0
      }),
      { numRuns: 200 },
    )
  })

  test('who does not read is dropped, and the others go on', async () => {
    const { person: slow } = join('slow')
    const { person: other } = join('other')
    synced()
    drawings.shift()!.finish()
    await settle()
    slow.backlog = 2 * MAX_WATCHER_BACKLOG
    take([happens(), happens()])
    expect(slow.ended).toBe('too_slow')
    expect(slow.sees.later).toEqual([])
    expect(other.sees.later).toEqual([1, 2])
  })

  test('who is dropped as the last one leaves nothing to draw', async () => {
    const { person: slow } = join('slow')
    synced()
    drawings.shift()!.finish()
    await settle()
    slow.backlog = 2 * MAX_WATCHER_BACKLOG
    take([happens()], { synced: { sync: syncs().at(-1), frames }, lost: true })
    expect(slow.ended).toBe('too_slow')
    expect(forgotten).toEqual(['s1'])
    await vi.advanceTimersByTimeAsync(2 * RESYNC_MS)
    expect(drawings).toEqual([])
    expect(syncs()).toEqual([1])
  })

  test.each([
    ['the keyframe', 0, 0, 2 * MAX_WATCHER_BACKLOG],
    ['what waited for it', 8, MAX_WATCHER_BACKLOG / 9, 0],
    ['small frames that waited for it', 60_000, 1, 0],
  ])('is not behind for the length of %s', async (_, count, size, drawn) => {
    const { person } = join()
    const send = person.send.bind(person)
    person.send = (message) => {
      person.backlog += message.length
      send(message)
    }
    synced()
    for (let at = 0; at < count; at++) {
      const payload = Buffer.alloc(size, '.')
      take([{ type: FRAME.output, channel: 1, time: ++frames, payload, after: frames }])
    }
    drawings.shift()!.finish(drawn)
    await settle()
    take([happens()])
    expect(person.ended).toBeUndefined()
  })

  test('of a session that says too much gets a later keyframe, one drawing at a time', async () => {
    const { person } = join()
    synced()
    expect(drawings).toHaveLength(1)
    for (let bytes = 0; bytes <= MAX_WAITING; bytes += 500_000) take([happens(500_000)])
    await vi.advanceTimersByTimeAsync(10 * RESYNC_MS)
    expect(syncs()).toEqual([1])
    drawings.shift()!.finish()
    await vi.advanceTimersByTimeAsync(RESYNC_MS)
    expect(person.sees).toEqual({ from: 0, later: [] })
    expect(syncs()).toEqual([1, 2])
    synced()
    drawings.shift()!.finish()
    await settle()
    expect(person.sees).toEqual({ from: frames, later: [] })
    expect(person.messages.at(-1)!.gap).toBe(true)
  })

  test('is one of a bounded number, and told when nothing can be drawn', async () => {
    const all = Array.from({ length: MAX_WATCHERS_PER_SESSION }, (_, index) => join(`w${index}`))
    expect(live.watch(SESSION, new Person('more'))).toEqual({ result: 'too_many' })
    all[0]!.stop()
    join('more')
    synced()
    drawings.shift()!.fail()
    await settle()
    expect(all[1]!.person.ended).toBe('failed')
    expect(forgotten).toEqual(['s1'])
    expect(take([happens()])).toEqual({ watched: false })
  })

  test('is told of to the user, if the policy says so, and nobody of an unrecorded session', () => {
    join('ann').stop()
    live.watch({ ...SESSION, tellsWatched: false }, new Person('ben'))
    expect(
      notices.filter(({ type }) => type === 'tell').map((notice) => 'text' in notice && notice.text),
    ).toEqual(['ann watches this session', 'ann no longer watches this session'])
    const { recording: _, ...unrecorded } = SESSION
    expect(live.watch(unrecorded, new Person('cem'))).toEqual({ result: 'not_recorded' })
  })
})
