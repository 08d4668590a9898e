import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { CUT_TEXT_LIMIT } from '../../../../proxies/vnc/codec/limits.ts'
import { type PixelFormat, RGB888 } from '../../../../proxies/vnc/codec/pixel-format.ts'
import {
  encodeBell,
  encodeColourMap,
  encodeDesktopName,
  encodeDesktopSize,
  encodeExtendedDesktopSize,
  encodeExtendedServerCutText,
} from '../../../../proxies/vnc/codec/server-encoder.ts'
import { encodeEndOfContinuousUpdates, encodeServerCutText, encodeServerFence } from './encoders.ts'
import { compactLength, rectangle, tell, uint32, update } from './streams.ts'

const SCREEN = { width: 100, height: 80 }
const RGB565: PixelFormat = {
  ...RGB888,
  bitsPerPixel: 16,
  depth: 16,
  redMax: 31,
  greenMax: 63,
  blueMax: 31,
  redShift: 11,
  greenShift: 5,
  blueShift: 0,
}
const RGB332: PixelFormat = {
  ...RGB888,
  bitsPerPixel: 8,
  depth: 8,
  redMax: 7,
  greenMax: 7,
  blueMax: 3,
  redShift: 5,
  greenShift: 2,
  blueShift: 0,
}
const area = { x: 2, y: 3, width: 20, height: 17 }
const filled = (length: number) => Buffer.alloc(length, 0xa5)

/** Each is one rectangle's data; a bell behind it shows that its end was found. */
const RECTANGLES: [name: string, encoding: number, format: PixelFormat, data: Buffer][] = [
  ['raw', ENCODING.RAW, RGB888, filled(20 * 17 * 4)],
  ['raw of 16 bits', ENCODING.RAW, RGB565, filled(20 * 17 * 2)],
  ['copied', ENCODING.COPY_RECT, RGB888, Buffer.of(0, 80, 0, 63)],
  ['RRE without subrectangles', ENCODING.RRE, RGB888, Buffer.concat([uint32(0), filled(4)])],
  ['RRE', ENCODING.RRE, RGB565, Buffer.concat([uint32(3), filled(2 + 3 * 10)])],
  [
    'hextile',
    ENCODING.HEXTILE,
    RGB888,
    Buffer.concat([
      // 16 × 16, with background, foreground and two subrectangles.
      Buffer.of(0x0e),
      filled(8),
      Buffer.of(2),
      filled(4),
      // 4 × 16, raw: the other bits are ignored.
      Buffer.of(0x1f),
      filled(4 * 16 * 4),
      // 16 × 1, of three colours.
      Buffer.of(0x1a),
      filled(4),
      Buffer.of(3),
      filled(3 * 6),
      // 4 × 1, as before it.
      Buffer.of(0),
    ]),
  ],
  ['zlib', ENCODING.ZLIB, RGB888, Buffer.concat([uint32(9), filled(9)])],
  ['ZRLE', ENCODING.ZRLE, RGB888, Buffer.concat([uint32(300), filled(300)])],
  ['tight, one colour of 3 bytes', ENCODING.TIGHT, RGB888, Buffer.of(0x80, 1, 2, 3)],
  ['tight, one colour of 4 bytes', ENCODING.TIGHT, { ...RGB888, depth: 32 }, Buffer.of(0x8f, 1, 2, 3, 4)],
  [
    'tight, compressed',
    ENCODING.TIGHT,
    RGB888,
    Buffer.concat([Buffer.of(0x30), compactLength(5), filled(5)]),
  ],
  [
    'tight, two bytes of length',
    ENCODING.TIGHT,
    RGB888,
    Buffer.concat([Buffer.of(0x00), compactLength(1000), filled(1000)]),
  ],
  [
    'tight, a filter that changes nothing',
    ENCODING.TIGHT,
    RGB888,
    Buffer.concat([Buffer.of(0x40, 0), compactLength(200), filled(200)]),
  ],
  [
    'tight, gradient',
    ENCODING.TIGHT,
    RGB565,
    Buffer.concat([Buffer.of(0x50, 2), compactLength(127), filled(127)]),
  ],
  [
    'tight, two colours',
    ENCODING.TIGHT,
    RGB888,
    Buffer.concat([Buffer.of(0x60, 1, 1), filled(6), compactLength(8), filled(8)]),
  ],
  [
    'tight, 256 colours of one byte',
    ENCODING.TIGHT,
    RGB332,
    Buffer.concat([Buffer.of(0x70, 1, 255), filled(256), compactLength(128), filled(128)]),
  ],
  [
    'tight, JPEG',
    ENCODING.TIGHT,
    RGB888,
    Buffer.concat([Buffer.of(0x90), compactLength(2000), filled(2000)]),
  ],
]

