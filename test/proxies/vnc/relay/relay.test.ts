import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { FIRST_UPDATE_MS, STALL_LOOK_MS, STALL_MS } from '../../../../proxies/desktop/limits.ts'
import { STRICT_HELD } from '../../../../proxies/session/limits.ts'
import {
  encodeClientCutText,
  encodeClientFence,
  encodeContinuousUpdates,
  encodeExtendedClientCutText,
  encodeKey,
  encodePointer,
  encodeSetDesktopSize,
  encodeSetEncodings,
  encodeSetPixelFormat,
  encodeUpdateRequest,
} from '../../../../proxies/vnc/codec/client-encoder.ts'
import { ACTION, FORMAT } from '../../../../proxies/vnc/codec/clipboard.ts'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { encodePixelFormat, RGB888 } from '../../../../proxies/vnc/codec/pixel-format.ts'
import {
  encodeBell,
  encodeDesktopName,
  encodeDesktopSize,
  encodeExtendedDesktopSize,
  encodeExtendedServerCutText,
} from '../../../../proxies/vnc/codec/server-encoder.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { parseKey, parsePointer } from '../../../../recordings/decode/graphics/events.ts'
import { encodeEndOfContinuousUpdates, encodeServerCutText, encodeServerFence } from '../codec/encoders.ts'
import { rectangle, update } from '../codec/streams.ts'
import { newWorld, STATE } from '../relay-world.ts'

const ALL = { x: 0, y: 0, width: 100, height: 80 }
const ONE = { x: 0, y: 0, width: 1, height: 1 }
const pixel = (bytes = 4) => update(rectangle(ONE, ENCODING.RAW, Buffer.alloc(bytes, 7)))
const BGR16 = {
  ...RGB888,
  bitsPerPixel: 16,
  depth: 16,
  redMax: 31,
  greenMax: 63,
  blueMax: 31,
  redShift: 11,
  greenShift: 5,
} as const

test('bytes go through as they are, wherever they are cut, and all graphics into the recording', async () => {
  const { viewer, target, graphics, session } = await newWorld(['VNC_CLIPBOARD_DOWN'])
  const shown = Buffer.concat([pixel(), pixel(), pixel()])
  const sent = Buffer.concat([shown, encodeBell(), encodeServerCutText(Buffer.from('text')), encodeBell()])
  for (const byte of sent) target.say(Buffer.of(byte))
  target.say(sent)
  expect(viewer.take()).toEqual(Buffer.concat([sent, sent]))
  expect(graphics()).toEqual(Buffer.concat([shown, shown]))
  expect(session.bytesOut).toBe(2 * sent.length)
})

test('the first request is for everything, whatever the viewer has of its own screens', async () => {
  const { viewer, target } = await newWorld([])
  viewer.say(encodeUpdateRequest(true, ONE), encodeUpdateRequest(true, ONE))
  expect(target.take()).toEqual(
    Buffer.concat([encodeUpdateRequest(false, ALL), encodeUpdateRequest(true, ALL)]),
  )
})

/** The encodings that the bastion requests from every target. */
const OWN = [ENCODING.FENCE, ENCODING.DESKTOP_SIZE]

/** A viewer that has requested its picture. */
async function newWorldWithPicture(...of: Parameters<typeof newWorld>) {
  const world = await newWorld(...of)
  world.viewer.say(encodeUpdateRequest(false, ALL))
  world.target.take()
  return world
}

