/** The guests of a session, with the thread that draws for them, and viewers that send too many requests. */
import { afterEach, describe, expect, test } from 'vitest'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { encodePixelFormat, RGB888 } from '../../../../proxies/vnc/codec/pixel-format.ts'
import { encodeRectangleHeader, encodeUpdateHeader } from '../../../../proxies/vnc/codec/server-encoder.ts'
import { Guest, type InputMessage } from '../../../../proxies/vnc/guests/guest.ts'
import type { ToThread } from '../../../../proxies/vnc/guests/messages.ts'
import { MAX_GUESTS, SharedSession } from '../../../../proxies/vnc/guests/shared-session.ts'
import { GraphicsTap } from '../../../../proxies/vnc/guests/tap.ts'
import type { ViewerState } from '../../../../proxies/vnc/local/display.ts'
import { FRAME, type Participant } from '../../../../recordings/container/frames.ts'
import { RfbPainter } from '../../../../recordings/decode/graphics/rfb/painter.ts'
import { until } from '../../../until.ts'

const SIZE = { width: 64, height: 48 }
const AREA = { x: 0, y: 0, ...SIZE }
const STATE: ViewerState = {
  size: SIZE,
  format: RGB888,
  encodings: [ENCODING.ZRLE, ENCODING.DESKTOP_NAME],
  request: { isIncremental: true, area: AREA },
  wish: undefined,
  cutText: undefined,
}

const rooms: SharedSession[] = []
afterEach(() => {
  for (const room of rooms.splice(0)) room.close('the test is over')
})

function setting() {
  const entries: Participant[] = []
  const inputs: [number, InputMessage][] = []
  const names: string[] = []
  const shared: boolean[] = []
  let tap: GraphicsTap | undefined
  const room = new SharedSession({
    size: SIZE,
    name: 'desk1',
    isRecorded: true,
    share(post) {
      shared.push(true)
      const stream = { ...SIZE, isInUpdate: false }
      tap = new GraphicsTap({ post, stream, askForAll: () => {} }, RGB888)
      return tap
    },
    unshare: () => shared.push(false),
    input: (who, message) => inputs.push([who, message]),
    rename: (name) => names.push(name),
    record: (entry) => entries.push(entry),
  })
  rooms.push(room)
  const join = (name: string, mode: 'view' | 'control' = 'view', invitation = name) => {
    const painter = new RfbPainter(SIZE)
    painter.apply({ type: FRAME.pixelFormat, payload: encodePixelFormat(RGB888) })
    const outs: string[] = []
    const guest = room.join({
      invitation,
      name,
      mode,
      state: STATE,
      stream: { congested: false, write: (payload) => painter.apply({ type: FRAME.graphics, payload }) },
      onOut: (_, reason) => outs.push(reason),
    })
    return { guest, outs, painter }
  }
  const draw = (colour: number) => {
    const pixels = Buffer.alloc(4 * SIZE.width * SIZE.height)
    for (let at = 0; at < pixels.length; at += 4) pixels.writeUInt32LE(colour, at)
    tap?.bytes(Buffer.concat([encodeUpdateHeader(1), encodeRectangleHeader(AREA, ENCODING.RAW), pixels]))
    tap?.flush()
  }
  return { room, entries, inputs, names, shared, join, draw }
}

const key = (keysym: number, isDown = true): InputMessage => ({
  kind: 'key',
  isDown,
  keysym,
  keycode: undefined,
})

