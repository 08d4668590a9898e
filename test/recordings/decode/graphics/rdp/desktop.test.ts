/** Updates of RDP drawn on a desktop: bitmaps of every kind, palettes, pointers, and rejected data. */
import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { MalformedGraphics } from '../../../../../recordings/decode/graphics/malformed.ts'
import { RdpDesktop } from '../../../../../recordings/decode/graphics/rdp/desktop.ts'
import { decodeInterleaved } from '../../../../../recordings/decode/graphics/rdp/interleaved.ts'
import { decodePlanar } from '../../../../../recordings/decode/graphics/rdp/planar.ts'
import { MAX_CACHED_PIXELS } from '../../../../../recordings/decode/graphics/rdp/pointer.ts'
import { type BitmapOptions, bitmap, bitmapUpdate, paletteUpdate, pointer, words } from './updates.ts'

const CODE = {
  bitmap: 1,
  palette: 2,
  hidden: 5,
  default: 6,
  position: 8,
  colour: 9,
  cached: 10,
  new: 11,
  large: 12,
}
const COMPRESSED = 0x0001
const WITHOUT_HEADER = 0x0400
const [BLACK, RED, GREEN, BLUE, WHITE] = [0xff000000, 0xff0000ff, 0xff00ff00, 0xffff0000, 0xffffffff]

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')

function draw(desktop: RdpDesktop, code: number, data: Uint8Array): void {
  for (const _pause of desktop.update(code, data));
}

/** Draws bitmaps on a desktop of 4 × 2. */
function drawn(...bitmaps: BitmapOptions[]): number[] {
  const desktop = new RdpDesktop({ width: 4, height: 2 })
  draw(desktop, CODE.bitmap, bitmapUpdate(...bitmaps.map(bitmap)))
  return [...desktop.framebuffer.pixels]
}

const row = (...colours: number[]): number[] => colours

describe('raw bitmaps: the lowest row first, rows of whole words', () => {
  test.each([
    [16, '00f8 e007 1f00 ffff  0000 0000 0000 0000'],
    [15, '007c e003 1f00 ff7f  0000 0000 0000 0000'],
    [24, '0000ff 00ff00 ff0000 ffffff  000000 000000 000000 000000'],
    [32, '0000ff12 00ff0034 ff000056 ffffff78  00000000 00000000 00000000 00000000'],
  ])('%i bits', (depth, hex) => {
    const lower = row(RED, GREEN, BLUE, WHITE)
    expect(drawn({ width: 4, height: 2, depth, data: bytes(hex) })).toEqual([
      ...row(BLACK, BLACK, BLACK, BLACK),
      ...lower,
    ])
  })

  test('a width that leaves bytes over', () => {
    const data = bytes('1f00 0000 00f8 0000')
    expect(drawn({ width: 1, height: 2, depth: 16, data })).toEqual([
      ...row(RED, BLACK, BLACK, BLACK),
      ...row(BLUE, BLACK, BLACK, BLACK),
    ])
  })

  test('part of it is drawn where the rectangle is smaller, and nothing outside of the desktop', () => {
    const data = bytes('00f8 00f8 00f8 00f8')
    expect(drawn({ left: 3, right: 6, width: 4, height: 1, depth: 16, data }).slice(0, 4)).toEqual(
      row(BLACK, BLACK, BLACK, RED),
    )
    expect(drawn({ right: 1, width: 4, height: 1, depth: 16, data }).slice(0, 4)).toEqual(
      row(RED, RED, BLACK, BLACK),
    )
    expect(drawn({ left: 9, top: 9, width: 4, height: 1, depth: 16, data })).not.toContain(RED)
  })

  test('8 bits, by the palette that came last', () => {
    const desktop = new RdpDesktop({ width: 4, height: 1 })
    const picture = bitmapUpdate(bitmap({ width: 4, height: 1, depth: 8, data: bytes('00 01 02 ff') }))
    draw(desktop, CODE.bitmap, picture)
    expect([...desktop.framebuffer.pixels]).toEqual(row(BLACK, 0xff010101, 0xff020202, WHITE))
    const palette = Buffer.alloc(768)
    palette.set(bytes('ff0000 00ff00 0000ff'))
    draw(desktop, CODE.palette, paletteUpdate(palette))
    draw(desktop, CODE.bitmap, picture)
    expect([...desktop.framebuffer.pixels]).toEqual(row(RED, GREEN, BLUE, BLACK))
  })
})

