import { expect, test } from 'vitest'
import { parseDuration, parseSize } from '../../src/config/units.ts'

test.each([
  ['90s', 90_000],
  ['15m', 900_000],
  ['8h', 28_800_000],
  ['30d', 2_592_000_000],
  ['0s', 0],
])('the duration %s is %d ms', (text, ms) => expect(parseDuration(text)).toBe(ms))

test.each([
  ['64KiB', 65_536],
  ['1GiB', 2 ** 30],
  ['2TiB', 2 ** 41],
  ['0B', 0],
])('the size %s is %d bytes', (text, bytes) => expect(parseSize(text)).toBe(bytes))

test.each(['', '90', '-1s', '1.5h', '1 h', '1H', '90s\n', 's', '9999999999s', '1w'])(
  '%j is no duration',
  (text) => expect(() => parseDuration(text)).toThrow(/expected a duration/),
)

test.each(['1GB', '5', '1gib', '1e3B', '-1KiB', '1 KiB', '1KiB\n', 'KiB'])('%j is no size', (text) =>
  expect(() => parseSize(text)).toThrow(/expected a size/),
)
