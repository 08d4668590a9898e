import { Buffer } from 'node:buffer'
import { deflateRawSync, deflateSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ENCODING } from '../../../../../proxies/vnc/codec/encodings.ts'
import { encodePixelFormat, RGB888 } from '../../../../../proxies/vnc/codec/pixel-format.ts'
import { FRAME } from '../../../../../recordings/container/frames.ts'
import { encodePointer } from '../../../../../recordings/decode/graphics/events.ts'
import { MAX_PIXELS } from '../../../../../recordings/decode/graphics/framebuffer.ts'
import { RfbPainter } from '../../../../../recordings/decode/graphics/rfb/painter.ts'
import { compactLength, rectangle, uint32, update } from '../../../../proxies/vnc/codec/streams.ts'

const SIZE = { width: 8, height: 4 }
const ALL = { x: 0, y: 0, ...SIZE }
/** Blue, green, red, unused: as in RGB888. */
const RED = Buffer.of(0, 0, 255, 0)
const GREEN = Buffer.of(0, 255, 0, 0)
const BLUE = Buffer.of(255, 0, 0, 0)

function painterOf(size = SIZE, format = RGB888): RfbPainter {
  const painter = new RfbPainter(size)
  painter.apply({ type: FRAME.pixelFormat, payload: encodePixelFormat(format) })
  return painter
}

function drawn(...graphics: Uint8Array[]): RfbPainter {
  const painter = painterOf()
  for (const payload of graphics) painter.apply({ type: FRAME.graphics, payload })
  return painter
}

/** Returns a letter for each pixel. */
function shown(painter: RfbPainter): string[] {
  const { width, height, pixels } = painter.picture()
  const letters = new Map([
    [0xff000000, '.'],
    [0xff808080, '#'],
    [0xff0000ff, 'r'],
    [0xff00ff00, 'g'],
    [0xffff0000, 'b'],
  ])
  return Array.from({ length: height }, (_, y) =>
    Array.from({ length: width }, (_, x) => letters.get(pixels[y * width + x]!) ?? '?').join(''),
  )
}

const rre = (background: Buffer, ...inner: { colour: Buffer; at: readonly number[] }[]) =>
  Buffer.concat([
    uint32(inner.length),
    background,
    ...inner.flatMap(({ colour, at }) => [colour, Buffer.from(at.flatMap((value) => [0, value]))]),
  ])
const filled = (colour: Buffer) => update(rectangle(ALL, ENCODING.RRE, rre(colour)))

test('rectangles are painted, copied, and said to have changed', () => {
  const painter = drawn(
    update(rectangle(ALL, ENCODING.RRE, rre(RED, { colour: GREEN, at: [0, 0, 2, 1] }))),
    update(rectangle({ x: 5, y: 2, width: 2, height: 1 }, ENCODING.COPY_RECT, Buffer.of(0, 0, 0, 0))),
  )
  expect(shown(painter)).toEqual(['ggrrrrrr', 'rrrrrrrr', 'rrrrrggr', 'rrrrrrrr'])
  painter.framebuffer.takeDirty()
  painter.apply({ type: FRAME.graphics, payload: filled(BLUE) })
  expect(painter.framebuffer.takeDirty()).toEqual([ALL])
  expect(painter.framebuffer.takeDirty()).toEqual([])
})

test('a copy onto itself moves what was there', () => {
  const columns = rre(RED, { colour: GREEN, at: [0, 0, 1, 4] }, { colour: BLUE, at: [1, 0, 1, 1] })
  const moved = { x: 1, y: 1, width: 7, height: 3 }
  const painter = drawn(
    update(rectangle(ALL, ENCODING.RRE, columns)),
    update(rectangle(moved, ENCODING.COPY_RECT, Buffer.of(0, 0, 0, 0))),
  )
  expect(shown(painter)).toEqual(['gbrrrrrr', 'ggbrrrrr', 'ggrrrrrr', 'ggrrrrrr'])
})

