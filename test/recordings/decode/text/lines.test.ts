/** Text of a session, as lines to search. */
import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { FRAME, type FrameType } from '../../../../recordings/container/frames.ts'
import { MAX_LINES, MAX_PER_SECOND, SessionLines } from '../../../../recordings/decode/text/lines.ts'

const SECOND = 1_000_000

function linesOf(...frames: [type: FrameType, second: number, payload: string | object, channel?: number][]) {
  const lines = new SessionLines()
  for (const [type, second, payload, channel = 1] of frames) {
    const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
    lines.add({ type, channel, time: second * SECOND, payload: Buffer.from(text, 'latin1') })
  }
  lines.finish()
  return lines
}
const texts = ({ output }: SessionLines) => output.map(({ at, text }) => [at, text])

describe('output', () => {
  test('is the text of its lines, without escape sequences, at the time when the line was whole', () => {
    const lines = linesOf(
      [FRAME.output, 1, '\x1b]0;title\x07\x1b[31mroot@srv1\x1b[m:~# lx\b \bs'],
      [FRAME.output, 2, '\r\nfile1  \x1b[1mfile2\x1b[m\r\n\r\n'],
      [FRAME.output, 3, 'last \xc3'],
      [FRAME.output, 4, '\xa9'],
    )
    expect(texts(lines)).toEqual([
      [2000, 'root@srv1:~# ls'],
      [2000, 'file1  file2'],
      [4000, 'last é'],
    ])
    expect(lines.isPartial).toBe(false)
  })

  test('of two channels does not run together, and a screen drawn again says nothing new', () => {
    const screen = '\x1b[Hload 1\x1b[K\r\nmemory\x1b[K\r\n'
    const lines = linesOf(
      [FRAME.output, 1, 'one', 1],
      [FRAME.errorOutput, 1, 'two\n', 2],
      [FRAME.output, 2, ' more\n', 1],
      [FRAME.output, 3, screen, 3],
      [FRAME.output, 4, screen.replace('load 1', 'load 2'), 3],
      [FRAME.channelClose, 5, '', 3],
    )
    expect(lines.output.map(({ channel, text }) => `${channel} ${text}`)).toEqual([
      '2 two',
      '1 one more',
      '3 load 1',
      '3 memory',
      '3 load 2',
    ])
  })

  test('that floods costs its own second, and what comes after it is there', () => {
    const flood = `${'y'.repeat(63)}\n`.repeat(1024)
    const frames = Array.from({ length: 20 }, (): [FrameType, number, string] => [FRAME.output, 1, flood])
    const lines = linesOf([FRAME.output, 0, 'before\n'], ...frames, [FRAME.output, 2, 'after\n'])
    expect(lines.output.map(({ text }) => text)).toEqual(['before', 'y'.repeat(63), 'after'])
    expect(lines.isPartial).toBe(true)
    expect(MAX_PER_SECOND).toBeLessThanOrEqual(flood.length)
  })

  test('is bounded in all', () => {
    const lines = new SessionLines()
    for (let i = 0; lines.output.length < MAX_LINES && i < MAX_LINES; i++) {
      const payload = Buffer.from(`${Array.from({ length: 100 }, (_, n) => `${i}.${n}`).join('\n')}\n`)
      lines.add({ type: FRAME.output, channel: 1, time: i * SECOND, payload })
    }
    expect(lines.isPartial).toBe(false)
    lines.add({ type: FRAME.output, channel: 1, time: 1e15, payload: Buffer.from('too late\n') })
    expect(lines.isPartial).toBe(true)
    expect(lines.output).toHaveLength(MAX_LINES)
  })
})

test('output that says nothing is read to a bound', () => {
  const bound = 1024 * 1024
  const lines = new SessionLines(bound)
  const payload = Buffer.from('the same\n'.repeat(MAX_PER_SECOND / 8))
  const add = (bytes: Uint8Array, second: number) =>
    lines.add({ type: FRAME.output, channel: 1, time: second * SECOND, payload: bytes })
  let second = 0
  for (; second * payload.length < bound; second++) add(payload, second)
  expect(lines.isPartial).toBe(false)
  add(Buffer.from('something new\n'), second)
  expect(lines.output.map(({ text }) => text)).toEqual(['the same'])
  expect(lines.isPartial).toBe(true)
})

test('commands, and files but what events tell of; what is malformed is passed over', () => {
  const lines = linesOf(
    [FRAME.command, 1, { line: 'ls \x1b[31m -l' }],
    [FRAME.file, 2, { operation: 'rename', path: '/a', target: '/b', result: 'ok' }],
    [FRAME.file, 3, { operation: 'transfer', path: '/c', direction: 'up', result: 'ok' }],
    [FRAME.file, 3, { operation: 'stat', path: '', result: '7 queries' }],
    [FRAME.file, 4, 'no JSON'],
    [FRAME.command, 4, { line: 7 }],
  )
  expect(lines.commands).toEqual([{ at: 1000, channel: 1, text: 'ls \\u001b[31m -l' }])
  expect(lines.files).toEqual([{ at: 2000, channel: 1, text: 'rename /a /b' }])
})