describe('a room', () => {
  test('draws for its guests, is shared while there is one, and everybody sees who is in', async () => {
    const { entries, names, shared, join, draw, room } = setting()
    const { guest, painter } = join('Bob')
    draw(0x123456)
    await until('the picture', () => {
      guest.message({ kind: 'update-request', isIncremental: true, ...AREA })
      return painter.framebuffer.pixels.every((pixel) => (pixel & 0xffffff) === 0x563412) ? true : undefined
    })
    expect(painter.stopped).toBeUndefined()
    const { guest: second } = join('Ann', 'control')
    room.onGuestClosed(guest)
    expect(shared).toEqual([true])
    room.onGuestClosed(second)
    room.onGuestClosed(second)
    expect(shared).toEqual([true, false])
    expect(names).toEqual([
      'desk1, with Bob',
      'desk1, with Bob, Ann (control)',
      'desk1, with Ann (control)',
      'desk1',
    ])
    expect(entries).toEqual([
      { participant: 1, name: 'Bob', what: 'joined', mode: 'view' },
      { participant: 2, name: 'Ann', what: 'joined', mode: 'control' },
      { participant: 1, name: 'Bob', what: 'left' },
      { participant: 2, name: 'Ann', what: 'left' },
    ])
  })

  test('input passes by the mode, and what is held is let go of when the mode changes and at the end', () => {
    const { room, inputs, join } = setting()
    const { guest } = join('Bob')
    guest.message(key(0x61))
    expect(inputs).toEqual([])
    room.change('Bob', { mode: 'control', by: 'ops1' })
    guest.message(key(0x61))
    guest.message({ kind: 'pointer', x: 3, y: 4, buttons: 1 })
    guest.message({ kind: 'cut-text', text: Buffer.from('no') })
    room.change('Bob', { mode: 'view', by: 'ops1' })
    guest.message(key(0x62))
    expect(inputs).toEqual([
      [1, key(0x61)],
      [1, { kind: 'pointer', x: 3, y: 4, buttons: 1 }],
      [1, key(0x61, false)],
      [1, { kind: 'pointer', x: 3, y: 4, buttons: 0 }],
    ])
    room.change('Bob', { mode: 'control', by: 'ops1' })
    guest.message(key(0xffe1))
    room.onGuestClosed(guest)
    expect(inputs.at(-1)).toEqual([1, key(0xffe1, false)])
  })

  test('who is thrown out before they are in is not in', () => {
    const { room, join, entries, shared } = setting()
    room.change('Bob', { out: 'ended by ops1', by: 'ops1' })
    const { outs } = join('Bob')
    expect(outs).toEqual(['ended by ops1'])
    expect(entries.at(-1)).toMatchObject({ what: 'thrown_out', by: 'ops1' })
    expect(shared).toEqual([true, false])
  })

  test('has a limit, and an end', () => {
    const { room, join } = setting()
    const guests = Array.from({ length: MAX_GUESTS }, (_, n) => join(`guest ${n}`))
    expect(room.refusal).toContain('8 guests')
    room.close('killed')
    expect(guests.map(({ outs }) => outs)).toEqual(guests.map(() => ['killed']))
    expect(room.refusal).toContain('ended')
  })
})

describe("a guest's viewer that asks without end", () => {
  function asking(congested = false) {
    const posted: ToThread['kind'][] = []
    const stream = { congested, write: () => {} }
    const guest = new Guest({
      participant: 1,
      invitation: 'i',
      name: 'Bob',
      mode: 'view',
      state: { ...STATE, request: undefined },
      stream,
      post: ({ kind }) => posted.push(kind),
      input: () => {},
      onOut: () => {},
    })
    const ask = (isIncremental: boolean) => guest.message({ kind: 'update-request', isIncremental, ...AREA })
    return { guest, stream, posted, ask }
  }

  test('has two requests with the thread at most, and the next one after an answer', () => {
    const { guest, posted, ask } = asking()
    for (let count = 0; count < 1000; count++) {
      ask(true)
      ask(false)
      guest.message({ kind: 'set-pixel-format', format: RGB888 })
      guest.message({ kind: 'set-encodings', encodings: [] })
    }
    expect(posted).toEqual(['join', 'format', 'encodings', 'request', 'request'])
    guest.update(Buffer.alloc(0), SIZE)
    expect(posted.slice(5)).toEqual(['format', 'encodings', 'request'])
    guest.update(Buffer.alloc(0), SIZE)
    expect(posted).toHaveLength(8)
  })

  test('gets nothing drawn while it takes nothing', () => {
    const { guest, stream, posted, ask } = asking(true)
    ask(true)
    ask(false)
    expect(posted).toEqual(['join'])
    stream.congested = false
    guest.drained()
    expect(posted).toEqual(['join', 'format', 'encodings', 'request'])
  })
})