test('bytes that come one by one paint the same', () => {
  const bytes = update(
    rectangle(ALL, ENCODING.ZRLE, zlibbed(Buffer.of(2, 0, 0, 255, 0, 255, 0, 0xaa, 0x55, 0xff, 0))),
    rectangle({ x: 1, y: 1, width: 6, height: 2 }, ENCODING.HEXTILE, Buffer.of(2), BLUE),
  )
  const once = shown(drawn(bytes))
  expect(once).toEqual(['grgrgrgr', 'rbbbbbbg', 'gbbbbbbg', 'rrrrrrrr'])
  expect(shown(drawn(...Array.from(bytes, (byte) => Buffer.of(byte))))).toEqual(once)
})

test('the desktop changes its size and keeps what it can', () => {
  const painter = drawn(
    filled(RED),
    update(rectangle({ x: 0, y: 0, width: 4, height: 5 }, ENCODING.DESKTOP_SIZE)),
  )
  expect(shown(painter)).toEqual(['rrrr', 'rrrr', 'rrrr', 'rrrr', '....'])
  const screen = Buffer.concat([Buffer.of(1, 0, 0, 0), Buffer.alloc(16)])
  const refused = rectangle({ x: 1, y: 3, width: 0, height: 0 }, ENCODING.EXTENDED_DESKTOP_SIZE, screen)
  painter.apply({ type: FRAME.graphics, payload: update(refused) })
  expect(painter.framebuffer).toMatchObject({ width: 4, height: 5 })
  const changed = rectangle({ x: 0, y: 0, width: 2, height: 2 }, ENCODING.EXTENDED_DESKTOP_SIZE, screen)
  painter.apply({ type: FRAME.graphics, payload: update(changed) })
  expect(shown(painter)).toEqual(['rr', 'rr'])
})

test('an update ends with LastRect, and what paints nothing is passed over', () => {
  const many = Buffer.concat([
    Buffer.of(0, 0, 0xff, 0xff),
    rectangle(ALL, ENCODING.RRE, rre(RED)),
    rectangle(ALL, ENCODING.DESKTOP_NAME, uint32(3), Buffer.from('abc')),
    rectangle(ALL, ENCODING.QEMU_LED, Buffer.of(1)),
    rectangle(ALL, ENCODING.LAST_RECT),
    filled(GREEN),
  ])
  const painter = drawn(many)
  expect(painter.stopped).toBeUndefined()
  expect(shown(painter)[0]).toBe('gggggggg')
})

test.each([
  ['Cursor', ENCODING.CURSOR, Buffer.concat([RED, GREEN, BLUE, RED, Buffer.of(0b1100_0000, 0b0100_0000)])],
  ['X Cursor', ENCODING.X_CURSOR, Buffer.of(255, 0, 0, 0, 255, 0, 0b1000_0000, 0b1000_0000, 0xc0, 0x40)],
  [
    'Cursor With Alpha',
    ENCODING.CURSOR_WITH_ALPHA,
    Buffer.of(0, 0, 0, 0, 255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 0, 0, 0, 255, 0, 255),
  ],
])('the pointer is drawn where it points: %s', (name, encoding, data) => {
  const cursor = rectangle({ x: 1, y: 0, width: 2, height: 2 }, encoding, data)
  const painter = drawn(update(cursor))
  expect(shown(painter)[1]).toBe('........')
  painter.apply({ type: FRAME.pointer, payload: encodePointer({ participant: 0, buttons: 0, x: 3, y: 1 }) })
  expect(shown(painter).slice(1, 3)).toEqual(['..rg....', name === 'Cursor' ? '...r....' : '...g....'])
  expect(painter.framebuffer.pixels.every((pixel) => pixel === 0xff000000)).toBe(true)
  painter.apply({ type: FRAME.pointer, payload: encodePointer({ participant: 0, buttons: 0, x: 0, y: 0 }) })
  expect(shown(painter)[0]).toBe('g.......')
  painter.apply({ type: FRAME.pointer, payload: encodePointer({ participant: 0, buttons: 0, x: 99, y: 99 }) })
  expect(painter.stopped).toBeUndefined()
})

