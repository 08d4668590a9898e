import { Buffer } from 'node:buffer'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { FRAME, type Frame, type FrameType } from '../../../../recordings/container/frames.ts'
import { mainChannel, type Shown, surveyOf } from '../../../../recordings/decode/frames/channel.ts'
import { TERMINAL_RESET } from '../../../../recordings/decode/terminal/filter.ts'
import { exportText } from '../../../../recordings/decode/text/text.ts'
import { exportCast } from '../../../../recordings/show/export/cast.ts'
import { exportJson } from '../../../../recordings/show/export/json.ts'
import { play } from '../../../../recordings/show/play.ts'
import { describeWithPeers, findProgram } from '../../../peers/program.ts'
import { makeRoot, removeRoots, SESSION } from '../../support.ts'

afterAll(removeRoots)

const METADATA = { session: SESSION, begin: '2026-11-20T12:00:00.000Z' }

function frame(type: FrameType, payload: string | Uint8Array | object, time = 0, channel = 1): Frame {
  const bytes =
    payload instanceof Uint8Array
      ? payload
      : Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload))
  return { type, channel, time, payload: bytes }
}
const terminal = { type: 'xterm-256color', columns: 100, rows: 30 }
const opened = frame(FRAME.channelOpen, { kind: 'shell', subprotocol: 'SSH_SHELL', terminal }, 1_000_000)
const output = (text: string | Uint8Array, time = 1_500_000) => frame(FRAME.output, text, time)

async function* stream(frames: readonly Frame[]): AsyncGenerator<Frame> {
  yield* frames
}
async function joined(pieces: AsyncIterable<string>): Promise<string> {
  let all = ''
  for await (const piece of pieces) all += piece
  return all
}
const ONLY: Shown = { channel: 1, place: 1, count: 1 }
const cast = (frames: readonly Frame[], shown = ONLY, options = {}) =>
  joined(exportCast(stream(frames), shown, METADATA, options))
const text = (frames: readonly Frame[], shown = ONLY) => joined(exportText(stream(frames), shown))
const json = async (frames: readonly Frame[]) =>
  (await joined(exportJson(stream(frames))))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

const euro = Buffer.from('\u20ac')
const session = [
  opened,
  output('\x1b[31mroot@srv1\x1b[0m:~# '),
  frame(FRAME.input, 'ls\r', 1_600_000),
  frame(FRAME.command, { line: 'ls' }, 1_600_000),
  output(euro.subarray(0, 1), 2_000_000),
  frame(FRAME.output, 'other channel', 2_000_000, 7),
  output(euro.subarray(1), 2_250_000),
  output(Buffer.from([0xff, 0xfe, 0x0d, 0x0a]), 2_500_000),
  frame(FRAME.resize, Buffer.from([0x84, 0x01, 43]), 3_000_000),
  output('\x1b]0;title\x07bye\r\n\u0085', 3_500_000),
  output(euro.subarray(0, 2), 3_600_000),
  frame(FRAME.exit, { status: 0 }, 4_000_000),
]