test('what the viewer has asked for before the relay is asked of the target', async () => {
  const { viewer, target, frames } = await newWorld(
    [],
    {},
    {
      format: BGR16,
      encodings: [ENCODING.ZRLE, ENCODING.DESKTOP_SIZE],
      request: { isIncremental: true, area: ONE },
      size: { width: 30, height: 30 },
    },
  )
  expect(target.take()).toEqual(
    Buffer.concat([
      encodeSetPixelFormat(BGR16),
      encodeSetEncodings([ENCODING.ZRLE, ENCODING.DESKTOP_SIZE, ENCODING.FENCE]),
      encodeUpdateRequest(false, ALL),
    ]),
  )
  expect(viewer.take()).toEqual(update(encodeDesktopSize(100, 80)))
  expect(frames.map(([type]) => type)).toEqual([FRAME.channelOpen, FRAME.pixelFormat])
  expect(frames[1]![1]).toEqual(encodePixelFormat(BGR16))
})

test('encodings that the recording cannot be drawn from are not asked for', async () => {
  const { viewer, target } = await newWorld([])
  // CoRRE, H.264, QEMU's audio, and the clipboard, which is not allowed here.
  viewer.say(encodeSetEncodings([ENCODING.TIGHT, 4, 50, -259, ENCODING.EXTENDED_CLIPBOARD, -32]))
  expect(target.take()).toEqual(encodeSetEncodings([ENCODING.TIGHT, -32, ...OWN]))
})

describe('another pixel format', () => {
  test('holds from the end of the update on that has begun to come', async () => {
    const { viewer, target, frames, closed } = await newWorld([])
    const old = pixel()
    target.say(old.subarray(0, 6))
    viewer.say(encodeSetPixelFormat(BGR16))
    target.say(old.subarray(6), pixel(2), encodeBell())
    expect(frames.slice(2).map(([type, payload]) => [type, payload.length])).toEqual([
      // A header that was split comes with its end.
      [FRAME.graphics, 4],
      [FRAME.graphics, 2],
      [FRAME.graphics, old.length - 6],
      [FRAME.pixelFormat, 16],
      [FRAME.graphics, pixel(2).length],
    ])
    expect(closed).toEqual([])
  })

  test('holds at once where nothing is under way', async () => {
    const { viewer, target, closed } = await newWorld([])
    viewer.say(encodeSetPixelFormat(BGR16))
    target.say(pixel(2), encodeBell())
    expect(viewer.take()).toEqual(Buffer.concat([pixel(2), encodeBell()]))
    expect(closed).toEqual([])
  })

  test('holds from the end of continuous updates on', async () => {
    const { viewer, target, graphics } = await newWorld([])
    viewer.say(encodeSetEncodings([ENCODING.CONTINUOUS_UPDATES]))
    target.say(encodeEndOfContinuousUpdates())
    viewer.take()
    viewer.say(encodeContinuousUpdates(true, ALL))
    viewer.say(encodeContinuousUpdates(false, ALL), encodeSetPixelFormat(BGR16))
    const sent = Buffer.concat([pixel(4), pixel(4), encodeEndOfContinuousUpdates(), pixel(2), encodeBell()])
    target.say(sent)
    expect(viewer.take()).toEqual(sent)
    expect(graphics()).toEqual(Buffer.concat([pixel(4), pixel(4), pixel(2)]))
  })
})

