import { Buffer } from 'node:buffer'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { recorderFor } from '../../../../proxies/ssh/recorder/factory.ts'
import { readVarint } from '../../../../recordings/container/format/varint.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { Notes } from './support/notes.ts'
import { type Capture, parseCapture, pieceSizes, replay, Workshop } from './support/real.ts'

const terminal = { type: 'xterm', columns: 80, rows: 24 }
const begin = () => {
  const notes = new Notes()
  return {
    notes,
    recorder: recorderFor({ kind: 'shell' }, { ...notes.options(), right: 'SSH_SHELL', terminal }),
  }
}

function inspect(capture: Capture, size?: () => number): Notes {
  const { notes, recorder } = begin()
  replay(capture, recorder, size)
  return notes
}

function withheld(notes: Notes): number {
  return notes.frames
    .filter((frame) => frame.type === FRAME.inputWithheld)
    .reduce((sum, frame) => sum + readVarint(frame.payload, 0)!.value, 0)
}

const lines = (notes: Notes) =>
  notes.frames.filter((frame) => frame.type === FRAME.input).map((frame) => frame.payload.toString())

type Step = [from: '>' | '<', text: string]

/** `>` is typed, `<` is printed. */
function play(...steps: Step[]): Notes {
  const { notes, recorder } = begin()
  for (const [from, text] of steps) {
    if (from === '>') recorder.fromClient(Buffer.from(text))
    else recorder.fromTarget(Buffer.from(text), false)
  }
  recorder.close()
  const typed = steps
    .filter((step) => step[0] === '>')
    .map((step) => step[1])
    .join('')
  expect(notes.bytes(FRAME.input).length + withheld(notes)).toBe(Buffer.byteLength(typed))
  return notes
}

describe('real programs on a real terminal', () => {
  const shop = new Workshop()
  afterAll(() => shop.clean())
  let count = 0

  function type(steps: [wait: string, type: string][], program: string, ...args: string[]): Capture {
    const log = shop.path(`terminal-${count++}`)
    const script = fileURLToPath(new URL('./support/terminal.py', import.meta.url))
    const { status, stderr } = spawnSync(
      '/usr/bin/python3',
      [script, log, JSON.stringify(steps), program, ...args],
      {
        env: {
          PATH: process.env['PATH'] ?? '',
          PS1: 'ready$ ',
          TERM: 'xterm',
          HOME: shop.folder,
          LC_ALL: 'C.UTF-8',
        },
        encoding: 'utf8',
      },
    )
    expect(stderr).toBe('')
    expect(status).toBe(0)
    return parseCapture(readFileSync(log))
  }
  const BASH = ['bash', '--norc', '--noprofile', '-i'] as const

  it('give the lines that bash echoed, and not the secret that it read without echo', () => {
    const capture = type(
      [
        ['ready$ ', 'echo one\r'],
        ['one\r\n\x1b[?2004hready$ ', 'ec'],
        ['ec', 'ho twx\x7fo é\r'],
        ['two é\r\n\x1b[?2004hready$ ', '\x1b[200~echo pasted\x1b[201~'],
        ['pasted', '\r'],
        ['pasted\r\n\x1b[?2004hready$ ', 'read -s x; echo got\r'],
        ['2004l', 'Sup3r'],
        ['', 'Secret\r'],
        ['got\r\n\x1b[?2004hready$ ', 'read -s x\r'],
        ['2004l', 'P'],
        ['', 'w'],
        ['', '0\r'],
        ['ready$ ', 'exit\r'],
      ],
      ...BASH,
    )
    const notes = inspect(capture)
    expect(lines(notes)).toEqual([
      'echo one\r',
      'echo twx\x7fo é\r',
      '\x1b[200~echo pasted\x1b[201~\r',
      'read -s x; echo got\r',
      'read -s x\r',
      'exit\r',
    ])
    expect(withheld(notes)).toBe('Sup3rSecret\rPw0\r'.length)
    for (const seed of [1, 2, 3]) expect(lines(inspect(capture, pieceSizes(seed, 4)))).toEqual(lines(notes))
  }, 300_000)

  it('give the lines that the terminal itself echoed', () => {
    const capture = type(
      [
        ['', 'a\tb xy\x7f\x7fz\r'],
        ['z\r\n', 'two\rthree\r'],
        ['three\r\n', '\x03'],
      ],
      '/bin/sh',
      '-c',
      'cat; exit 0',
    )
    expect(lines(inspect(capture))[0]).toBe('a\tb xy\x7f\x7fz\r')
  }, 300_000)

  it('give nothing of what python reads as a password', () => {
    const capture = type(
      [
        ['Password: ', 'hunter2\r'],
        ['name: ', 'root\r'],
      ],
      '/usr/bin/python3',
      '-c',
      'import getpass; getpass.getpass(); input("name: ")',
    )
    const notes = inspect(capture)
    expect(lines(notes)).toEqual(['root\r'])
    expect(withheld(notes)).toBe(8)
  }, 300_000)
})