test('colours of a map are those that were set', () => {
  const mapped = { ...RGB888, bitsPerPixel: 8, depth: 8, isTrueColour: false } as const
  const painter = painterOf(SIZE, mapped)
  const map = Buffer.of(1, 0, 0, 7, 0, 2, 255, 255, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0)
  const fill = (value: number) => update(rectangle(ALL, ENCODING.RRE, uint32(0), Buffer.of(value)))
  // A format applies from the next message on, so a message must precede the map.
  painter.apply({ type: FRAME.graphics, payload: Buffer.concat([fill(0), map, fill(8)]) })
  expect(shown(painter)[0]).toBe('gggggggg')
  const restored = RfbPainter.restore(JSON.parse(JSON.stringify(painter.snapshot())), painter.framebuffer)
  restored.apply({ type: FRAME.graphics, payload: fill(7) })
  expect(shown(restored)[0]).toBe('rrrrrrrr')
})

test('a pixel format that comes in the middle of a message holds from the next one on', () => {
  const small = { ...RGB888, bitsPerPixel: 8, depth: 8, redMax: 7, greenMax: 7, blueMax: 3 } as const
  const format = encodePixelFormat({ ...small, redShift: 0, greenShift: 3, blueShift: 6 })
  const painter = painterOf()
  const bytes = filled(RED)
  painter.apply({ type: FRAME.graphics, payload: bytes.subarray(0, 18) })
  painter.apply({ type: FRAME.pixelFormat, payload: format })
  painter.apply({ type: FRAME.graphics, payload: bytes.subarray(18) })
  expect(shown(painter)[0]).toBe('rrrrrrrr')
  const green = update(rectangle(ALL, ENCODING.RRE, uint32(0), Buffer.of(7 << 3)))
  painter.apply({ type: FRAME.graphics, payload: green })
  expect(shown(painter)[0]).toBe('gggggggg')
})

function zlibbed(data: Uint8Array): Buffer {
  const bytes = deflateSync(data, { finishFlush: 2 })
  return Buffer.concat([uint32(bytes.length), bytes])
}

const beyond = { x: 4, y: 0, width: 5, height: 1 }
test.each([
  ['a rectangle beyond', rectangle(beyond, ENCODING.RRE, rre(RED)), /inside 8 × 4, got 5 × 1 at 4, 0/],
  [
    'a rectangle of 65535 × 65535',
    rectangle({ x: 0, y: 0, width: 65535, height: 65535 }, ENCODING.RAW),
    /got 65535 × 65535/,
  ],
  ['a copy from beyond', rectangle(ALL, ENCODING.COPY_RECT, Buffer.of(0, 1, 0, 0)), /inside/],
  [
    'a desktop that is too large',
    rectangle({ ...ALL, width: 65535, height: 65535 }, ENCODING.DESKTOP_SIZE),
    /desktop of/,
  ],
  ['a desktop of nothing', rectangle({ ...ALL, width: 0 }, ENCODING.DESKTOP_SIZE), /desktop of/],
  ['an encoding that is not drawn', rectangle(ALL, 15), /got 15/],
  ['a kind of Tight that there is none', rectangle(ALL, ENCODING.TIGHT, Buffer.of(0xf0)), /got 15/],
  ['a cursor that is too large', rectangle({ x: 0, y: 0, width: 513, height: 1 }, ENCODING.CURSOR), /512/],
  ['a name that is too long', rectangle(ALL, ENCODING.DESKTOP_NAME, uint32(0xffffffff)), /4096/],
])('%s stops the picture with its reason', (_name, bad, reason) => {
  const painter = drawn(filled(RED), update(bad), filled(GREEN))
  expect(painter.stopped).toMatch(reason)
  expect(painter.snapshot()).toBeUndefined()
  expect(painter.framebuffer).toMatchObject(SIZE)
})