describe('another pixel format, of a target that may do anything', () => {
  const fence = (flags: number, payload: Uint8Array) => encodeServerFence(flags, payload)

  test('is recorded behind what came in the same piece', async () => {
    const { viewer, target, frames } = await newWorld([])
    viewer.say(encodeSetEncodings([ENCODING.CONTINUOUS_UPDATES]))
    target.say(encodeEndOfContinuousUpdates())
    viewer.say(encodeContinuousUpdates(true, ALL))
    viewer.say(encodeContinuousUpdates(false, ALL), encodeSetPixelFormat(BGR16))
    target.say(pixel(4), encodeEndOfContinuousUpdates())
    expect(frames.slice(2).map(([type]) => type)).toEqual([FRAME.graphics, FRAME.pixelFormat])
  })

  test('holds from the target’s answer to a fence on, where it knows fences, whatever is requested', async () => {
    const { viewer, target, frames } = await newWorld([])
    viewer.say(encodeSetEncodings([ENCODING.RAW]))
    target.take()
    // The target confirms fences: this viewer does not support them, so the bastion replies.
    target.say(fence(0x80000003, Buffer.from('hello')))
    expect(target.take()).toEqual(encodeClientFence(3, Buffer.from('hello')))
    viewer.say(encodeUpdateRequest(true, ALL), encodeSetPixelFormat(BGR16))
    const sent = target.take()
    const payload = sent.subarray(10 + 9, 10 + 9 + 16)
    expect(sent.subarray(10 + 9 + 16)).toEqual(encodeSetPixelFormat(BGR16))
    viewer.take()
    const said = [pixel(4), fence(7, payload), pixel(2), encodeBell()]
    target.say(...said)
    expect(viewer.take()).toEqual(Buffer.concat([pixel(4), pixel(2), encodeBell()]))
    expect(frames.slice(-3).map(([type, { length }]) => [type, length])).toEqual([
      [FRAME.graphics, pixel(4).length],
      [FRAME.pixelFormat, 16],
      [FRAME.graphics, pixel(2).length],
    ])
  })
})

describe('messages are built anew, so that the target reads what was read here', () => {
  const MORE = ENCODING.EXTENDED_MOUSE_BUTTONS
  const back = Buffer.from('058100050006', 'hex')
  const confirmed = update(rectangle({ x: 0, y: 0, width: 0, height: 0 }, MORE))

  test('a pointer’s bit 7 says nothing while the target has not confirmed more buttons', async () => {
    const { viewer, target } = await newWorldWithPicture([])
    viewer.say(back)
    expect(target.take()).toEqual(back)
    viewer.say(encodeSetEncodings([MORE]))
    target.take()
    viewer.say(back)
    expect(target.take()).toEqual(encodePointer(5, 6, 1))
  })

  test('and once it has, every SetEncodings has them', async () => {
    const { viewer, target } = await newWorldWithPicture([])
    viewer.say(encodeSetEncodings([MORE]))
    target.say(confirmed)
    target.take()
    viewer.say(encodeSetEncodings([ENCODING.TIGHT]))
    expect(target.take()).toEqual(encodeSetEncodings([ENCODING.TIGHT, ...OWN, MORE]))
    viewer.say(Buffer.concat([back, Buffer.of(2)]), encodePointer(1, 1, 1))
    expect(target.take()).toEqual(Buffer.concat([back, Buffer.of(2), encodePointer(1, 1, 1)]))
  })

  test('flags and padding are the bastion’s', async () => {
    const { viewer, target } = await newWorld([])
    viewer.say(encodeUpdateRequest(false, ALL))
    target.take()
    viewer.say(Buffer.from('030600010002000300040477ffff00000061', 'hex'))
    expect(target.take()).toEqual(Buffer.concat([encodeUpdateRequest(true, ALL), encodeKey(true, 0x61)]))
  })

  test('a wish for another size goes to a target that knows of such wishes', async () => {
    const { viewer, target } = await newWorld([])
    viewer.say(encodeSetEncodings([ENCODING.EXTENDED_DESKTOP_SIZE]))
    target.take()
    const screen = { id: 0, x: 0, y: 0, width: 100, height: 80, flags: 0 }
    viewer.say(encodeSetDesktopSize(10, 10, []))
    expect(target.take()).toHaveLength(0)
    expect(viewer.take()).toEqual(update(encodeExtendedDesktopSize(1, 1, 100, 80, [screen])))
    target.say(update(encodeExtendedDesktopSize(0, 0, 100, 80, [screen])))
    viewer.say(encodeUpdateRequest(false, ALL), encodeSetDesktopSize(320, 200, []))
    expect(target.take().subarray(10)).toEqual(encodeSetDesktopSize(320, 200, []))
  })
})

