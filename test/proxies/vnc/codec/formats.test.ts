import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ENCODING, encodingName, isPassed, isPixelEncoding } from '../../../../proxies/vnc/codec/encodings.ts'
import {
  bytesPerCompactPixel,
  bytesPerPixel,
  bytesPerTightPixel,
  encodePixelFormat,
  type PixelFormat,
  parsePixelFormat,
  RGB888,
  samePixelFormat,
} from '../../../../proxies/vnc/codec/pixel-format.ts'
import { encodeServerInit, parseServerInit } from '../../../../proxies/vnc/codec/server-init.ts'
import * as drawing from '../../../../recordings/decode/graphics/rfb/pixel-format.ts'

test('a pixel format of RFC 6143 7.4', () => {
  // From TigerVNC's Xvnc at depth 24.
  const bytes = Buffer.from('20180001 00ff00ff00ff 100800 000000'.replaceAll(' ', ''), 'hex')
  expect(parsePixelFormat(bytes)).toEqual(RGB888)
  expect(encodePixelFormat(RGB888).toString('hex')).toBe(bytes.toString('hex'))
  expect(samePixelFormat(RGB888, { ...RGB888 })).toBe(true)
  expect(samePixelFormat(RGB888, { ...RGB888, isBigEndian: true })).toBe(false)
})

test('compressed pixels of three bytes', () => {
  const upper = { ...RGB888, redShift: 24, greenShift: 16, blueShift: 8 }
  const deep = {
    ...RGB888,
    depth: 30,
    redMax: 1023,
    greenMax: 1023,
    blueMax: 1023,
    redShift: 20,
    greenShift: 10,
  }
  expect([RGB888, upper, deep].map(bytesPerCompactPixel)).toEqual([3, 3, 4])
  expect([RGB888, upper, deep, { ...RGB888, depth: 32 }].map(bytesPerTightPixel)).toEqual([3, 3, 4, 4])
})

test.each([
  ['a part of no bits', { blueMax: 0, blueShift: 32 }, /blue of n bits.* maximum of 0, shifted by 32/],
  ['a maximum that is no 2^n - 1', { greenMax: 254 }, /green of n bits.* maximum of 254/],
  ['a part beyond the pixel', { redShift: 25 }, /red of n bits.* shifted by 25/],
  ['parts that overlap', { greenShift: 15 }, /green in bits of its own.* shifted by 15/],
  [
    'bytes across bytes',
    { redShift: 18, greenShift: 10, blueShift: 2 },
    /bytes of their own.* shifts of 18,10,2/,
  ],
] as const)('a pixel format that no peer asks for is refused: %s', (_name, odd, reason) => {
  expect(() => parsePixelFormat(encodePixelFormat({ ...RGB888, ...odd }))).toThrow(reason)
})

test('a format that is accepted can be drawn, with pixels of the same lengths', () => {
  const max = fc.oneof(
    fc.constant(255),
    fc.nat(16).map((bits) => 2 ** bits - 1),
  )
  const shift = fc.oneof(fc.constantFrom(0, 8, 16, 24), fc.nat(33))
  const formats: fc.Arbitrary<PixelFormat> = fc.record({
    bitsPerPixel: fc.constantFrom(8, 16, 32, 32),
    depth: fc.oneof(fc.constant(24), fc.nat(33)),
    isBigEndian: fc.boolean(),
    isTrueColour: fc.oneof(fc.constant(true), fc.boolean()),
    redMax: max,
    greenMax: max,
    blueMax: max,
    redShift: shift,
    greenShift: shift,
    blueShift: shift,
  })
  let accepted = 0
  fc.assert(
    fc.property(formats, (format) => {
      const bytes = encodePixelFormat(format)
      try {
        parsePixelFormat(bytes)
      } catch {
        return
      }
      accepted += 1
      const { pixel, compact, tight } = new drawing.PixelReaders(drawing.parsePixelFormat(bytes))
      expect([pixel, compact, tight].map(({ length }) => length)).toEqual(
        [bytesPerPixel, bytesPerCompactPixel, bytesPerTightPixel].map((lengthOf) => lengthOf(format)),
      )
    }),
    { numRuns: 20_000 },
  )
  expect(accepted).toBeGreaterThan(100)
})

test('ServerInit, wherever it was cut', () => {
  const init = { width: 640, height: 480, format: RGB888, name: 'host:1 – Büro' }
  const bytes = encodeServerInit(init)
  for (let length = 0; length < bytes.length; length++) {
    expect(parseServerInit(bytes.subarray(0, length))).toBeUndefined()
  }
  expect(parseServerInit(Buffer.concat([bytes, Buffer.of(0)]))).toEqual({ init, length: bytes.length })
})

test('ServerInit past the limits', () => {
  const init = { width: 640, height: 480, format: RGB888, name: '' }
  expect(() => parseServerInit(encodeServerInit({ ...init, width: 65535, height: 65535 }))).toThrow(
    /a screen of/,
  )
  const long = encodeServerInit(init)
  long.writeUInt32BE(0xffffffff, 20)
  expect(() => parseServerInit(long)).toThrow(/4096 bytes/)
})

test('encodings', () => {
  expect(ENCODING.EXTENDED_CLIPBOARD).toBe(-1063131698)
  expect([7, -32, -247, -412, -768].every(isPassed)).toBe(true)
  // CoRRE, H.264, QEMU's audio, xvp, gii: none of them can be drawn or filtered.
  expect([4, 50, -259, -309, -305, -260, 0x574d5664].some(isPassed)).toBe(false)
  expect([ENCODING.ZRLE, ENCODING.CURSOR].map(isPixelEncoding)).toEqual([true, false])
  expect([encodingName(-308), encodingName(99)]).toEqual(['extended-desktop-size', '99'])
})