describe('a rectangle ends where its data does', () => {
  test.each(RECTANGLES)('%s', (_name, encoding, format, data) => {
    const bytes = Buffer.concat([update(rectangle(area, encoding, data)), encodeBell()])
    const { events } = tell([bytes], { ...SCREEN, format })
    expect(events).toEqual([
      ['update', { kind: 'update', rectangles: 1 }, '00000001'],
      [
        'rectangle',
        { kind: 'rectangle', ...area, encoding },
        rectangle(area, encoding, data).toString('hex'),
      ],
      ['end'],
      ['bell', { kind: 'bell' }, '02'],
    ])
  })

  test('the same, byte by byte', () => {
    for (const [name, encoding, format, data] of RECTANGLES) {
      const bytes = Buffer.concat([update(rectangle(area, encoding, data)), encodeBell()])
      const whole = tell([bytes], { ...SCREEN, format }).events
      const single = tell(
        [...bytes].map((byte) => Uint8Array.of(byte)),
        { ...SCREEN, format },
      ).events
      expect(single, name).toEqual(whole)
    }
  })

  test('tight: less than 12 bytes are not compressed', () => {
    const small = { x: 0, y: 0, width: 3, height: 1 }
    const bytes = Buffer.concat([
      update(
        rectangle(small, ENCODING.TIGHT, Buffer.of(0x00), filled(9)),
        rectangle({ ...small, width: 16, height: 5 }, ENCODING.TIGHT, Buffer.of(0x40, 1, 1), filled(6 + 10)),
      ),
      encodeBell(),
    ])
    expect(tell([bytes], SCREEN).events.map(([kind]) => kind)).toEqual([
      'update',
      'rectangle',
      'rectangle',
      'end',
      'bell',
    ])
  })
})

test('rectangles without pixels', () => {
  const cursor = { x: 1, y: 1, width: 9, height: 2 }
  const screens = [{ id: 1, x: 0, y: 0, width: 50, height: 40, flags: 0 }]
  const none = { x: 0, y: 0, width: 0, height: 0 }
  const rectangles = [
    rectangle(cursor, ENCODING.CURSOR, filled(9 * 2 * 4 + 2 * 2)),
    rectangle(cursor, ENCODING.X_CURSOR, filled(6 + 2 * 2 * 2)),
    rectangle(none, ENCODING.X_CURSOR),
    rectangle(cursor, ENCODING.CURSOR_WITH_ALPHA, uint32(ENCODING.RAW), filled(9 * 2 * 4)),
    encodeDesktopName('Büro'),
    rectangle(none, ENCODING.QEMU_LED, Buffer.of(5)),
    rectangle(none, ENCODING.QEMU_KEY),
    rectangle(none, ENCODING.EXTENDED_MOUSE_BUTTONS),
    // A refused request changes nothing, whatever size it has.
    encodeExtendedDesktopSize(1, 3, 0, 0, []),
    encodeExtendedDesktopSize(0, 0, 50, 40, screens),
  ]
  const told = tell([update(...rectangles), encodeBell()], SCREEN)
  expect(told.events.filter(([kind]) => kind === 'rectangle').map((event) => event[2])).toEqual(
    rectangles.map((bytes) => bytes.toString('hex')),
  )
  expect(told.events.at(-1)?.[0]).toBe('bell')
  expect([told.stream.width, told.stream.height]).toEqual([50, 40])
  expect(tell([update(encodeDesktopSize(30, 20))], SCREEN).stream.width).toBe(30)
})

test('other messages come in one piece, whatever they were cut into', () => {
  const bytes = Buffer.concat([
    encodeColourMap(250, [{ red: 1, green: 2, blue: 3 }]),
    encodeServerCutText(Buffer.from('Grüße', 'latin1')),
    encodeExtendedServerCutText(0x10000001, filled(20)),
    encodeServerFence(0x80000001, Buffer.from('nonce')),
    encodeEndOfContinuousUpdates(),
  ])
  const told = tell(
    [...bytes].map((byte) => Uint8Array.of(byte)),
    SCREEN,
  )
  expect(told.pieces).toBe(1)
  expect(told.events.map((event) => event[1])).toEqual([
    { kind: 'colour-map', first: 250, count: 1 },
    { kind: 'cut-text', length: 5 },
    { kind: 'extended-cut-text', flags: 0x10000001 },
    { kind: 'fence', flags: 0x80000001 },
    { kind: 'end-of-continuous-updates' },
  ])
  expect(told.events.map((event) => event[2]).join('')).toBe(bytes.toString('hex'))
})

test('an update ends with its last rectangle, or with a LastRect', () => {
  const last = rectangle({ x: 0, y: 0, width: 0, height: 0 }, ENCODING.LAST_RECT)
  const raw = rectangle({ x: 0, y: 0, width: 1, height: 1 }, ENCODING.RAW, filled(4))
  const told = tell([Buffer.from('0000ffff', 'hex'), raw, raw, last, update(), encodeBell()], SCREEN)
  expect(told.events.map(([kind]) => kind)).toEqual([
    'update',
    'rectangle',
    'rectangle',
    'rectangle',
    'end',
    'update',
    'end',
    'bell',
  ])
})