describe('keys and the pointer', () => {
  test('pass, and are recorded without which keys they were', async () => {
    const { viewer, target, frames } = await newWorldWithPicture([])
    const sent = Buffer.concat([encodeKey(true, 0x61), encodePointer(5, 6, 1)])
    viewer.say(sent)
    expect(target.take()).toEqual(sent)
    expect(frames.slice(2).map(([type]) => type)).toEqual([FRAME.key, FRAME.pointer])
    expect(parseKey(frames[2]![1])).toEqual({ participant: 0, isDown: true })
    expect(parsePointer(frames[3]![1])).toEqual({ participant: 0, buttons: 1, x: 5, y: 6 })
  })

  test('are recorded as they are where the policy says so', async () => {
    const { viewer, frames } = await newWorld([], { maskKeys: false })
    viewer.say(Buffer.from('ff000001000000610000001e', 'hex'))
    expect(parseKey(frames[2]![1])).toEqual({ participant: 0, isDown: true, keysym: 0x61, code: 0x1e })
  })

  test('stay behind in a session for viewing only, as do texts and wishes for another size', async () => {
    const { viewer, target, session, events } = await newWorld(['VNC_CLIPBOARD_UP'], { viewOnly: true })
    viewer.say(encodeSetEncodings([ENCODING.EXTENDED_DESKTOP_SIZE]))
    target.take()
    viewer.say(encodeKey(true, 0x61), encodePointer(5, 6, 1), encodeClientCutText(Buffer.from('no')))
    viewer.say(encodeSetDesktopSize(10, 10, []))
    expect(target.take()).toHaveLength(0)
    const screen = { id: 0, x: 0, y: 0, width: 100, height: 80, flags: 0 }
    expect(viewer.take()).toEqual(update(encodeExtendedDesktopSize(1, 1, 100, 80, [screen])))
    // The same after the target has confirmed such requests.
    target.say(update(encodeExtendedDesktopSize(0, 0, 100, 80, [screen])))
    target.take()
    viewer.take()
    viewer.say(encodeSetDesktopSize(320, 200, []))
    expect(target.take()).toHaveLength(0)
    expect(viewer.take()).toEqual(update(encodeExtendedDesktopSize(1, 1, 100, 80, [screen])))
    expect(session.signs).toBe(2)
    await vi.waitFor(() => expect(events).toHaveLength(1))
    expect(events[0]).toMatchObject(['channel.denied', { subprotocol: 'VNC_CLIPBOARD_UP' }])
  })
})

test('what a guest does while the target, or the recording, takes no more is left out for good', async () => {
  const { target, session, room } = await newWorldWithPicture([])
  const guest = room.join({
    invitation: 'I',
    name: 'Bob',
    mode: 'control',
    state: STATE,
    stream: { congested: false, write: () => undefined },
    onOut: () => undefined,
  })
  target.take()
  const typed = (keysym: number) => {
    guest.message({ kind: 'key', isDown: true, keysym, keycode: undefined })
    return target.take()
  }
  expect(typed(0x61)).toEqual(encodeKey(true, 0x61))
  target.congested = true
  expect(typed(0x62)).toHaveLength(0)
  target.congested = false
  expect(typed(0x63)).toEqual(encodeKey(true, 0x63))
  const full = vi.spyOn(session, 'isFull', 'get').mockReturnValue(true)
  expect(typed(0x64)).toHaveLength(0)
  full.mockRestore()
  expect(typed(0x65)).toEqual(encodeKey(true, 0x65))
  room.close('the test is over')
})