describe('asciicast', () => {
  test('has a header and events with their times, whatever the bytes', async () => {
    const lines = (await cast(session))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toEqual([
      {
        version: 2,
        width: 100,
        height: 30,
        timestamp: Date.parse('2026-11-20T12:00:01Z') / 1000,
        title: `session ${SESSION}`,
        env: { TERM: 'xterm-256color' },
      },
      [0.5, 'o', '\x1b[31mroot@srv1\x1b[0m:~# '],
      [0.6, 'i', 'ls\r'],
      [0.6, 'm', 'ls'],
      [1, 'o', ''],
      [1.25, 'o', '\u20ac'],
      [1.5, 'o', '\ufffd\ufffd\r\n'],
      [2, 'r', '132x43'],
      [2.5, 'o', 'bye\r\n\x1bE'],
      [2.6, 'o', ''],
      [3, 'o', '\ufffd'],
    ])
  })

  test('holds what may be shown in the terminal of whoever plays it, unless it is wanted raw', async () => {
    const hostile =
      '\x1b]52;c;cm0gLXJm\x07\x1b[c\x1b[6n\x1bP$qm\x1b\\\x05\x1b]8;;http://evil\x1b\\\x1b[31mred'
    const frames = [
      frame(FRAME.channelOpen, {
        kind: 'exec',
        command: '\x1b]0;x\x07',
        terminal: { type: '\x1bP', columns: 1, rows: 1 },
      }),
      output(`${hostile}\x1b]0;`),
      output('never seen\x07!'),
      frame(FRAME.input, hostile),
      frame(FRAME.command, { line: hostile }),
    ]
    const texts = (lines: string) => {
      const [first, ...events] = lines
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
      return [first.command, first.env.TERM, ...events.map((event: unknown[]) => event[2])]
    }
    const [command, type, ...shown] = texts(await cast(frames))
    expect([command, type]).toEqual(['\\u001b]0;x\\u0007', '\\u001bP'])
    expect(shown.slice(0, 3)).toEqual(['\x1b[31mred', '!', '\x1b[31mred'])
    expect(shown[3]).not.toMatch(/[\x00-\x1f]/)
    expect(texts(await cast(frames, ONLY, { isRaw: true })).slice(2)).toEqual([
      `${hostile}\x1b]0;`,
      'never seen\x07!',
      hostile,
      hostile,
    ])
  })

  test('says which channel of how many it shows, and shows all of them with their names', async () => {
    const exec = { kind: 'exec', subprotocol: 'SSH_REMOTE_COMMAND', command: 'id\x1b]0;x\x07' }
    const frames = [
      opened,
      frame(FRAME.channelOpen, exec, 1_000_000, 7),
      output('one\x1b]0;'),
      frame(FRAME.output, 'seven', 1_600_000, 7),
      output('\x07two'),
      output('three'),
    ]
    const titled = async (shown: Shown) => JSON.parse((await cast(frames, shown)).split('\n')[0]!).title
    expect(await titled({ channel: 1, place: 1, count: 2 })).toBe(`session ${SESSION}, channel 1 (1 of 2)`)
    expect(await titled({ channel: 'all', count: 2 })).toBe(`session ${SESSION}, all 2 channels`)
    const all = (await cast(frames, { channel: 'all', count: 2 })).trimEnd().split('\n').slice(1)
    const line = (name: string) => `${TERMINAL_RESET}\r\n[channel ${name}]\r\n`
    expect(all.map((event) => JSON.parse(event)[2])).toEqual([
      `${line('1: shell')}one`,
      `${line('7: exec id\\u001b]0;x\\u0007')}seven`,
      `${line('1: shell')}two`,
      'three',
    ])
  })

  test('shows no control character to whoever prints the file', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        expect(await cast([opened, output(bytes)])).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/)
      }),
    )
  })
})

describeWithPeers('the ordinary asciinema', ['asciinema'], () => {
  test('plays there', async () => {
    const asciinema = findProgram('asciinema')
    const path = join(makeRoot(), 'session.cast')
    writeFileSync(path, await cast(session))
    // `asciinema cat` needs a terminal even if its output goes elsewhere.
    const inTerminal = (command: string) =>
      execFileSync('script', ['-qec', command, '/dev/null'], {
        env: { ...process.env, LC_ALL: 'C.UTF-8' },
        stdio: ['ignore', 'pipe', 'pipe'],
      }).toString()
    inTerminal(`${asciinema} cat ${path} > ${path}.shown`)
    expect(readFileSync(`${path}.shown`, 'utf8')).toBe(
      '\x1b[31mroot@srv1\x1b[0m:~# \u20ac\ufffd\ufffd\r\nbye\r\n\x1bE\ufffd',
    )
    expect(inTerminal(`${asciinema} play --speed 100 ${path}`)).toContain('bye')
  })
})