describe('compressed bitmaps', () => {
  // A run of red, then the previous row again.
  const data = bytes('64 00f8 04')

  test('with and without a header', () => {
    const header = Buffer.concat([words(0, data.length, 8, 16), data, bytes('ffff')])
    for (const [flags, body] of [
      [COMPRESSED | WITHOUT_HEADER, data],
      [COMPRESSED, header],
    ] as const) {
      const pixels = drawn({ width: 4, height: 2, depth: 16, flags, data: body })
      expect(pixels).toEqual(Array(8).fill(RED))
    }
  })

  test('planar', () => {
    // Red is a run of 255, green and blue of 0; the second row has no differences.
    const planes = '13ff 03' + ' 04 04' + ' 04 04'
    const pixels = drawn({
      width: 4,
      height: 2,
      depth: 32,
      flags: COMPRESSED | WITHOUT_HEADER,
      data: bytes(`30 ${planes.replace('03', '04')}`),
    })
    expect(pixels).toEqual(Array(8).fill(RED))
  })

  test('chroma of half the size in both directions', () => {
    const data = bytes('29  808080 808080 808080  10 00 00 00  00 00 00 00')
    const [first, second, third] = [0xff708090, 0xff808080, 0xff808080]
    expect([...decodePlanar(data, 3, 3)]).toEqual([
      ...row(first, first, second),
      ...row(first, first, second),
      ...row(third, third, second),
    ])
  })
})

describe('interleaved orders', () => {
  const decode = (hex: string, width: number, height: number): number[] => {
    const { pixels, flaw } = decodeInterleaved(bytes(hex), width, height, 8)
    if (flaw) throw flaw
    return [...pixels]
  }

  test.each([
    ['background', '04', [0, 0, 0, 0]],
    ['background twice: a pixel of foreground between', '02 02', [0, 0, 0xff, 0]],
    ['foreground', '24', [0xff, 0xff, 0xff, 0xff]],
    ['foreground that is set', 'c4 05', [5, 5, 5, 5]],
    ['colour', '64 07', [7, 7, 7, 7]],
    ['pixels', '84 01020304', [1, 2, 3, 4]],
    ['an image', '40 03 05', [0xff, 0, 0xff, 0]],
    ['an image with its foreground', 'd0 03 09 05', [9, 0, 9, 0]],
    ['dithered', 'e2 01 02', [1, 2, 1, 2]],
    ['white and black', 'fd fe fd fe', [0xff, 0, 0xff, 0]],
    ['long ones', 'f3 0400 07', [7, 7, 7, 7]],
  ])('%s', (_title, hex, pixels) => {
    expect(decode(hex, 4, 1)).toEqual(pixels)
  })

  test('over the row before', () => {
    expect(decode('84 01020304  c4 0f', 4, 2).slice(4)).toEqual([14, 13, 12, 11])
    expect(decode('84 01020304  d0 03 0f 05', 4, 2).slice(4)).toEqual([14, 2, 12, 4])
    expect(decode('84 01020304  08', 4, 3).slice(4)).toEqual([1, 2, 3, 4, 1, 2, 3, 4])
    expect(decode('88 0102030405060708  f9', 8, 2).slice(8)).toEqual([254, 253, 3, 4, 5, 6, 7, 8])
    expect(decode('88 0102030405060708  fa', 8, 2).slice(8)).toEqual([254, 2, 252, 4, 5, 6, 7, 8])
    // The first row's end separates two runs of background.
    expect(decode('84 01020304  02 02', 4, 2).slice(4)).toEqual([1, 2, 252, 4])
    expect(decode('04 04', 4, 2).slice(4)).toEqual([0, 0, 0, 0])
  })

  test('lengths of each form', () => {
    expect(decode('60 00 07', 32, 1)).toEqual(Array(32).fill(7))
    expect(decode('c0 00 07', 16, 1)).toEqual(Array(16).fill(7))
    expect(decode('41 ff', 8, 1)).toEqual(Array(8).fill(0xff))
    expect(decode('f0 0000 64 07', 4, 1)).toEqual(Array(4).fill(7))
  })

  test.each([
    ['an order that there is not', 'a0'],
    ['another', 'f5'],
    ['the end of an order', '64'],
    ['too many pixels', '65 07'],
    ['too few', '63 07'],
    ['nothing', ''],
    ['an endless run', 'f3 ffff 07'],
    ['a run of dither past the end', 'e3 01 02'],
  ])('%s', (_title, hex) => {
    expect(() => decode(hex, 4, 1)).toThrow(MalformedGraphics)
  })
})