describe('the clipboard', () => {
  const provided = deflateSync(Buffer.from('\0\0\0\x06Gr\xc3\xbc\xc3\0', 'latin1'))

  test('passes each way by its own right', async () => {
    for (const [right, hasUp, hasDown] of [
      ['VNC_CLIPBOARD_UP', true, false],
      ['VNC_CLIPBOARD_DOWN', false, true],
    ] as const) {
      const { viewer, target, events } = await newWorld([right])
      const up = encodeClientCutText(Buffer.from('up'))
      const down = encodeServerCutText(Buffer.from('down'))
      viewer.say(up, up)
      target.say(down, down, encodeBell())
      expect(target.take().length > 0, right).toBe(hasUp)
      expect(viewer.take().length > 1, right).toBe(hasDown)
      await vi.waitFor(() => expect(events).toHaveLength(2))
      expect(events.map(([code]) => code).sort()).toEqual(['channel.denied', 'clipboard'])
    }
  })

  test('is an event with its size and its hash, and a frame with its text', async () => {
    const { viewer, target, events, frames } = await newWorld(['VNC_CLIPBOARD_UP', 'VNC_CLIPBOARD_DOWN'])
    viewer.say(encodeClientCutText(Buffer.from('Gr\xfcn', 'latin1')))
    target.say(encodeServerCutText(Buffer.from('rot')))
    const green = { format: 'text', size: 5, sha256: hash('sha256', 'Grün') }
    const red = { format: 'text', size: 3, sha256: hash('sha256', 'rot') }
    await vi.waitFor(() => expect(events).toHaveLength(2))
    expect(events).toEqual([
      ['clipboard', { subprotocol: 'VNC_CLIPBOARD_UP', direction: 'up', ...green }],
      ['clipboard', { subprotocol: 'VNC_CLIPBOARD_DOWN', direction: 'down', ...red }],
    ])
    expect(frames.slice(2).map(([type, payload]) => [type, JSON.parse(payload.toString())])).toEqual([
      [FRAME.clipboard, { direction: 'up', format: 'text', bytes: 5, sha256: green.sha256, text: 'Grün' }],
      [FRAME.clipboard, { direction: 'down', format: 'text', bytes: 3, sha256: red.sha256, text: 'rot' }],
    ])
  })

  test('extended: what offers or brings data one way passes by the right of that way', async () => {
    const { viewer, target, events, frames } = await newWorld(['VNC_CLIPBOARD_DOWN'])
    viewer.say(encodeSetEncodings([ENCODING.EXTENDED_CLIPBOARD]))
    target.take()
    const caps = encodeExtendedServerCutText(ACTION.CAPS | FORMAT.TEXT, Buffer.alloc(4))
    const offered = encodeExtendedServerCutText(ACTION.NOTIFY | FORMAT.TEXT, Buffer.alloc(0))
    const brought = encodeExtendedServerCutText(
      ACTION.PROVIDE | FORMAT.TEXT,
      deflateSync(Buffer.from('\0\0\0\x05a\r\nb\0')),
    )
    const asked = encodeExtendedServerCutText(ACTION.REQUEST | FORMAT.TEXT, Buffer.alloc(0))
    target.say(caps, offered, brought, asked)
    expect(viewer.take()).toEqual(Buffer.concat([caps, offered, brought]))
    const wanted = encodeExtendedClientCutText(ACTION.REQUEST | FORMAT.TEXT, Buffer.alloc(0))
    const offer = encodeExtendedClientCutText(ACTION.NOTIFY | FORMAT.TEXT, Buffer.alloc(0))
    const data = encodeExtendedClientCutText(ACTION.PROVIDE | FORMAT.TEXT, provided)
    viewer.say(wanted, offer, data)
    expect(target.take()).toEqual(wanted)
    await vi.waitFor(() => expect(events).toHaveLength(2))
    expect(events.map(([code]) => code)).toEqual(['clipboard', 'channel.denied'])
    expect(JSON.parse(frames.find(([type]) => type === FRAME.clipboard)![1].toString())).toEqual({
      direction: 'down',
      format: 'text',
      bytes: 3,
      sha256: hash('sha256', 'a\nb'),
      text: 'a\nb',
    })
  })

  test('a flood of texts is few events', async () => {
    const { target, events, frames } = await newWorld(['VNC_CLIPBOARD_DOWN'])
    for (let number = 0; number < 200; number++) target.say(encodeServerCutText(Buffer.from(String(number))))
    await vi.waitFor(() => expect(events.length).toBeGreaterThan(0))
    expect(frames.filter(([type]) => type === FRAME.clipboard)).toHaveLength(200)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(events.length).toBeLessThan(40)
  })
})