test.each([
  [
    'a subrectangle beyond',
    rectangle(ALL, ENCODING.RRE, rre(RED, { colour: RED, at: [0, 0, 9, 1] })),
    /beyond/,
  ],
  ['a Hextile subrectangle beyond', rectangle(ALL, ENCODING.HEXTILE, Buffer.of(8, 1, 0x00, 0x0f)), /beyond/],
  ['no zlib', rectangle(ALL, ENCODING.ZLIB, uint32(4), Buffer.from('junk')), /cannot be inflated/],
  [
    'too little zlib',
    rectangle(ALL, ENCODING.ZLIB, zlibbed(Buffer.alloc(100))),
    /expected 32 bytes out of zlib, got 4/,
  ],
  [
    'a run beyond its tile',
    rectangle(ALL, ENCODING.ZRLE, zlibbed(Buffer.of(128, 1, 2, 3, 32))),
    /at most 32 pixels/,
  ],
  [
    'a place beyond a palette',
    rectangle(ALL, ENCODING.ZRLE, zlibbed(Buffer.of(130, 1, 2, 3, 4, 5, 6, 9))),
    /palette of 2/,
  ],
  ['a kind of tile that there is none', rectangle(ALL, ENCODING.ZRLE, zlibbed(Buffer.of(17))), /got 17/],
  [
    'a JPEG of another size',
    rectangle(ALL, ENCODING.TIGHT, Buffer.of(0x90), compactLength(jpeg(9, 4).length), jpeg(9, 4)),
    /JPEG of 8 × 4, got one of 9 × 4/,
  ],
  [
    'a JPEG of 65535 × 65535',
    rectangle(
      ALL,
      ENCODING.TIGHT,
      Buffer.of(0x90),
      compactLength(jpeg(65535, 65535).length),
      jpeg(65535, 65535),
    ),
    /got one of 65535 × 65535/,
  ],
  [
    'a progressive JPEG',
    rectangle(ALL, ENCODING.TIGHT, Buffer.of(0x90), compactLength(jpeg(8, 4, 0xc2).length), jpeg(8, 4, 0xc2)),
    /sequential/,
  ],
  [
    'a JPEG that is damaged',
    rectangle(ALL, ENCODING.TIGHT, Buffer.of(0x90), compactLength(jpeg(8, 4).length), jpeg(8, 4)),
    /JPEG/,
  ],
])('%s makes its rectangle grey, and the picture goes on', (_name, bad, reason) => {
  const bytes = update(bad)
  for (const pieces of [[bytes], Array.from(bytes, (byte) => Buffer.of(byte))]) {
    const painter = drawn(filled(RED), ...pieces)
    expect(painter.flaw).toMatch(reason)
    expect(shown(painter)).toEqual(Array(SIZE.height).fill('########'))
    expect(painter.framebuffer.takeDirty()).toEqual([ALL])
    painter.apply({ type: FRAME.graphics, payload: filled(GREEN) })
    expect(shown(painter)[3]).toBe('gggggggg')
    expect(painter.stopped).toBeUndefined()
    expect(painter.snapshot()).toBeDefined()
  }
})

/** Continues a stream that `zlibbed` has begun. */
function goingOn(data: Uint8Array): Buffer {
  const bytes = deflateRawSync(data, { finishFlush: 2 })
  return Buffer.concat([uint32(bytes.length), bytes])
}