describe('text', () => {
  test.each([
    ['colours and titles go', '\x1b]0;me\x07\x1b[1;32muser\x1b[0m$ ls\r\n', 'user$ ls\n'],
    ['an erased typo does not show', 'sl\b\x1b[K\b\x1b[Kls\r\n', 'ls\n'],
    ['nor one that readline erases', 'sl\b \b\b \bls\r\n', 'ls\n'],
    ['a progress bar shows its last state', ' 10%\r 50%\r100%\r\n', '100%\n'],
    ['insertion and deletion in a line', 'ac\b\x1b[@b\x1b[C!\x1b[4D\x1b[Pz\r\n', 'zc!\n'],
    ['a jump begins a new line', 'one\x1b[5;1Htwo\x1b[2Jthree', 'one\ntwo\nthree\n'],
    ['control characters go', 'a\x07\x05\x7f\u0085b\u009b6nc', 'a\nbc\n'],
    ['what turns text around is shown', 'a\u202eb\u2066c\r\n', 'a\\u202eb\\u2066c\n'],
    ['a tab is as wide as it was', 'a\tb\r\n', 'a       b\n'],
    ['no end of line is no reason to lose it', 'last', 'last\n'],
  ])('%s', async (_, bytes, expected) => {
    expect(await text([opened, output(bytes)])).toBe(
      `[1.000 channel_open kind=shell subprotocol=SSH_SHELL terminal={"type":"xterm-256color","columns":100,"rows":30}]\n${expected}`,
    )
  })

  test('has what no terminal shows as lines of their own, and no input twice', async () => {
    const frames = [
      frame(FRAME.input, 'secret'),
      output('$ '),
      frame(FRAME.command, { line: 'rm -rf /\x1b[2J' }, 2_000_000),
      frame(FRAME.file, { operation: 'open', path: '/etc/\x1b]0;x\x07', size: 3, result: 'ok' }, 3_000_000),
      frame(FRAME.file, 'no JSON', 3_000_000),
      frame(FRAME.channelClose, '', 4_000_000),
    ]
    expect((await text(frames)).split('\n')).toEqual([
      '$',
      '[2.000 command line=rm -rf /\\u001b[2J]',
      '[3.000 file operation=open path=/etc/\\u001b]0;x\\u0007 size=3 result=ok]',
      '[3.000 file bytes=7]',
      '[4.000 channel_close]',
      '',
    ])
  })

  test('says which channel of how many it shows, and shows all of them with their numbers', async () => {
    const frames = [
      output('one\r\npart'),
      frame(FRAME.output, 'seven\r\n', 1_600_000, 7),
      frame(FRAME.channelClose, '', 2_000_000, 7),
      output('ial\r\n\r\n'),
    ]
    expect(await text(frames, { channel: 1, place: 1, count: 2 })).toBe(
      '[only channel 1 (1 of 2) is shown here]\none\npartial\n\n',
    )
    expect(await text(frames, { channel: 'all', count: 2 })).toBe(
      '1| one\n7| seven\n7| [2.000 channel_close]\n1| partial\n\n',
    )
  })

  test('holds nothing but printable characters and ends of lines, and is bounded', async () => {
    const tokens = fc.constantFrom(
      '\x1b[',
      '\x1b]',
      '9999',
      'C',
      'G',
      '@',
      'P',
      'X',
      'K',
      '\r',
      '\b',
      '\t',
      'x',
      '\n',
      '\x1b',
      ';',
    )
    const noise = fc.oneof(
      fc.uint8Array({ maxLength: 50 }),
      fc.array(tokens, { maxLength: 60 }).map((parts) => Buffer.from(parts.join(''))),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(noise, { maxLength: 8 }), async (pieces) => {
        const result = await text(pieces.map((bytes) => output(bytes)))
        expect(result).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/)
        expect(Math.max(...result.split('\n').map((line) => line.length))).toBeLessThan(8200)
      }),
      { numRuns: 500 },
    )
  })
})