test('the name of the desktop of a session that is not recorded stays', async () => {
  const { viewer, target, graphics } = await newWorld([])
  viewer.say(encodeSetEncodings([ENCODING.DESKTOP_NAME]))
  const sent = update(encodeDesktopName('new'))
  target.say(sent)
  expect(viewer.take()).toEqual(sent)
  expect(graphics()).toEqual(sent)
})

test('what the bastion says waits for the end of an update', async () => {
  const { viewer, target, session } = await newWorld([])
  viewer.say(encodeSetEncodings([ENCODING.DESKTOP_NAME]))
  const bytes = pixel()
  target.say(bytes.subarray(0, 18))
  session.onTell?.('somebody watches')
  expect(viewer.take()).toEqual(bytes.subarray(0, 18))
  target.say(bytes.subarray(18))
  expect(viewer.take()).toEqual(
    Buffer.concat([bytes.subarray(18), update(encodeDesktopName('desk: somebody watches')), encodeBell()]),
  )
})

describe('back-pressure', () => {
  test('each side is read only while the other takes what it sends', async () => {
    const { viewer, target } = await newWorld([])
    viewer.congested = true
    target.say(pixel())
    expect([viewer.paused, target.paused]).toEqual([false, true])
    viewer.congested = false
    viewer.onDrain?.()
    expect([viewer.paused, target.paused]).toEqual([false, false])
    target.congested = true
    viewer.say(encodePointer(1, 1, 0))
    expect([viewer.paused, target.paused]).toEqual([true, false])
  })

  test('and both while the recording does not', async () => {
    const { viewer, target, session } = await newWorld([])
    const full = vi.spyOn(session, 'isFull', 'get').mockReturnValue(true)
    target.say(pixel())
    expect([viewer.paused, target.paused]).toEqual([true, true])
    full.mockReturnValue(false)
    session.onDrain?.()
    expect([viewer.paused, target.paused]).toEqual([false, false])
  })
})

test('in a strict session what the viewer gets is on the disk first', async () => {
  const proofs: (() => void)[] = []
  const { viewer, target, session, graphics } = await newWorldWithPicture([], {}, {}, { isStrict: true })
  session.recording.flush = () => new Promise((resolve) => proofs.push(resolve))
  target.say(pixel(), encodeBell())
  viewer.say(encodeKey(true, 0x61))
  expect(graphics()).toEqual(pixel())
  // Typed input is forwarded at once.
  expect(target.take()).toHaveLength(8)
  await vi.waitFor(() => expect(proofs).toHaveLength(1))
  expect(viewer.take()).toHaveLength(0)
  proofs.shift()!()
  await vi.waitFor(() => expect(viewer.take()).toEqual(Buffer.concat([pixel(), encodeBell()])))
  for (let written = 0; written <= STRICT_HELD; written += 32_000) {
    target.say(update(rectangle(ALL, ENCODING.RAW, Buffer.alloc(32_000))))
  }
  expect(target.paused).toBe(true)
})