describe('input is kept', () => {
  it.each<[string, string[], Step[]]>([
    [
      'byte by byte',
      ['ls\r'],
      [
        ['>', 'l'],
        ['<', 'l'],
        ['>', 's'],
        ['<', 's'],
        ['>', '\r'],
        ['<', '\r\n'],
      ],
    ],
    [
      'all at once',
      ['ls\r'],
      [
        ['>', 'ls\r'],
        ['<', 'ls\r\nfile\r\n$ '],
      ],
    ],
    [
      'typed ahead',
      ['a\r', 'b\r'],
      [
        ['>', 'a\rb\r'],
        ['<', 'a\r\nb\r\n'],
      ],
    ],
    [
      'with an echo in pieces',
      ['ls\r'],
      [
        ['>', 'ls\r'],
        ['<', 'l'],
        ['<', 's\r'],
        ['<', '\n'],
      ],
    ],
    [
      'with control characters',
      ['a\x01\x03'],
      [
        ['>', 'a\x01\x03'],
        ['<', 'a^A^C'],
      ],
    ],
    [
      'with a backspace of the terminal',
      ['ax\x7fb\r'],
      [
        ['>', 'ax\x7fb\r'],
        ['<', 'ax\b \bb\r\n'],
      ],
    ],
    [
      'with a backspace of a line editor',
      ['aé\x7fb\r'],
      [
        ['>', 'aé\x7fb\r'],
        ['<', 'aé\b\x1b[Kb\r\n'],
      ],
    ],
    [
      'with a backspace on an empty line',
      ['\x7fa\r'],
      [
        ['>', '\x7f'],
        ['<', '\x07'],
        ['>', 'a\r'],
        ['<', 'a\r\n'],
      ],
    ],
    [
      'repainted with backspaces',
      ['ls\r'],
      [
        ['>', 'l'],
        ['<', 'l'],
        ['>', 's'],
        ['<', '\bls'],
        ['>', '\r'],
        ['<', '\r\r\n'],
      ],
    ],
    [
      'after Enter alone',
      ['\r', 'ls\r'],
      [
        ['>', '\r'],
        ['<', '\r\n$ '],
        ['>', 'ls\r'],
        ['<', 'ls\r\n'],
      ],
    ],
  ])('%s', (_, expected, steps) => {
    expect(lines(play(...steps))).toEqual(expected)
  })
})

describe('input is withheld', () => {
  it.each<[string, string[], Step[]]>([
    [
      'at a prompt without echo',
      [],
      [
        ['<', 'Password: '],
        ['>', 'secret\r'],
        ['<', '\r\nok\r\n'],
      ],
    ],
    [
      'at a prompt without echo, byte by byte',
      [],
      [
        ['>', 's'],
        ['>', 'e'],
        ['>', '\r'],
        ['<', '\r\n'],
      ],
    ],
    [
      'at a prompt that prints stars',
      [],
      [
        ['>', 's'],
        ['<', '*'],
        ['>', 'e'],
        ['<', '*'],
        ['>', '\r'],
        ['<', '\r\n'],
      ],
    ],
    [
      'when something else is printed first',
      [],
      [
        ['>', 'ls\r'],
        ['<', 'message\r\nls\r\n'],
      ],
    ],
    [
      'up to Enter after a mismatch',
      ['ok\r'],
      [
        ['>', 'se'],
        ['<', 'x'],
        ['>', 'cret\r'],
        ['<', '\r\n'],
        ['>', 'ok\r'],
        ['<', 'ok\r\n'],
      ],
    ],
    [
      'when something is printed within the line',
      [],
      [
        ['>', 'a'],
        ['<', 'ax'],
        ['>', 'b\r'],
        ['<', 'b\r\n'],
      ],
    ],
    [
      'when the echo stops within the line',
      [],
      [
        ['>', 'ab'],
        ['<', 'a'],
        ['>', '\r'],
        ['<', '\r\n'],
      ],
    ],
    [
      'when a name was completed',
      [],
      [
        ['>', 'cat fi\t'],
        ['<', 'cat file '],
        ['>', '\r'],
        ['<', '\r\n'],
      ],
    ],
    ['when it never came back', [], [['>', 'secret']]],
    [
      'when it is too much',
      ['ok\r'],
      [
        ['>', `${'x'.repeat(5000)}\r`],
        ['<', 'x'.repeat(5000)],
        ['>', 'ok\r'],
        ['<', 'ok\r\n'],
      ],
    ],
    [
      'when the secret is pasted in brackets',
      [],
      [
        ['>', '\x1b[200~secret\x1b[201~\r'],
        ['<', '\r\n'],
      ],
    ],
    [
      'in all lines that wait when the first does not match',
      [],
      [
        ['>', 'secret\rls\r'],
        ['<', '\r\nls\r\n'],
      ],
    ],
  ])('%s', (_, expected, steps) => {
    expect(lines(play(...steps))).toEqual(expected)
  })
})