test.each([
  ['a zlib bomb behind its pixels', Buffer.alloc(20 * 1024 * 1024), '........', 1],
  ['pixels that cannot be drawn', Buffer.concat([Buffer.of(17), Buffer.alloc(1024 * 1024)]), '########', 0],
])('a stream of zlib goes on after %s', (_name, data, row, pauses) => {
  const painter = painterOf()
  const bytes = update(rectangle(ALL, ENCODING.ZRLE, zlibbed(data)))
  let turns = 0
  for (let at = 0; at < bytes.length || painter.isPaused; turns++) at += painter.paint(bytes.subarray(at))
  expect(shown(painter)[0]).toBe(row)
  // The message, its rectangle, and pauses: a pixel's four bytes count as one painted pixel.
  expect(painter.painted).toBeGreaterThanOrEqual(data.length / 4 - 16)
  expect(turns).toBeGreaterThanOrEqual(pauses + 2)
  const green = Buffer.of(1, 0, 255, 0)
  painter.apply({
    type: FRAME.graphics,
    payload: update(rectangle(ALL, ENCODING.ZRLE, goingOn(green))),
  })
  expect(shown(painter)[0]).toBe('gggggggg')
})

test('a broken stream of zlib takes with it what goes through it, until it begins anew', () => {
  const tight = (control: number, data: Uint8Array) =>
    update(rectangle(ALL, ENCODING.TIGHT, Buffer.of(control), compactLength(data.length), data))
  const deflated = (...parts: number[]) =>
    deflateSync(Buffer.from(Array.from({ length: 32 }, () => parts).flat()), { finishFlush: 2 })
  const junk = Buffer.from('junk')
  const first = drawn(tight(0x00, junk))
  const restored = RfbPainter.restore(JSON.parse(JSON.stringify(first.snapshot())), first.framebuffer.clone())
  for (const painter of [first, restored]) {
    const after = (control: number, data: Uint8Array) => {
      painter.apply({ type: FRAME.graphics, payload: tight(control, data) })
      return shown(painter)[0]
    }
    expect(after(0x10, deflated(0, 255, 0))).toBe('gggggggg')
    expect(after(0x00, deflated(255, 0, 0))).toBe('########')
    expect(painter.flaw).toMatch(/broke off before/)
    expect(after(0x01, deflated(255, 0, 0))).toBe('rrrrrrrr')
    expect(after(0x01, junk)).toBe('########')
    expect(painter.stopped).toBeUndefined()
  }
})

/** Returns the head of a JPEG: no tables, no data. */
function jpeg(width: number, height: number, kind = 0xc0): Buffer {
  const frame = Buffer.of(8, height >> 8, height & 255, width >> 8, width & 255, 1, 1, 0x11, 0)
  return Buffer.concat([
    Buffer.of(0xff, 0xd8, 0xff, kind, 0, 2 + frame.length),
    frame,
    Buffer.of(0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 1, 2, 3, 0xff, 0xd9),
  ])
}

test('a desktop that is too large is refused', () => {
  expect(() => new RfbPainter({ width: MAX_PIXELS, height: 2 })).toThrow(/expected a desktop of 1 to/)
})

/** Returns red, green and blue of each pixel as the gradient filter writes them, at most `max`. */
function gradient(parts: readonly number[], width: number, max: readonly number[]): number[] {
  const at = (x: number, y: number, part: number) => (x < 0 || y < 0 ? 0 : parts[(y * width + x) * 3 + part]!)
  return parts.map((value, index) => {
    const part = index % 3
    const x = Math.floor(index / 3) % width
    const y = Math.floor(index / 3 / width)
    const guess = at(x - 1, y, part) + at(x, y - 1, part) - at(x - 1, y - 1, part)
    return (value - Math.min(max[part]!, Math.max(0, guess))) & max[part]!
  })
}

