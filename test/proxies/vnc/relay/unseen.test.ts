/** Activity must be seen: which requests of a viewer reach the target, and when input has to wait. */
import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  encodeClientCutText,
  encodeClientFence,
  encodeContinuousUpdates,
  encodeKey,
  encodePointer,
  encodeSetDesktopSize,
  encodeSetEncodings,
  encodeSetPixelFormat,
  encodeUpdateRequest,
} from '../../../../proxies/vnc/codec/client-encoder.ts'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { RGB888 } from '../../../../proxies/vnc/codec/pixel-format.ts'
import {
  encodeDesktopSize,
  encodeExtendedDesktopSize,
  encodeRectangleHeader,
} from '../../../../proxies/vnc/codec/server-encoder.ts'
import { QUIET_MS, UNSEEN_MS } from '../../../../proxies/vnc/relay/limits.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { encodeEndOfContinuousUpdates, encodeServerFence } from '../codec/encoders.ts'
import { rectangle, update } from '../codec/streams.ts'
import { newWorld, STATE } from '../relay-world.ts'

const ALL = { x: 0, y: 0, width: 100, height: 80 }
const ONE = { x: 7, y: 8, width: 1, height: 1 }
const KEY = encodeKey(true, 0x61)
const ASK = encodeUpdateRequest(true, ALL)
const ASK_ALL = encodeUpdateRequest(false, ALL)
const PICTURE = update(rectangle(ONE, ENCODING.RAW, Buffer.alloc(4, 7)))
const SIZED = { id: 0, x: 0, y: 0, width: 100, height: 80, flags: 0 }

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A viewer that has its picture and has requested nothing more. */
async function shown(...of: Parameters<typeof newWorld>) {
  const world = await newWorld(...of)
  world.viewer.say(ASK_ALL)
  world.target.say(PICTURE)
  world.target.take()
  world.viewer.take()
  return world
}

describe('the target is asked for its whole screen', () => {
  test('whatever part the viewer asks for', async () => {
    const { viewer, target } = await shown([])
    viewer.say(encodeUpdateRequest(true, ONE))
    expect(target.take()).toEqual(ASK)
    viewer.say(encodeUpdateRequest(false, ONE))
    expect(target.take()).toEqual(Buffer.concat([encodeUpdateRequest(false, ONE), ASK]))
    viewer.say(ASK_ALL)
    expect(target.take()).toEqual(ASK_ALL)
    viewer.say(encodeUpdateRequest(false, { x: 0, y: 0, width: 65535, height: 65535 }))
    expect(target.take()).toEqual(ASK_ALL)
    viewer.say(encodeUpdateRequest(false, { x: 100, y: 80, width: 10, height: 10 }))
    expect(target.take()).toEqual(ASK)
  })

  test('before the first thing that is done, where the viewer has asked for nothing', async () => {
    for (const done of [KEY, encodePointer(1, 1, 1), encodeClientCutText(Buffer.from('x'))]) {
      const { viewer, target } = await newWorld(['VNC_CLIPBOARD_UP'])
      vi.advanceTimersByTime(10 * UNSEEN_MS)
      expect(target.take()).toHaveLength(0)
      viewer.say(done)
      expect(target.take()).toEqual(Buffer.concat([ASK_ALL, done]))
    }
  })

  test('a while after each picture, until the viewer asks for the next', async () => {
    const { viewer, target } = await shown([])
    vi.advanceTimersByTime(UNSEEN_MS)
    expect(target.take()).toEqual(ASK)
    vi.advanceTimersByTime(10 * UNSEEN_MS)
    expect(target.take()).toHaveLength(0)
    target.say(PICTURE)
    viewer.say(ASK)
    vi.advanceTimersByTime(10 * UNSEEN_MS)
    expect(target.take()).toEqual(ASK)
    target.say(PICTURE)
    vi.advanceTimersByTime(UNSEEN_MS - 1)
    expect(target.take()).toHaveLength(0)
    vi.advanceTimersByTime(1)
    expect(target.take()).toEqual(ASK)
  })

  test('anew when it has another size, by whoever', async () => {
    const { viewer, target } = await shown([])
    viewer.say(encodeSetEncodings([ENCODING.EXTENDED_DESKTOP_SIZE, ENCODING.CONTINUOUS_UPDATES]))
    target.say(encodeEndOfContinuousUpdates())
    viewer.say(encodeContinuousUpdates(true, ONE))
    target.take()
    const larger = { ...ALL, width: 200 }
    target.say(update(encodeExtendedDesktopSize(2, 0, 200, 80, [])))
    viewer.say(encodeUpdateRequest(true, ONE))
    expect(target.take()).toEqual(
      Buffer.concat([encodeContinuousUpdates(true, larger), encodeUpdateRequest(false, larger)]),
    )
  })

  test('by continuous updates, too, and not of a target that has not said that it knows them', async () => {
    const { viewer, target } = await shown([])
    viewer.say(encodeSetEncodings([ENCODING.CONTINUOUS_UPDATES]))
    target.take()
    viewer.say(encodeContinuousUpdates(true, ONE))
    expect(target.take()).toHaveLength(0)
    target.say(encodeEndOfContinuousUpdates())
    viewer.say(encodeContinuousUpdates(true, ONE))
    expect(target.take()).toEqual(encodeContinuousUpdates(true, ALL))
    target.say(PICTURE)
    vi.advanceTimersByTime(10 * UNSEEN_MS)
    expect(target.take()).toHaveLength(0)
    viewer.say(encodeContinuousUpdates(false, ONE))
    vi.advanceTimersByTime(UNSEEN_MS)
    expect(target.take()).toEqual(Buffer.concat([encodeContinuousUpdates(false, ALL), ASK]))
  })
})