describe('pointers', () => {
  const rgb = bytes('0000ff 00ff00')

  test('hidden, default, put somewhere', () => {
    const desktop = new RdpDesktop({ width: 4, height: 2 })
    expect(desktop.pointer).toBe('default')
    draw(desktop, CODE.hidden, bytes(''))
    expect(desktop.pointer).toBe('hidden')
    draw(desktop, CODE.default, bytes(''))
    expect(desktop.pointer).toBe('default')
    draw(desktop, CODE.position, words(3, 1))
    expect(desktop.position).toEqual({ x: 3, y: 1 })
  })

  test('colour, new and large ones are the same, and come back out of the cache', () => {
    const desktop = new RdpDesktop({ width: 4, height: 2 })
    const picture = { width: 2, height: 1, colours: rgb, transparency: bytes('0000') }
    const cursor = { width: 2, height: 1, hotX: 1, hotY: 0, pixels: Uint32Array.of(RED, GREEN) }
    draw(desktop, CODE.colour, pointer({ ...picture, hotX: 1, cacheIndex: 1 }))
    expect(desktop.pointer).toEqual(cursor)
    draw(desktop, CODE.new, Buffer.concat([words(24), pointer({ ...picture, hotX: 1, cacheIndex: 2 })]))
    expect(desktop.pointer).toEqual(cursor)
    const large = Buffer.concat([words(24, 3, 1, 0, 2, 1, 2, 0, 6, 0), rgb, bytes('0000')])
    draw(desktop, CODE.large, large)
    expect(desktop.pointer).toEqual(cursor)
    draw(desktop, CODE.hidden, bytes(''))
    draw(desktop, CODE.cached, words(1))
    expect(desktop.pointer).toEqual(cursor)
    expect(() => draw(desktop, CODE.cached, words(0))).toThrow('a number of the cache')
  })

  test('colours with alpha are multiplied by it', () => {
    const desktop = new RdpDesktop({ width: 4, height: 2 })
    draw(
      desktop,
      CODE.new,
      Buffer.concat([words(32), pointer({ width: 1, height: 1, colours: bytes('00008080') })]),
    )
    expect(desktop.pointer).toMatchObject({ pixels: Uint32Array.of(0x80000040) })
  })

  test('ones that are too large, or too many', () => {
    const desktop = new RdpDesktop({ width: 4, height: 2 })
    const wide = pointer({ width: 385, height: 1, colours: Buffer.alloc(1200) })
    expect(() => draw(desktop, CODE.colour, wide)).toThrow('at most 384 pixels a side')
    const far = pointer({ cacheIndex: 128, width: 2, height: 1, colours: rgb })
    expect(() => draw(desktop, CODE.colour, far)).toThrow('a number below 128')
    const half = pointer({ width: 2, height: 2, colours: rgb })
    expect(() => draw(desktop, CODE.colour, half)).toThrow('a mask of 12 bytes')
    const large = Buffer.concat([
      words(1),
      words(0, 0, 0, 384, 384, 0, 0, 48 * 384, 0),
      Buffer.alloc(48 * 384),
    ])
    for (let index = 0; index < 20; index++) {
      large.writeUInt16LE(index, 2)
      draw(desktop, CODE.large, large)
    }
    draw(desktop, CODE.cached, words(19))
    expect(() => draw(desktop, CODE.cached, words(0))).toThrow('a number of the cache')
    expect(desktop.state.cached.length).toBe(Math.floor(MAX_CACHED_PIXELS / 384 ** 2))
  })
})