describe('a secret at a prompt without echo', () => {
  const secret = fc.string({
    unit: fc.constantFrom(...'abcXYZ019 é^[\x03\x7f\x08~'.split('')),
    minLength: 6,
    maxLength: 40,
  })
  /** Output of the target meanwhile. Only its `a` can be mistaken for an echo of the secret. */
  const noise = fc.array(
    fc.constantFrom(
      '',
      'job done\r\n',
      '\r\n',
      '\x1b[0m',
      '*',
      '\b',
      '\x07',
      '\x1b[?2004l',
      '^C',
      '\b \b',
      'a',
      '\x1b[200~',
    ),
    { maxLength: 60 },
  )
  const cuts = fc.array(fc.nat(8), { maxLength: 40 })

  it('is never in the input frames, whatever is printed meanwhile', () => {
    fc.assert(
      fc.property(secret, noise, cuts, fc.constantFrom('\r', '\n', '\x03'), (secret, noise, cuts, enter) => {
        const { notes, recorder } = begin()
        recorder.fromClient(Buffer.from('su\r'))
        recorder.fromTarget(Buffer.from('su\r\nPassword: '), false)
        const typed = Buffer.from(secret + enter)
        let at = 0
        for (let turn = 0; at < typed.length; turn++) {
          const piece = typed.subarray(at, at + (cuts[turn] ?? 1))
          recorder.fromClient(piece)
          at += piece.length
          recorder.fromTarget(Buffer.from(noise[turn] ?? ''), false)
        }
        recorder.fromTarget(Buffer.from('\r\n# '), false)
        recorder.fromClient(Buffer.from('id\r'))
        recorder.fromTarget(Buffer.from('id\r\nuid=0\r\n'), false)
        recorder.close()
        const kept = lines(notes).join('')
        for (let begin = 0; begin + 3 <= secret.length; begin++) {
          const part = secret.slice(begin, begin + 3)
          if (!/^[\x00-\x1f\x7fa]*$/.test(part)) expect(kept).not.toContain(part)
        }
        expect(kept.startsWith('su\r')).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })

  it('is in no frame at all when the target prints nothing of it', () => {
    const notes = play(
      ['<', 'Password: '],
      ['>', 'correct horse'],
      ['<', 'mail\r\n'],
      ['>', ' battery\r'],
      ['<', '\r\n# '],
    )
    const all = Buffer.concat(notes.frames.map((frame) => frame.payload)).toString()
    for (const word of ['correct', 'horse', 'battery']) expect(all).not.toContain(word)
  })
})

describe('a terminal', () => {
  it('is recorded with its size, its output and its exit', () => {
    const { notes, recorder } = begin()
    recorder.resize(300, 50)
    recorder.fromTarget(Buffer.from('hello'), false)
    recorder.exit({ signal: 'HUP' })
    recorder.close()
    expect(notes.open).toEqual({ kind: 'shell', subprotocol: 'SSH_SHELL', terminal })
    expect(notes.frames.slice(1)).toEqual([
      { type: FRAME.resize, payload: Buffer.from([0xac, 0x02, 50]) },
      { type: FRAME.output, payload: Buffer.from('hello') },
      { type: FRAME.exit, payload: Buffer.from('{"signal":"HUP"}') },
      { type: FRAME.channelClose, payload: Buffer.alloc(0) },
    ])
  })
})