describe('what a viewer does that keeps the target from being read', () => {
  /** The viewer accepts nothing more of a picture in progress. */
  async function blocked() {
    const world = await shown([])
    const { viewer, target } = world
    viewer.say(ASK)
    viewer.congested = true
    target.say(PICTURE.subarray(0, 10))
    target.take()
    expect(target.paused).toBe(true)
    return world
  }

  const drain = ({ viewer }: Awaited<ReturnType<typeof newWorld>>) => {
    viewer.congested = false
    viewer.onDrain?.()
  }

  test('waits after a while, until the picture has come through and the target is asked again', async () => {
    const world = await blocked()
    const { viewer, target } = world
    expect(viewer.paused).toBe(false)
    vi.advanceTimersByTime(UNSEEN_MS)
    expect(viewer.paused).toBe(true)
    drain(world)
    expect([viewer.paused, target.paused]).toEqual([true, false])
    expect(target.take()).toHaveLength(0)
    target.say(PICTURE.subarray(10))
    expect(target.take()).toEqual(ASK)
    expect(viewer.paused).toBe(false)
  })

  test('is lost where a guest does it, until the picture has come through', async () => {
    const world = await blocked()
    const { target, room } = world
    const guest = room.join({
      invitation: 'I',
      name: 'Bob',
      mode: 'control',
      state: STATE,
      stream: { congested: false, write: () => undefined },
      onOut: () => undefined,
    })
    target.take()
    const typed = () => {
      guest.message({ kind: 'key', isDown: true, keysym: 0x61, keycode: undefined })
      return target.take()
    }
    expect(typed()).toEqual(KEY)
    vi.advanceTimersByTime(UNSEEN_MS)
    expect(typed()).toHaveLength(0)
    drain(world)
    target.say(PICTURE.subarray(10))
    target.take()
    expect(typed()).toEqual(KEY)
    room.close('the test is over')
  })

  test('is not helped by taking a little now and then', async () => {
    const world = await blocked()
    const { viewer, target } = world
    for (let taken = 0; taken < 4; taken++) {
      vi.advanceTimersByTime(UNSEEN_MS / 4)
      drain(world)
      viewer.congested = true
      target.say(PICTURE.subarray(10 + taken, 11 + taken))
    }
    vi.advanceTimersByTime(1)
    expect(viewer.paused).toBe(true)
  })

  test('does not wait where pictures come through in time', async () => {
    const world = await blocked()
    const { viewer, target } = world
    for (let pictures = 0; pictures < 10; pictures++) {
      vi.advanceTimersByTime(UNSEEN_MS / 2)
      drain(world)
      target.say(PICTURE.subarray(10))
      viewer.say(ASK)
      expect(viewer.paused).toBe(false)
      viewer.congested = true
      target.say(PICTURE.subarray(0, 10))
    }
  })

  test('nor for a target that is slow by itself', async () => {
    const { viewer, target } = await shown([])
    viewer.say(ASK)
    target.say(PICTURE.subarray(0, 10))
    vi.advanceTimersByTime(20 * UNSEEN_MS)
    expect(viewer.paused).toBe(false)
    target.take()
    viewer.say(KEY)
    expect(target.take()).toEqual(KEY)
  })
})

