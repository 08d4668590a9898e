/** Input from clients, on both paths. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import {
  type InputEvent,
  POINTER_FLAG,
  parseFastPathInput,
  parseSlowInput,
  wheelOf,
} from '../../../../proxies/rdp/codec/input.ts'

/** One event each: without the fast path's header, and the slow path's type and data. */
test.each<[string, string, string, InputEvent]>([
  ['a key', '001e', '0400 00001e000000', { kind: 'key', code: 0x1e, extended: 0, isDown: true }],
  ['its release', '011e', '0400 00801e000000', { kind: 'key', code: 0x1e, extended: 0, isDown: false }],
  ['an arrow', '0248', '0400 000148000000', { kind: 'key', code: 0x48, extended: 1, isDown: true }],
  ['Pause', '041d', '0400 00021d000000', { kind: 'key', code: 0x1d, extended: 2, isDown: true }],
  ['a character', '80ac20', '0500 0000ac200000', { kind: 'character', code: 0x20ac, isDown: true }],
  [
    'a click',
    '20009040010c01',
    '0180 009040010c01',
    { kind: 'pointer', flags: POINTER_FLAG.down | POINTER_FLAG.left, x: 0x140, y: 0x10c },
  ],
  [
    'a fifth button',
    '40028005000600',
    '0280 028005000600',
    { kind: 'pointer-extended', flags: 0x8002, x: 5, y: 6 },
  ],
  [
    'a move from where it was',
    'a00008ffff0200',
    '0480 0008ffff0200',
    { kind: 'pointer-relative', flags: 0x0800, x: -1, y: 2 },
  ],
  ['caps lock', '64', '0000 000004000000', { kind: 'locks', flags: 4 }],
])('%s', (_, fast, slow, event) => {
  const length = fast.length / 2 + 2
  expect(parseFastPathInput(Buffer.from(`04${length.toString(16).padStart(2, '0')}${fast}`, 'hex'))).toEqual([
    event,
  ])
  const body = Buffer.from(`0100000000000000${slow.replace(' ', '')}`, 'hex')
  expect(parseSlowInput(body)).toEqual([event])
})

test('times are no input', () => {
  expect(parseFastPathInput(Buffer.from('0407c001020304', 'hex'))).toEqual([])
  expect(parseSlowInput(Buffer.from('01000000000000000200000000000000', 'hex'))).toEqual([])
})

test('the wheel turns both ways', () => {
  expect(wheelOf(0x0278)).toBe(120)
  expect(wheelOf(0x0388)).toBe(-120)
})
