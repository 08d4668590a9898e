import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { LIVE_BUFFER, LIVE_DELAY_MS, LIVE_RATE, LiveTap } from '../../../proxies/session/live-tap.ts'
import { FRAME } from '../../../recordings/container/frames.ts'
import type { LiveAnswer, LiveRequest } from '../../../src/contract/gate.ts'

type Sent = Omit<LiveRequest, 'session'>

let sent: Sent[]
let answers: ((answer: LiveAnswer) => void)[]
let isQuick: boolean
let recorded: number
let tap: LiveTap

beforeEach(() => {
  vi.useFakeTimers()
  sent = []
  answers = []
  isQuick = true
  recorded = 0
  tap = new LiveTap({
    send: (request) => {
      sent.push(structuredClone(request))
      if (isQuick) return Promise.resolve({ watched: true })
      return new Promise((resolve) => answers.push(resolve))
    },
    flush: () => Promise.resolve(),
    recorded: () => recorded,
    now: () => Date.now(),
  })
})
afterEach(() => vi.useRealTimers())

function frame(payload: Uint8Array = Buffer.from('x')): void {
  recorded++
  if (tap.isOn) tap.frame({ type: FRAME.output, channel: 1, time: 0, payload, after: recorded })
}
const later = (ms = LIVE_DELAY_MS) => vi.advanceTimersByTimeAsync(ms)

describe('frames for those who watch', () => {
  test('are sent from the notice on, in batches, with the place of the recording', async () => {
    frame()
    expect(tap.isOn).toBe(false)
    tap.watch(1)
    frame()
    frame()
    await later()
    expect(sent.map(({ frames, synced }) => [frames.map(({ after }) => after), synced])).toEqual([
      [[2, 3], { sync: 1, frames: 1 }],
    ])
    frame()
    expect(sent).toHaveLength(1)
    await later()
    expect(sent[1]!.frames.map(({ after }) => after)).toEqual([4])
  })

  test('are copies', async () => {
    tap.watch(1)
    await later()
    const payload = Buffer.from('secret')
    frame(payload)
    payload.fill(0)
    await later()
    expect(Buffer.from(sent.at(-1)!.frames[0]!.payload).toString()).toBe('secret')
  })

  test('stop when nobody watches any more, but not those of somebody who has come since', async () => {
    tap.watch(1)
    await later()
    isQuick = false
    frame()
    await later()
    tap.watch(2)
    answers.shift()!({ watched: false })
    await later()
    expect(tap.isOn).toBe(true)
    answers.at(-1)!({ watched: false })
    await later()
    expect(tap.isOn).toBe(false)
  })

  test('are left out, once and said, when the broker does not take them', async () => {
    tap.watch(1)
    await later()
    isQuick = false
    for (let bytes = 0; bytes <= LIVE_BUFFER; bytes += 32_768) frame(Buffer.alloc(32_768))
    expect(tap.isOn).toBe(false)
    await later()
    expect(sent.filter(({ lost }) => lost)).toHaveLength(1)
    expect(sent.at(-1)).toMatchObject({ frames: [], lost: true })
  })

  test('are left out when they are more than anybody can watch, and come again after a notice', async () => {
    tap.watch(1)
    await later()
    let bytes = 0
    while (tap.isOn) {
      frame(Buffer.alloc(32_768))
      bytes += 32_768
      await later(0)
      if (bytes % (LIVE_BUFFER / 4) === 0) await later()
    }
    expect(bytes).toBeGreaterThan(LIVE_RATE / 2)
    expect(bytes).toBeLessThan(LIVE_RATE * 1.5)
    tap.watch(2)
    frame()
    await later()
    expect(sent.at(-1)!.synced).toEqual({ sync: 2, frames: recorded - 1 })
    expect(sent.at(-1)!.frames).toHaveLength(1)
  })

  test('that wait are sent at the end, and none after it', async () => {
    tap.watch(1)
    await later()
    frame()
    tap.close()
    expect(sent.at(-1)!.frames).toHaveLength(1)
    expect(tap.isOn).toBe(false)
  })
})