test('another pixel format begins with the next update', () => {
  const one = { x: 0, y: 0, width: 1, height: 1 }
  const { stream, events } = tell([], SCREEN)
  stream.feed(Buffer.from('00000002', 'hex'))
  stream.setPixelFormat(RGB565)
  stream.feed(rectangle(one, ENCODING.RAW, filled(4)))
  stream.feed(rectangle(one, ENCODING.RAW, filled(4)))
  stream.feed(update(rectangle(one, ENCODING.RAW, filled(2))))
  stream.feed(encodeBell())
  expect(events.at(-1)?.[0]).toBe('bell')
})

describe('refused', () => {
  const header = (x: number, y: number, width: number, height: number, encoding: number = ENCODING.RAW) =>
    update(rectangle({ x, y, width, height }, encoding))
  const data = (encoding: number, ...bytes: number[]) => update(rectangle(area, encoding, Buffer.from(bytes)))
  const cases: [what: string, bytes: Buffer, words: RegExp][] = [
    ['a rectangle past the right edge', header(81, 0, 20, 1), /inside 100 × 80 .* 20 × 1 at 81, 0/],
    ['a rectangle past the bottom', header(0, 80, 1, 1), /inside 100 × 80/],
    ['a rectangle of 65535 × 65535', header(0, 0, 65535, 65535), /65535 × 65535/],
    ['a source outside', data(ENCODING.COPY_RECT, 0, 81, 0, 0), /source of a copied rectangle/],
    ['a screen of 65535 × 65535', header(0, 0, 65535, 65535, ENCODING.DESKTOP_SIZE), /a screen of/],
    ['a screen of nothing', header(0, 0, 0, 10, ENCODING.EXTENDED_DESKTOP_SIZE), /a screen of/],
    ['a cursor that is larger than any', header(0, 0, 513, 1, ENCODING.CURSOR), /512 pixels a side/],
    ['an alpha cursor that is compressed', data(ENCODING.CURSOR_WITH_ALPHA, 0, 0, 0, 16), /found zrle/],
    ['a name of 4 GiB', data(ENCODING.DESKTOP_NAME, 255, 255, 255, 255), /4096 bytes/],
    ['zlib data of 4 GiB', data(ENCODING.ZLIB, 255, 255, 255, 255), /found 4294967295/],
    ['ZRLE data of 4 GiB', data(ENCODING.ZRLE, 255, 255, 255, 255), /found 4294967295/],
    [
      'more subrectangles than pixels',
      data(ENCODING.RRE, 0, 0, 1, 0x55),
      /340 pixels was expected, found 341/,
    ],
    ['a hextile mask of zlibhex', data(ENCODING.HEXTILE, 0x20), /found 32/],
    ['tight with PNG', data(ENCODING.TIGHT, 0xa0), /found 10/],
    ['a filter that nobody knows', data(ENCODING.TIGHT, 0x40, 3), /found 3/],
    ['4 MiB for little', data(ENCODING.TIGHT, 0x90, 255, 255, 255), /found 4194303/],
    ['a message that nobody knows', Buffer.of(7), /type 7/],
    ['a text of 4 GiB', Buffer.from('0300000080000000', 'hex'), /found 2147483648/],
    ['a text past the limit', encodeServerCutText(Buffer.alloc(CUT_TEXT_LIMIT + 1)), /4194304 bytes/],
    ['a fence of 65 bytes', encodeServerFence(0, Buffer.alloc(65)), /64 bytes/],
  ]
  test.each(cases)('%s', (_what, bytes, words) => {
    const refusal = expect(() => tell([bytes], SCREEN))
    refusal.toThrow(MalformedError)
    refusal.toThrow(words)
  })

  test('what nobody asked for', () => {
    const extended = encodeExtendedServerCutText(1, Buffer.alloc(0))
    const unasked: Buffer[] = [
      data(ENCODING.TIGHT, 0x80, 1, 2, 3),
      header(0, 0, 50, 50, ENCODING.DESKTOP_SIZE),
      encodeServerFence(0, Buffer.alloc(0)),
      encodeEndOfContinuousUpdates(),
    ]
    for (const bytes of unasked) {
      expect(() => tell([bytes], SCREEN, [])).toThrow(/asked for/)
      expect(() => tell([bytes], SCREEN)).not.toThrow()
    }
    expect(() => tell([extended], SCREEN, [])).toThrow(/4294967292/)
  })

  test('JPEG and gradients for pixels of 8 bits', () => {
    for (const bytes of [data(ENCODING.TIGHT, 0x90), data(ENCODING.TIGHT, 0x40, 2)]) {
      expect(() => tell([bytes], { ...SCREEN, format: RGB332 })).toThrow(/16 or 32 bits/)
    }
  })
})
