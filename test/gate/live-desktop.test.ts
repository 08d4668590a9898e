/** Watchers of a desktop, with a drawer and a proxy under the test's control. */
import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { FRAME, type FrameType } from '../../recordings/container/frames.ts'
import type { ChangesListener } from '../../recordings/show/screens/drawer.ts'
import type { ChannelState } from '../../recordings/show/screens/screen.ts'
import type { GateNotice, LiveFrame } from '../../src/contract/gate.ts'
import { MAX_HELD } from '../../src/gate/live-desktop.ts'
import { LiveSession, MAX_PICTURE_BACKLOG, RESYNC_MS, type Watcher } from '../../src/gate/live-session.ts'

interface Message {
  type: string
  gap?: boolean
  channels?: { width: number; png: string }[]
  rectangles?: { png: string }[]
}

class Person implements Watcher {
  readonly name = 'ann'
  backlog = 0
  messages: Message[] = []
  ended: string | undefined
  send(message: string): void {
    this.messages.push(JSON.parse(message) as Message)
  }
  stop(why: string): void {
    this.ended = why
  }
  get types(): string[] {
    return this.messages.map(({ type }) => type)
  }
}

let notices: GateNotice[]
let fed: number[]
let draw: (() => void)[]
let fail: (() => void)[]
let changed: ChangesListener
let live: LiveSession
let frames: number

beforeEach(() => {
  vi.useFakeTimers()
  notices = []
  fed = []
  draw = []
  fail = []
  frames = 0
  const open = Buffer.from('{"kind":"vnc"}')
  const desktop = { width: 8, height: 4, png: Buffer.from('whole') }
  live = new LiveSession({
    drawn: { session: 's1', path: '/nowhere', key: Buffer.alloc(32), isGraphic: true },
    drawer: {
      state: () =>
        new Promise<ChannelState[]>((resolve, reject) => {
          draw.push(() => resolve([{ channel: 1, open, desktop }]))
          fail.push(() => reject(new Error('no')))
        }),
      feed: (_session, more) => fed.push(...more.map(({ after }) => after)),
      listen: (_session, listener) => {
        changed = listener
      },
      forget: () => undefined,
    },
    notify: (notice) => notices.push(notice),
    onLeft: () => undefined,
  })
})
afterEach(() => vi.useRealTimers())

function frame(type: FrameType, size = 2): LiveFrame {
  frames++
  return { type, channel: 1, time: frames, payload: Buffer.alloc(size, '{}'), after: frames }
}
const take = (...more: LiveFrame[]) => live.take({ session: 's1', frames: more })
const sync = () => {
  const last = notices.at(-1)
  if (last?.type !== 'watch') throw new Error('nobody was asked for')
  live.take({ session: 's1', frames: [], synced: { sync: last.sync, frames } })
}
const settle = () => vi.advanceTimersByTimeAsync(0)
const change = () =>
  changed([
    {
      channel: 1,
      width: 8,
      height: 4,
      time: 5e6,
      parts: [{ x: 1, y: 2, width: 3, height: 1, png: Buffer.from('part') }],
    },
  ])

async function join(): Promise<Person> {
  const person = new Person()
  live.add(person)
  sync()
  draw.shift()!()
  await settle()
  return person
}

test('who watches gets the whole picture, then parts, and events but no pixels as they are', async () => {
  const person = await join()
  expect(person.messages).toEqual([
    {
      type: 'keyframe',
      gap: false,
      channels: [
        {
          channel: 1,
          data: { kind: 'vnc' },
          width: 8,
          height: 4,
          png: Buffer.from('whole').toString('base64'),
        },
      ],
    },
  ])
  take(frame(FRAME.graphics), frame(FRAME.pixelFormat), frame(FRAME.clipboard))
  expect(fed).toEqual([1, 2, 3])
  change()
  expect(person.types).toEqual(['keyframe', 'clipboard', 'picture'])
  expect(person.messages[2]).toEqual({
    type: 'picture',
    time: 5,
    channel: 1,
    width: 8,
    height: 4,
    rectangles: [{ x: 1, y: 2, width: 3, height: 1, png: Buffer.from('part').toString('base64') }],
  })
})

test('frames wait while a picture is drawn, and changes go to those who have it', async () => {
  const first = await join()
  const second = new Person()
  live.add(second)
  sync()
  take(frame(FRAME.graphics))
  change()
  expect(fed).toEqual([])
  expect([first.types, second.types]).toEqual([['keyframe', 'picture'], []])
  draw.shift()!()
  await settle()
  expect(fed).toEqual([1])
  change()
  expect(second.types).toEqual(['keyframe', 'picture'])
})

test('more than may wait is left out, and the whole picture comes again', async () => {
  const person = await join()
  live.add(new Person())
  sync()
  take(frame(FRAME.graphics, MAX_HELD))
  draw.shift()!()
  await settle()
  expect(fed).toEqual([])
  await vi.advanceTimersByTimeAsync(RESYNC_MS)
  sync()
  draw.shift()!()
  await settle()
  expect(person.messages.at(-1)).toMatchObject({ type: 'keyframe', gap: true })
})

test('who is slow gets the whole picture once he has read', async () => {
  const person = await join()
  person.backlog = MAX_PICTURE_BACKLOG + 1
  change()
  change()
  expect(person.types).toEqual(['keyframe'])
  const asked = notices.length
  await vi.advanceTimersByTimeAsync(10 * RESYNC_MS)
  expect(notices.length).toBe(asked)
  person.backlog = 0
  await vi.advanceTimersByTimeAsync(RESYNC_MS)
  expect(notices.length).toBe(asked + 1)
  sync()
  person.backlog = MAX_PICTURE_BACKLOG + 1
  draw.shift()!()
  await settle()
  expect(person.types).toEqual(['keyframe'])
  person.backlog = 0
  await vi.advanceTimersByTimeAsync(RESYNC_MS)
  sync()
  draw.shift()!()
  await settle()
  expect(person.messages.at(-1)).toMatchObject({ type: 'keyframe', gap: true })
  expect(person.ended).toBeUndefined()
})

test('a thread that was lost is asked for the whole picture', async () => {
  const person = await join()
  changed(undefined)
  await vi.advanceTimersByTimeAsync(RESYNC_MS)
  sync()
  fail.at(-1)!()
  await settle()
  expect(person.ended).toBe('failed')
})