describe('fences', () => {
  const asked = encodeServerFence(0x80000001, Buffer.of(1))

  test('that a viewer keeps are answered for it, once', async () => {
    const { viewer, target } = await shown([])
    viewer.say(encodeSetEncodings([ENCODING.FENCE]), ASK)
    target.take()
    target.say(asked)
    expect(viewer.take()).toEqual(asked)
    vi.advanceTimersByTime(UNSEEN_MS - 1)
    expect(target.take()).toHaveLength(0)
    vi.advanceTimersByTime(1)
    expect(target.take()).toEqual(encodeClientFence(1, Buffer.of(1)))
    viewer.say(encodeClientFence(1, Buffer.of(1)))
    vi.advanceTimersByTime(10 * UNSEEN_MS)
    expect(target.take()).toHaveLength(0)
  })

  test('that it answers go on as they come, and no others', async () => {
    const { viewer, target } = await shown([])
    viewer.say(encodeSetEncodings([ENCODING.FENCE]), ASK)
    target.say(asked)
    target.take()
    viewer.say(encodeClientFence(1, Buffer.of(2)), encodeClientFence(1, Buffer.of(1)))
    expect(target.take()).toEqual(encodeClientFence(1, Buffer.of(1)))
    viewer.say(encodeClientFence(0x80000001, Buffer.of(3)))
    expect(target.take()).toEqual(encodeClientFence(0x80000001, Buffer.of(3)))
  })

  test('without end are answered when there are too many', async () => {
    const { viewer, target } = await shown([])
    viewer.say(encodeSetEncodings([ENCODING.FENCE]), ASK)
    target.take()
    for (let count = 0; count < 100; count++) target.say(asked)
    viewer.say(encodePointer(1, 1, 0))
    expect(target.take().length).toBeGreaterThan(30 * 10)
  })
})

describe('another pixel format that is asked for while a request is open', () => {
  const BGR16 = { ...RGB888, bitsPerPixel: 16, depth: 16, redMax: 31, greenMax: 63, blueMax: 31 } as const
  const other = encodeSetPixelFormat({ ...BGR16, redShift: 11, greenShift: 5 })

  test('waits for the answer at a target that cannot say where it begins, and everything is drawn anew', async () => {
    const { viewer, target, frames } = await shown([])
    viewer.say(ASK, other, ASK)
    expect(target.take()).toEqual(ASK)
    vi.advanceTimersByTime(QUIET_MS / 2)
    target.say(PICTURE.subarray(0, 10))
    vi.advanceTimersByTime(10 * QUIET_MS)
    expect(target.take()).toHaveLength(0)
    const before = frames.length
    target.say(PICTURE.subarray(10))
    expect(target.take()).toEqual(Buffer.concat([other, ASK_ALL]))
    target.say(update(rectangle(ONE, ENCODING.RAW, Buffer.alloc(2))))
    expect(frames.slice(before).map(([type]) => type)).toEqual([
      // A header that was split comes with its end.
      FRAME.graphics,
      FRAME.graphics,
      FRAME.pixelFormat,
      FRAME.graphics,
    ])
  })

  test('or until nothing has come for a while, however often it is asked for', async () => {
    const { viewer, target } = await shown([])
    viewer.say(ASK)
    target.take()
    for (let times = 0; times < 4; times++) {
      viewer.say(other, KEY, ASK)
      expect(target.take()).toEqual(KEY)
      vi.advanceTimersByTime(QUIET_MS / 4)
    }
    expect(target.take()).toEqual(Buffer.concat([other, ASK_ALL]))
  })
})