describe('what is refused', () => {
  const desktop = (): RdpDesktop => new RdpDesktop({ width: 4, height: 2 })
  const one = (options: Partial<BitmapOptions>): Buffer =>
    bitmapUpdate(bitmap({ width: 1, height: 1, depth: 16, data: bytes('00000000'), ...options }))

  test.each([
    ['a depth that there is not', one({ depth: 12 }), 'a depth of RDP'],
    ['too few bytes', one({ height: 2 }), 'expected 8 bytes'],
    ['more pixels than anybody sends', one({ width: 65_535, height: 65_535 }), 'at most 4194304 pixels'],
    ['fewer bitmaps than said', words(1, 2), 'expected 2 bytes'],
    ['a palette of 16 colours', paletteUpdate(Buffer.alloc(48)), '256 colours'],
  ])('%s', (title, data, words) => {
    const code = title.startsWith('a palette') ? CODE.palette : CODE.bitmap
    expect(() => draw(desktop(), code, data)).toThrow(words)
  })

  test('of orders that end early what has come is drawn, the rest is grey', () => {
    const shown = desktop()
    const torn = {
      width: 4,
      height: 2,
      depth: 16,
      flags: COMPRESSED | WITHOUT_HEADER,
      data: bytes('65 00f8'),
    }
    expect(() => draw(shown, CODE.bitmap, bitmapUpdate(bitmap(torn)))).toThrow('expected 8 pixels, got 5')
    expect([...shown.framebuffer.pixels]).toEqual([
      ...row(RED, 0xff808080, 0xff808080, 0xff808080),
      ...row(RED, RED, RED, RED),
    ])
  })

  test('a bitmap without pixels shows nothing', () => {
    const shown = desktop()
    draw(
      shown,
      CODE.bitmap,
      bitmapUpdate(bitmap({ width: 0, height: 65_535, right: 3, depth: 16, data: bytes('') })),
    )
    expect([...shown.framebuffer.pixels]).toEqual(Array(8).fill(BLACK))
  })

  test('codes that there are not; orders and marks are passed over', () => {
    expect(() => draw(desktop(), 4, bytes(''))).toThrow('an update of RDP that is drawn')
    draw(desktop(), 0, bytes('0100 ff'))
    draw(desktop(), 3, bytes(''))
  })

  test('planar: chroma of half the size without chroma, a row that is too long, a plane that is too short', () => {
    expect(() => decodePlanar(bytes('08'), 1, 1)).toThrow('chroma that is subsampled')
    expect(() => decodePlanar(bytes('30 05'), 4, 1)).toThrow('4 more values in a row')
    expect(() => decodePlanar(bytes('20 0000'), 1, 1)).toThrow('expected 1 bytes at 3')
    expect(() => decodePlanar(bytes(''), 1, 1)).toThrow('a header')
  })

  test('where a bitmap cannot be drawn it is grey, and the next ones are drawn', () => {
    const shown = desktop()
    const red = { width: 1, height: 1, depth: 16, data: bytes('00f80000') }
    const torn = { ...red, width: 2, height: 2, flags: COMPRESSED, data: bytes('') }
    const beside = bitmap({ ...red, left: 3, right: 2 })
    const update = bitmapUpdate(
      bitmap({ ...torn, left: 1 }),
      bitmap(red),
      beside,
      bitmap({ ...red, left: 2 }),
    )
    expect(() => draw(shown, CODE.bitmap, update)).toThrow(MalformedGraphics)
    const GREY = 0xff808080
    expect([...shown.framebuffer.pixels]).toEqual([
      ...row(RED, GREY, RED, BLACK),
      ...row(BLACK, GREY, GREY, BLACK),
    ])
  })
})

test('a flood of bitmaps yields in between, and counts what it has painted', () => {
  const desktop = new RdpDesktop({ width: 1024, height: 1024 })
  const large = bitmap({
    width: 1024,
    height: 1024,
    depth: 8,
    flags: COMPRESSED | WITHOUT_HEADER,
    // Eight runs of 65535, and eight more: 1024 × 1024.
    data: Buffer.concat([...Array.from({ length: 16 }, () => bytes('f3 ffff 07')), bytes('f3 1000 07')]),
  })
  let pauses = 0
  for (const _pause of desktop.update(CODE.bitmap, bitmapUpdate(...Array<Buffer>(9).fill(large)))) pauses += 1
  expect(pauses).toBe(2)
  expect(desktop.painted).toBe(9 * 2 ** 20)
})
