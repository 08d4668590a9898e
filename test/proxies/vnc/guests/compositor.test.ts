/**
 * The guests' pictures: drawn from recorded frames, sent in each viewer's own format, and drawn back here by
 * the painter.
 */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { encodePixelFormat, type PixelFormat, RGB888 } from '../../../../proxies/vnc/codec/pixel-format.ts'
import { encodeRectangleHeader, encodeUpdateHeader } from '../../../../proxies/vnc/codec/server-encoder.ts'
import { GuestCompositor, UPDATE_INTERVAL_MS } from '../../../../proxies/vnc/guests/compositor.ts'
import type { FromThread } from '../../../../proxies/vnc/guests/messages.ts'
import { GraphicsTap, MAX_UNDRAWN } from '../../../../proxies/vnc/guests/tap.ts'
import { UPDATE_PIXELS } from '../../../../proxies/vnc/guests/view.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { encodePointer } from '../../../../recordings/decode/graphics/events.ts'
import { RfbPainter } from '../../../../recordings/decode/graphics/rfb/painter.ts'

const SIZE = { width: 150, height: 90 }
const FORMATS: Record<string, PixelFormat> = {
  '32 bits': RGB888,
  '32 bits, colours in the upper bytes': { ...RGB888, redShift: 24, greenShift: 16, blueShift: 8 },
  '32 bits, big-endian': { ...RGB888, isBigEndian: true },
  '16 bits': {
    ...RGB888,
    bitsPerPixel: 16,
    depth: 16,
    redMax: 31,
    greenMax: 63,
    blueMax: 31,
    redShift: 11,
    greenShift: 5,
  },
  '8 bits': {
    ...RGB888,
    bitsPerPixel: 8,
    depth: 8,
    redMax: 7,
    greenMax: 7,
    blueMax: 3,
    redShift: 0,
    greenShift: 3,
    blueShift: 6,
  },
  'a colour map': { ...RGB888, bitsPerPixel: 8, depth: 8, isTrueColour: false },
}

/** Returns one update of Raw in RGB888. */
function raw(x: number, y: number, width: number, height: number, colour: (at: number) => number): Buffer {
  const pixels = Buffer.alloc(4 * width * height)
  for (let at = 0; at < width * height; at++) pixels.writeUInt32LE(colour(at), 4 * at)
  return Buffer.concat([
    encodeUpdateHeader(1),
    encodeRectangleHeader({ x, y, width, height }, ENCODING.RAW),
    pixels,
  ])
}

/** A compositor whose clock the test sets, and guests that read their updates. */
function setting(size = SIZE) {
  let now = 0
  const due: { at: number; call: () => void }[] = []
  const posted: FromThread[] = []
  const viewers = new Map<number, RfbPainter>()
  const desk = new GuestCompositor({
    post(message) {
      posted.push(message)
      if (message.kind !== 'update') return
      viewers.get(message.guest)!.apply({ type: FRAME.graphics, payload: message.bytes })
      expect(viewers.get(message.guest)!.stopped).toBeUndefined()
    },
    after: (milliseconds, call) => due.push({ at: now + milliseconds, call }),
    now: () => now,
  })
  desk.take({ kind: 'begin', ...size })
  desk.take({ kind: 'frame', type: FRAME.pixelFormat, payload: encodePixelFormat(RGB888) })
  return {
    desk,
    posted,
    updates: () => posted.filter(({ kind }) => kind === 'update').length,
    pass(milliseconds = UPDATE_INTERVAL_MS) {
      now += milliseconds
      for (const { call } of due.splice(0).filter(({ at }) => at <= now)) call()
    },
    draw: (graphics: Uint8Array) => desk.take({ kind: 'frame', type: FRAME.graphics, payload: graphics }),
    join(guest: number, format: PixelFormat, encodings: number[], its = size) {
      const viewer = new RfbPainter(its)
      viewer.apply({ type: FRAME.pixelFormat, payload: encodePixelFormat(format) })
      viewers.set(guest, viewer)
      desk.take({ kind: 'join', guest, ...its })
      desk.take({ kind: 'format', guest, format })
      desk.take({ kind: 'encodings', guest, encodings })
      return viewer.framebuffer
    },
    request: (guest: number, isIncremental: boolean) =>
      desk.take({ kind: 'request', guest, isIncremental, area: { x: 0, y: 0, ...size } }),
  }
}

