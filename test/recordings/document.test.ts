import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ENCODING } from '../../proxies/vnc/codec/encodings.ts'
import { FAULTS } from '../../recordings/container/format/error.ts'
import * as limits from '../../recordings/container/format/limits.ts'
import { FRAME } from '../../recordings/container/frames.ts'
import { frameName } from '../../recordings/decode/describe.ts'

const document = readFileSync(join(import.meta.dirname, '../../docs/recording-format.md'), 'utf8')
const rows = [...document.matchAll(/^\| `?([^|`]+)`? \| `?([^|`]+)`? \|/gm)].map(([, first, second]) => [
  first,
  second,
])

test('the document has every fault with its meaning, and no other', () => {
  const faults = rows.filter(([code]) => code !== undefined && Object.hasOwn(FAULTS, code))
  expect(Object.fromEntries(faults)).toEqual(FAULTS)
})

test('the document has every frame type with its number and its name', () => {
  const types = rows.filter(([number, name]) => /^\d+$/.test(number ?? '') && /^[a-z_]+$/.test(name ?? ''))
  expect(types).toEqual(Object.values(FRAME).map((type) => [String(type), frameName(type)]))
})

test('the document names the limits', () => {
  const { MAX_GROUP_PLAIN, MAX_FRAME_PAYLOAD, MAX_STRUCTURED_PAYLOAD, MAX_METADATA, MAX_RECORD_BODY } = limits
  for (const limit of [
    MAX_GROUP_PLAIN,
    MAX_FRAME_PAYLOAD,
    MAX_STRUCTURED_PAYLOAD,
    MAX_METADATA,
    MAX_RECORD_BODY,
  ]) {
    expect(document).toContain(`at most ${limit.toLocaleString('en').replaceAll(',', ' ')}`)
  }
})

test('the document has every encoding that a rectangle in a recording may have, and no other', () => {
  const { FENCE, CONTINUOUS_UPDATES, EXTENDED_CLIPBOARD, ...rectangles } = ENCODING
  // From the two that change the size to the list's end.
  const list = document.match(/encodings DesktopSize[^`]+`desktop_size`[^`]+\.\n\n/)![0]
  const numbers = [...list.matchAll(/(?<= |\()−?(?:0x)?\w*\d\b/g)].map(([number]) =>
    Number(number.replace('−', '-')),
  )
  const byNumber = (a: number, b: number) => a - b
  expect(numbers.sort(byNumber)).toEqual(Object.values<number>(rectangles).sort(byNumber))
})