describe('the end', () => {
  test('of the viewer is the session’s', async () => {
    const { viewer, target, closed } = await newWorld([])
    viewer.closed = true
    viewer.onClosed?.()
    expect(target.closed).toBe(true)
    await vi.waitFor(() => expect(closed).toEqual([{ result: 'success' }]))
  })

  test('by the gate is shown to the viewer, as is what a target does', async () => {
    const killed = await newWorld([])
    killed.session.stop('killed', 'ended by root')
    expect(killed.lastWords).toEqual([
      [{ size: { width: 100, height: 80 }, format: RGB888, encodings: [] }, 'ended by root'],
    ])
    await vi.waitFor(() => expect(killed.closed).toEqual([{ result: 'killed', reason: 'ended by root' }]))
    const broken = await newWorld([])
    broken.target.say(Buffer.of(99))
    expect(broken.lastWords[0]![1]).toMatch(/^the target broke the RFB protocol: .* found type 99$/)
    const gone = await newWorld([])
    gone.target.onClosed?.()
    expect(gone.lastWords[0]![1]).toBe('the target closed the connection')
  })

  test('by the gate lets the rest of an update through, for a while, and nothing of the viewer', async () => {
    const { viewer, target, session, lastWords } = await newWorld([])
    target.say(pixel().subarray(0, 18))
    session.stop('killed', 'ended by root')
    viewer.say(encodeKey(true, 0x61))
    expect(target.take()).toHaveLength(0)
    target.say(pixel().subarray(18), encodeBell())
    await Promise.resolve()
    expect(viewer.take()).toEqual(Buffer.concat([pixel(), encodeBell()]))
    expect(lastWords.map(([, reason]) => reason)).toEqual(['ended by root'])
    const stuck = await newWorld([])
    stuck.target.say(pixel().subarray(0, 18))
    stuck.session.stop('killed', 'ended by root')
    await vi.waitFor(() => expect(stuck.viewer.closed).toBe(true), 3_000)
  })

  test('in the middle of an update nothing can be shown any more', async () => {
    const { target, viewer, lastWords } = await newWorld([])
    target.say(pixel().subarray(0, 10))
    target.onClosed?.()
    expect(lastWords).toEqual([])
    expect(viewer.closed).toBe(true)
  })

  test('by a viewer that breaks the protocol', async () => {
    const { viewer, target, closed } = await newWorld([])
    viewer.say(Buffer.of(77))
    expect(target.closed).toBe(true)
    await vi.waitFor(() => expect(closed[0]?.reason).toMatch(/the viewer broke the RFB protocol: .* type 77/))
  })

  test('by the quota of its recording', async () => {
    const { target, closed } = await newWorld([], { desktopQuota: 30 })
    target.say(pixel())
    target.say(pixel())
    await vi.waitFor(() =>
      expect(closed).toEqual([
        { result: 'failure', reason: 'the recording quota of the session is used up' },
      ]),
    )
  })
})

describe('a target that does not go on', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  test('never sends anything', async () => {
    vi.useFakeTimers()
    const { viewer, lastWords } = await newWorld([])
    viewer.say(encodeUpdateRequest(false, ALL))
    vi.advanceTimersByTime(FIRST_UPDATE_MS + 2 * STALL_LOOK_MS)
    expect(lastWords[0]?.[1]).toBe('the target has sent no picture in 30 seconds')
  })

  test('is not the one who is slow where the viewer does not read', async () => {
    vi.useFakeTimers()
    const { viewer, target } = await newWorld([])
    viewer.say(encodeUpdateRequest(false, ALL))
    viewer.congested = true
    target.say(pixel().subarray(0, 18))
    vi.advanceTimersByTime(4 * STALL_MS)
    expect(viewer.closed).toBe(false)
  })

  test('dribbles in the middle of an update', async () => {
    vi.useFakeTimers()
    const { target, viewer } = await newWorld([])
    target.say(pixel(), update(rectangle(ALL, ENCODING.RAW)))
    for (let ms = 0; ms < STALL_MS + 3 * STALL_LOOK_MS && !viewer.closed; ms += 1000) {
      target.say(Buffer.of(0))
      vi.advanceTimersByTime(1000)
    }
    expect(viewer.closed).toBe(true)
  })

  test('has nothing to say, and is let alone', async () => {
    vi.useFakeTimers()
    const { target, viewer } = await newWorld([])
    target.say(pixel())
    vi.advanceTimersByTime(10 * STALL_MS)
    expect(viewer.closed).toBe(false)
  })
})