/** Returns the nearest colour of the format, of 8 bits per part. */
function shownAs(colour: number, format: PixelFormat): number {
  const maxima = format.isTrueColour ? [format.redMax, format.greenMax, format.blueMax] : [7, 7, 3]
  const part = (shift: number, max: number) =>
    Math.round((Math.floor((((colour >> shift) & 255) * max + 127) / 255) * 255) / max)
  return part(16, maxima[0]!) | (part(8, maxima[1]!) << 8) | (part(0, maxima[2]!) << 16)
}

/** Equal but for the rounding of a part with few bits. */
const isNear = (one: number, other: number) =>
  [0, 8, 16].every((shift) => Math.abs(((one >> shift) & 255) - ((other >> shift) & 255)) <= 1)

const picture = fc
  .record({
    seed: fc.integer(),
    colours: fc.constantFrom(1, 2, 3, 16, 17, 5000),
    shape: fc.constantFrom(1, 7, 40),
  })
  .map(({ seed, colours, shape }) => (at: number) => {
    const place = Math.floor((at % SIZE.width) / shape) + 91 * Math.floor(at / SIZE.width / shape)
    return Math.imul((Math.imul(place + seed, 2654435761) >>> 8) % colours, 0x9e3779b1) & 0xffffff
  })

describe('guests', () => {
  test('see every pixel, whatever their format and encoding', () => {
    const encodings = fc.constantFrom<number[]>(
      [],
      [ENCODING.ZRLE],
      [ENCODING.TIGHT, ENCODING.ZRLE, ENCODING.CURSOR],
    )
    fc.assert(
      fc.property(
        picture,
        picture,
        fc.constantFrom(...Object.keys(FORMATS)),
        encodings,
        (one, other, name, know) => {
          const { draw, join, request, pass } = setting()
          const format = FORMATS[name]!
          draw(raw(0, 0, SIZE.width, SIZE.height, one))
          const seen = join(1, format, know)
          request(1, false)
          draw(raw(40, 30, 70, 50, other))
          for (let more = 0; more < 3; more++) {
            pass()
            request(1, true)
          }
          for (let y = 0; y < SIZE.height; y++) {
            for (let x = 0; x < SIZE.width; x++) {
              const isOther = x >= 40 && x < 110 && y >= 30 && y < 80
              const colour = isOther ? other((y - 30) * 70 + x - 40) : one(y * SIZE.width + x)
              if (!isNear(seen.pixels[y * SIZE.width + x]!, shownAs(colour, format))) {
                expect.fail(`${name}: the pixel at ${x}, ${y}`)
              }
            }
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  test('are sent nothing that they have not asked for, and no more often than agreed', () => {
    const { draw, join, request, pass, updates } = setting()
    join(1, RGB888, [ENCODING.ZRLE])
    join(2, RGB888, [])
    request(1, false)
    expect(updates()).toBe(1)
    for (let more = 0; more < 20; more++) {
      request(1, true)
      draw(raw(0, 0, 10, 10, () => more))
    }
    expect(updates()).toBe(1)
    pass()
    expect(updates()).toBe(2)
    request(1, true)
    pass()
    expect(updates(), 'nothing has changed').toBe(2)
  })

  test('see a pointer that moves, and no trace of where it was', () => {
    const { desk, draw, join, request, pass } = setting()
    const white = raw(0, 0, SIZE.width, SIZE.height, () => 0xffffff)
    const cursor = Buffer.concat([
      encodeUpdateHeader(1),
      encodeRectangleHeader({ x: 0, y: 0, width: 2, height: 2 }, ENCODING.CURSOR),
      Buffer.alloc(16),
      Buffer.of(0xc0, 0xc0),
    ])
    draw(Buffer.concat([white, cursor]))
    const seen = join(1, RGB888, [ENCODING.ZRLE])
    request(1, false)
    for (const x of [10, 100]) {
      const payload = encodePointer({ participant: 0, buttons: 0, x, y: 20 })
      desk.take({ kind: 'frame', type: FRAME.pointer, payload })
      pass()
      request(1, true)
      pass()
      const black = [...seen.pixels].flatMap((pixel, at) => ((pixel & 0xffffff) === 0 ? [at] : []))
      const at = 20 * SIZE.width + x
      expect(black).toEqual([at, at + 1, at + SIZE.width, at + SIZE.width + 1])
    }
  })

  test('are told another size, where their viewers take it; others see what fits', () => {
    const { draw, join, request, pass } = setting()
    const flexible = join(1, RGB888, [ENCODING.ZRLE, ENCODING.DESKTOP_SIZE])
    const fixed = join(2, RGB888, [ENCODING.ZRLE])
    const larger = encodeRectangleHeader({ x: 0, y: 0, width: 300, height: 200 }, ENCODING.DESKTOP_SIZE)
    draw(Buffer.concat([encodeUpdateHeader(1), larger]))
    draw(raw(0, 0, 300, 200, () => 0xffffff))
    for (let more = 0; more < 3; more++) {
      request(1, false)
      request(2, false)
      pass()
    }
    expect([flexible.width, flexible.height]).toEqual([300, 200])
    expect([fixed.width, fixed.height]).toEqual([SIZE.width, SIZE.height])
    for (const seen of [flexible, fixed])
      expect(seen.pixels.every((pixel) => (pixel & 0xffffff) === 0xffffff)).toBe(true)
  })

  test('get a large desktop in several updates', () => {
    const size = { width: 2000, height: 1500 }
    const { draw, join, request, pass, posted } = setting(size)
    draw(raw(0, 0, size.width, size.height, () => 0xffffff))
    const seen = join(1, RGB888, [])
    for (let more = 0; more < 5; more++) {
      request(1, more > 0)
      pass()
    }
    expect(seen.pixels.every((pixel) => (pixel & 0xffffff) === 0xffffff)).toBe(true)
    for (const message of posted) {
      if (message.kind === 'update') expect(message.bytes.length).toBeLessThan(5 * UPDATE_PIXELS)
    }
  })

  test('keep what they saw while the desktop is begun anew', () => {
    const { desk, draw, join, request, pass } = setting()
    draw(raw(0, 0, SIZE.width, SIZE.height, () => 0xffffff))
    const seen = join(1, RGB888, [ENCODING.ZRLE])
    request(1, false)
    desk.take({ kind: 'begin', ...SIZE })
    pass()
    request(1, false)
    pass()
    expect(seen.pixels.every((pixel) => (pixel & 0xffffff) === 0xffffff)).toBe(true)
  })

  test('what cannot be drawn is told, and nobody is sent anything more', () => {
    const { draw, join, request, posted, updates } = setting()
    join(1, RGB888, [])
    draw(raw(100, 0, 100, 10, () => 1))
    expect(posted.find(({ kind }) => kind === 'stopped')).toBeDefined()
    request(1, false)
    expect(updates()).toBe(0)
  })
})

describe('what goes to the thread', () => {
  function tapped(isInUpdate: boolean) {
    const stream = { width: 10, height: 10, isInUpdate }
    const posted: string[] = []
    let asked = 0
    const tap = new GraphicsTap(
      {
        stream,
        post: (message) =>
          posted.push(message.kind === 'frame' ? `${message.type} ${message.payload.length}` : message.kind),
        askForAll: () => asked++,
      },
      RGB888,
    )
    const update = (encoding: number, bytes = 10) => {
      stream.isInUpdate = true
      tap.begin({ kind: 'update', rectangles: 1 })
      tap.bytes(Buffer.alloc(4))
      tap.begin({ kind: 'rectangle', x: 0, y: 0, width: 1, height: 1, encoding })
      tap.bytes(Buffer.alloc(bytes))
      stream.isInUpdate = false
      tap.updateEnd()
      tap.flush()
    }
    return { tap, posted, stream, update, asked: () => asked }
  }
  const FORMAT = `${FRAME.pixelFormat} 16`
  const graphics = (bytes: number) => `${FRAME.graphics} ${bytes}`

  test('begins with the first whole update', () => {
    const { posted, update } = tapped(true)
    update(ENCODING.TIGHT)
    expect(posted).toEqual(['begin', FORMAT])
    update(ENCODING.RAW)
    expect(posted).toEqual(['begin', FORMAT, graphics(14)])
  })

  test('begins anew after a rectangle that needs what came before', () => {
    const { posted, update, asked } = tapped(false)
    update(ENCODING.ZRLE)
    expect(posted).toEqual(['begin', FORMAT, 'begin', FORMAT])
    expect(asked()).toBe(1)
    update(ENCODING.HEXTILE)
    expect(posted.at(-1)).toBe(graphics(14))
  })

  test('leaves updates out while the thread is behind, and begins anew when it is not', () => {
    const { tap, posted, update, asked } = tapped(false)
    for (let sent = 0; sent <= MAX_UNDRAWN; sent += 8 << 20) update(ENCODING.RAW, 8 << 20)
    const before = posted.length
    update(ENCODING.RAW)
    expect(posted).toHaveLength(before)
    expect(asked()).toBe(0)
    tap.drawn(MAX_UNDRAWN - (8 << 20))
    expect(posted.slice(before)).toEqual(['begin', FORMAT])
    expect(asked()).toBe(1)
  })
})