describe('JSON lines', () => {
  test('carry every frame of every channel, and the bytes where the text is not enough', async () => {
    const lines = await json([
      opened,
      output('caf\u00e9'),
      output(Buffer.from([0xe2, 0x82])),
      output(Buffer.from([0xac])),
      frame(FRAME.errorOutput, 'x', 2_000_000, 3),
      frame(FRAME.inputWithheld, Buffer.from([8]), 2_000_000),
      frame(FRAME.resize, Buffer.from([80, 24]), 2_000_000),
      frame(FRAME.resize, Buffer.from([0x80]), 2_000_000),
      frame(FRAME.exit, { signal: 'KILL' }, 2_000_000),
      frame(FRAME.channelClose, '', 2_000_000),
      frame(FRAME.end, { result: 'success' }, 2_000_000, 0),
    ])
    expect(lines.map(({ time, ...rest }) => rest)).toEqual([
      { channel: 1, type: 'channel_open', data: { kind: 'shell', subprotocol: 'SSH_SHELL', terminal } },
      { channel: 1, type: 'output', text: 'caf\u00e9' },
      { channel: 1, type: 'output', text: '', base64: '4oI=' },
      { channel: 1, type: 'output', text: '\u20ac', base64: 'rA==' },
      { channel: 3, type: 'error_output', text: 'x' },
      { channel: 1, type: 'input_withheld', data: { bytes: 8 } },
      { channel: 1, type: 'resize', data: { columns: 80, rows: 24 } },
      { channel: 1, type: 'resize', base64: 'gA==' },
      { channel: 1, type: 'exit', data: { signal: 'KILL' } },
      { channel: 1, type: 'channel_close', data: {} },
      { channel: 0, type: 'end', data: { result: 'success' } },
    ])
    expect(lines[1]?.time).toBe(1.5)
  })
})

describe('the channel', () => {
  test('is the first with a terminal, else the first', async () => {
    const exec = { kind: 'exec', subprotocol: 'SSH_REMOTE_COMMAND', command: 'id' }
    const frames = [frame(FRAME.channelOpen, exec, 0, 4), frame(FRAME.channelOpen, exec, 0, 5)]
    const main = async (some: readonly Frame[]) => mainChannel(await surveyOf(stream(some)))?.channel
    expect(await main(frames)).toBe(4)
    expect(await main([...frames, opened])).toBe(1)
    expect(await main([])).toBeUndefined()
  })
})

describe('a replay', () => {
  const replayed = async (frames: readonly Frame[], options: { speed?: number; idleLimit?: number } = {}) => {
    const sleeps: number[] = []
    let shown = ''
    await play(stream(frames), {
      channel: 1,
      speed: options.speed ?? 1,
      ...(options.idleLimit !== undefined && { idleLimit: options.idleLimit }),
      write: async (piece) => {
        shown += piece
      },
      sleep: async (milliseconds) => {
        if (milliseconds > 0) sleeps.push(milliseconds)
      },
    })
    return { sleeps, shown }
  }
  const session = [
    opened,
    output('one', 1_500_000),
    output('two', 61_500_000),
    frame(FRAME.exit, { status: 0 }, 62_000_000),
  ]

  test('keeps the time, or shortens it', async () => {
    expect((await replayed(session)).sleeps).toEqual([500, 60_000, 500])
    expect((await replayed(session, { speed: 2, idleLimit: 4 })).sleeps).toEqual([250, 2000, 250])
  })

  test('shows what the filter lets through, cut anywhere, and puts the terminal back', async () => {
    const pieces = ['a\x1b]52;c;', 'cm0=\x07b\x1b[3', '1mc\x1b[6n']
    const { shown } = await replayed([opened, ...pieces.map((piece) => output(piece))])
    expect(shown).toBe(`ab\x1b[31mc${TERMINAL_RESET}\r\n`)
  })

  test('lists file operations, harmlessly', async () => {
    const operation = { operation: 'remove', path: '/tmp/\x1b[2J', result: 'ok' }
    const { shown } = await replayed([
      frame(FRAME.channelOpen, { kind: 'sftp', subprotocol: 'SFTP_SESSION' }),
      frame(FRAME.file, operation),
    ])
    expect(shown).toBe('[0.000 file operation=remove path=/tmp/\\u001b[2J result=ok]\r\n\x1b[m')
  })

  test('stops when it is told to', async () => {
    const abort = new AbortController()
    let shown = ''
    await play(stream(session), {
      channel: 1,
      speed: 1,
      signal: abort.signal,
      write: async (piece) => {
        shown += piece
        abort.abort()
      },
      sleep: async () => undefined,
    })
    expect(shown).toBe(`one${TERMINAL_RESET}\r\n`)
  })
})