test('what went through the gradient filter of Tight comes out again', () => {
  const rgb565 = { ...RGB888, bitsPerPixel: 16, depth: 16, redMax: 31, greenMax: 63, blueMax: 31 } as const
  const tight = (pixels: Buffer) => {
    const deflated = deflateSync(pixels, { finishFlush: 2 })
    return update(
      rectangle(ALL, ENCODING.TIGHT, Buffer.of(0x40, 2), compactLength(deflated.length), deflated),
    )
  }
  fc.assert(
    fc.property(
      fc.array(fc.nat(255), { minLength: 96, maxLength: 96 }),
      fc.boolean(),
      (parts, isBigEndian) => {
        const painter = drawn(tight(Buffer.from(gradient(parts, 8, [255, 255, 255]))))
        expect([...painter.framebuffer.bytes].filter((_, at) => at % 4 !== 3)).toEqual(parts)

        const max = [31, 63, 31]
        const small = parts.map((value, at) => value & max[at % 3]!)
        const pixels = Buffer.alloc(64)
        const written = gradient(small, 8, max)
        for (let pixel = 0; pixel < 32; pixel++) {
          const [red, green, blue] = written.slice(pixel * 3, pixel * 3 + 3) as [number, number, number]
          const value = (red << 11) | (green << 5) | blue
          if (isBigEndian) pixels.writeUInt16BE(value, pixel * 2)
          else pixels.writeUInt16LE(value, pixel * 2)
        }
        const other = painterOf(SIZE, { ...rgb565, redShift: 11, greenShift: 5, isBigEndian })
        other.apply({ type: FRAME.graphics, payload: tight(pixels) })
        const bytes = [...other.framebuffer.bytes].filter((_, at) => at % 4 !== 3)
        expect(bytes).toEqual(small.map((value, at) => Math.floor((value * 255) / max[at % 3]!)))
      },
    ),
    { numRuns: 50 },
  )
})

test('a few bytes that paint much are painted in turns', () => {
  const size = { width: 2048, height: 2048 }
  const all = { x: 0, y: 0, ...size }
  const painter = painterOf(size)
  const copies = Array.from({ length: 5 }, () => rectangle(all, ENCODING.COPY_RECT, Buffer.alloc(4)))
  const bytes = update(...copies)
  let turns = 0
  for (let at = 0; at < bytes.length || painter.isPaused; turns++) at += painter.paint(bytes.subarray(at))
  expect(turns).toBeGreaterThanOrEqual(5)
  expect(painter.painted).toBe(5 * 2048 * 2048)
})

test('whatever a target sends, the picture stops at most', () => {
  const encodings = fc.constantFrom(...Object.values(ENCODING))
  const side = fc.oneof(fc.nat(9), fc.nat(0xffff))
  const data = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc.uint8Array({ maxLength: 60 }).map((bytes) => new Uint8Array(zlibbed(bytes))),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => {
      const deflated = deflateSync(bytes, { finishFlush: 2 })
      return new Uint8Array(
        Buffer.concat([Buffer.of(bytes[0] ?? 0), compactLength(deflated.length), deflated]),
      )
    }),
    fc.uint8Array({ maxLength: 60 }).map((bytes) => {
      const whole = Buffer.concat([jpeg(8, 4), bytes])
      return new Uint8Array(Buffer.concat([Buffer.of(0x90), compactLength(whole.length), whole]))
    }),
  )
  const area = fc.oneof(fc.constant(ALL), fc.record({ x: side, y: side, width: side, height: side }))
  const one = fc.tuple(area, encodings, data).map(([at, encoding, bytes]) => rectangle(at, encoding, bytes))
  const format = fc.oneof(
    fc.constant(encodePixelFormat(RGB888)),
    fc.uint8Array({ minLength: 16, maxLength: 16 }),
  )
  fc.assert(
    fc.property(format, fc.array(one, { maxLength: 6 }), fc.nat(50), (pixels, rectangles, cut) => {
      const painter = new RfbPainter(SIZE)
      painter.apply({ type: FRAME.pixelFormat, payload: pixels })
      const bytes = update(...rectangles)
      painter.apply({ type: FRAME.graphics, payload: bytes.subarray(0, cut) })
      painter.apply({ type: FRAME.graphics, payload: bytes.subarray(cut) })
      painter.apply({ type: FRAME.graphics, payload: bytes })
      const { width, height } = painter.picture()
      for (const dirty of painter.framebuffer.takeDirty()) {
        expect(dirty.x + dirty.width).toBeLessThanOrEqual(width)
        expect(dirty.y + dirty.height).toBeLessThanOrEqual(height)
      }
    }),
    { numRuns: 400 },
  )
})