describe('a desktop on which nothing could be seen', () => {
  test('is not asked for', async () => {
    const { viewer, target } = await shown([])
    viewer.say(encodeSetEncodings([ENCODING.EXTENDED_DESKTOP_SIZE]))
    target.say(update(encodeExtendedDesktopSize(0, 0, 100, 80, [SIZED])))
    target.take()
    viewer.take()
    for (const [width, height] of [
      [1, 1],
      [320, 199],
      [319, 200],
    ] as const) {
      viewer.say(encodeSetDesktopSize(width, height, []))
      expect(viewer.take()).toEqual(update(encodeExtendedDesktopSize(1, 1, 100, 80, [SIZED])))
    }
    expect(target.take()).toHaveLength(0)
  })

  test('of few colours ends the session', async () => {
    const { viewer, target, session, closed } = await shown([])
    Object.assign(session, { isRecorded: true })
    const bits = { redMax: 1, greenMax: 1, blueMax: 1 }
    viewer.say(encodeSetPixelFormat({ ...RGB888, ...bits }))
    expect(target.take()).toHaveLength(0)
    await vi.waitFor(() => expect(closed).toHaveLength(1))
    expect(closed[0]!.reason).toMatch(/so few colours/)
  })

  test('nor are pictures of the worst quality', async () => {
    const { viewer, target } = await shown([])
    viewer.say(encodeSetEncodings([ENCODING.TIGHT, -512, -498, -497]))
    expect(target.take()).toEqual(
      encodeSetEncodings([ENCODING.TIGHT, -497, ENCODING.FENCE, ENCODING.DESKTOP_SIZE]),
    )
  })

  test('of another size than the viewer knows ends the session; of the same it hears nothing', async () => {
    const { viewer, target, closed } = await shown([])
    target.say(update(encodeDesktopSize(100, 80)))
    expect(viewer.take()).toEqual(update(encodeRectangleHeader({ x: 0, y: 0, width: 0, height: 0 }, 0)))
    target.say(update(encodeDesktopSize(200, 80)), PICTURE)
    expect(viewer.take()).toHaveLength(16)
    await vi.waitFor(() => expect(closed).toHaveLength(1))
    expect(closed[0]!.reason).toMatch(/the size of the desktop has changed/)
  })
})

describe('at the end', () => {
  test('what was done last has its time to be seen', async () => {
    const { viewer, target, closed, graphics } = await shown([])
    viewer.say(ASK, KEY)
    target.take()
    viewer.closed = true
    viewer.onClosed?.()
    const before = graphics().length
    target.say(PICTURE)
    expect(target.take()).toEqual(ASK)
    target.say(PICTURE)
    expect(graphics().length - before).toBe(2 * PICTURE.length)
    vi.advanceTimersByTime(UNSEEN_MS - 1)
    await Promise.resolve()
    expect([closed, target.closed]).toEqual([[], false])
    vi.advanceTimersByTime(1)
    expect(target.closed).toBe(true)
    await vi.waitFor(() => expect(closed).toMatchObject([{ result: 'success' }]))
  })

  test('the target is read for that though the viewer reads nothing', async () => {
    const { viewer, target, session, graphics } = await shown([])
    viewer.say(ASK, KEY)
    viewer.congested = true
    target.say(PICTURE.subarray(0, 10))
    expect(target.paused).toBe(true)
    session.stop('killed', 'ended by root')
    expect(target.paused).toBe(false)
    const before = graphics().length
    target.say(PICTURE.subarray(10))
    expect(graphics().length).toBeGreaterThan(before)
    // No more input is forwarded.
    target.take()
    viewer.say(KEY)
    expect(target.take()).toHaveLength(0)
    vi.advanceTimersByTime(UNSEEN_MS)
    expect([target.closed, viewer.closed]).toEqual([true, true])
  })

  test('nobody waits where nothing was done, or where there is nothing more to see', async () => {
    const idle = await shown([])
    idle.viewer.say(KEY)
    vi.advanceTimersByTime(UNSEEN_MS)
    idle.viewer.onClosed?.()
    expect(idle.target.closed).toBe(true)
    const busy = await shown([])
    busy.viewer.say(KEY)
    busy.viewer.onClosed?.()
    expect(busy.target.closed).toBe(false)
    busy.target.onClosed?.()
    await vi.waitFor(() => expect(busy.closed).toMatchObject([{ result: 'success' }]))
  })
})
