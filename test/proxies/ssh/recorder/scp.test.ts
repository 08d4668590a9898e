import { Buffer } from 'node:buffer'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { classifyExec } from '../../../../proxies/ssh/codec/classify.ts'
import { recorderFor } from '../../../../proxies/ssh/recorder/factory.ts'
import type { ChannelRecorder } from '../../../../proxies/ssh/recorder/recorder.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { Notes } from './support/notes.ts'
import { type Capture, pieceSizes, replay, sha256, Workshop } from './support/real.ts'

function begin(command: Uint8Array, rules: string[] = []): { notes: Notes; recorder: ChannelRecorder } {
  const notes = new Notes()
  const classified = classifyExec(command)
  if (classified.kind !== 'scp') throw new Error(`no scp: ${command}`)
  const right = classified.direction === 'up' ? 'SSH_SCP_UP' : 'SSH_SCP_DOWN'
  const options = { ...notes.options(undefined, rules), right } as const
  return { notes, recorder: recorderFor({ kind: 'exec', command, classified }, options) }
}

function inspect(capture: Capture, size?: () => number): Notes {
  const { notes, recorder } = begin(capture.command)
  replay(capture, recorder, size)
  return notes
}

describe('a real scp -O', () => {
  const shop = new Workshop()
  const big = shop.file('big', 1024 * 1024 + 17)
  const empty = shop.file('empty', 0)
  mkdirSync(shop.path('tree/inner'), { recursive: true })
  writeFileSync(shop.path('tree/one'), '1')
  writeFileSync(shop.path('tree/inner/two'), '22')
  mkdirSync(shop.path('target'))
  let tree: Capture
  const scp = (...args: string[]) =>
    shop.capture((ssh) => ({ program: 'scp', args: ['-O', '-S', ssh, ...args] }))

  beforeAll(async () => {
    tree = await scp('-r', '-p', `x:${shop.path('tree')}`, 'got-tree')
  })
  afterAll(() => shop.clean())

  it('gives an upload its size and hash', async () => {
    const { transfers, violations, open } = inspect(await scp(big.path, `x:${shop.path('up')}`))
    expect(violations).toEqual([])
    expect(open).toMatchObject({
      kind: 'scp',
      subprotocol: 'SSH_SCP_UP',
      command: `scp -t ${shop.path('up')}`,
    })
    expect(sha256(readFileSync(shop.path('up')))).toBe(big.sha256)
    expect(transfers).toEqual([
      { path: shop.path('up/big'), direction: 'up', size: big.size, sha256: big.sha256, result: 'ok' },
    ])
  })

  it('gives each of several uploaded files its size and hash', async () => {
    const { transfers } = inspect(await scp('-v', big.path, empty.path, `x:${shop.path('target')}`))
    expect(transfers).toEqual([
      { path: shop.path('target/big'), direction: 'up', size: big.size, sha256: big.sha256, result: 'ok' },
      { path: shop.path('target/empty'), direction: 'up', size: 0, sha256: empty.sha256, result: 'ok' },
    ])
  })

  it('gives a download its size and hash', async () => {
    const { transfers, open } = inspect(await scp(`x:${big.path}`, 'got'))
    expect(open).toMatchObject({ kind: 'scp', subprotocol: 'SSH_SCP_DOWN' })
    expect(transfers).toEqual([
      { path: big.path, direction: 'down', size: big.size, sha256: big.sha256, result: 'ok' },
    ])
  })

  it('follows folders', () => {
    const { files, violations } = inspect(tree)
    expect(violations).toEqual([])
    expect(files).toHaveLength(4)
    expect(files).toEqual(
      expect.arrayContaining([
        { operation: 'directory', path: shop.path('tree'), direction: 'down', result: 'ok' },
        { operation: 'directory', path: shop.path('tree/inner'), direction: 'down', result: 'ok' },
        expect.objectContaining({ path: shop.path('tree/one'), sha256: sha256(Buffer.from('1')) }),
        expect.objectContaining({ path: shop.path('tree/inner/two'), sha256: sha256(Buffer.from('22')) }),
      ]),
    )
  })

  it('records what it says of a file that is not there', async () => {
    const missing = await shop.capture(
      (ssh) => ({ program: 'scp', args: ['-O', '-S', ssh, `x:${shop.path('missing')}`, 'got'] }),
      1,
    )
    const { files, refusals } = inspect(missing)
    const result = expect.stringContaining('No such file or directory')
    expect(files).toEqual([expect.objectContaining({ operation: 'message', result })])
    const path = shop.path('missing')
    expect(refusals).toEqual([{ operation: 'scp', path, direction: 'down', reason: result }])
  })

  it('does not depend on how the stream is cut', () => {
    const whole = inspect(tree).frames
    fc.assert(
      fc.property(fc.integer(), fc.constantFrom(2, 10, 100), (seed, most) => {
        expect(inspect(tree, pieceSizes(seed, most)).frames).toEqual(whole)
      }),
      { numRuns: 30 },
    )
  })
})

type Line = ['client' | 'target', string]

function play(command: string, lines: Line[]): Notes {
  const { notes, recorder } = begin(Buffer.from(command))
  for (const [from, text] of lines) {
    const data = Buffer.from(text, 'latin1')
    if (from === 'client') recorder.fromClient(data)
    else recorder.fromTarget(data, false)
  }
  recorder.close()
  return notes
}

describe('an SCP that does something else than it says', () => {
  const violations: [string, string, Line[]][] = [
    ['records from the client of a download', 'scp -f f', [['client', '\0C0644 1 x\n']]],
    ['records from the target of an upload', 'scp -t f', [['target', '\0C0644 1 x\n']]],
    ['a shell in the client of a download', 'scp -f f', [['client', 'id\n']]],
    ['a shell in the client of an upload', 'scp -t f', [['client', 'id\n']]],
    [
      'a name with a path',
      'scp -f f',
      [
        ['client', '\0'],
        ['target', 'C0644 1 ../x\n'],
      ],
    ],
    [
      'an absolute name',
      'scp -f f',
      [
        ['client', '\0'],
        ['target', 'C0644 1 /etc/passwd\n'],
      ],
    ],
    [
      'a folder that is the one above',
      'scp -r -f f',
      [
        ['client', '\0'],
        ['target', 'D0755 0 ..\n'],
      ],
    ],
    [
      'a name with NUL',
      'scp -f f',
      [
        ['client', '\0'],
        ['target', 'C0644 1 a\0b\n'],
      ],
    ],
    ['an answer to nothing', 'scp -t f', [['target', '\0\0']]],
    [
      'more data than the record said',
      'scp -t f',
      [
        ['target', '\0'],
        ['client', 'C0644 1 x\n'],
        ['target', '\0'],
        ['client', 'abc'],
      ],
    ],
    [
      'data before its refusal',
      'scp -t f',
      [
        ['target', '\0'],
        ['client', 'C0644 5 x\nab'],
        ['target', '\x01no\n'],
      ],
    ],
    [
      'records before their folder is refused',
      'scp -r -t f',
      [
        ['target', '\0'],
        ['client', 'D0755 0 d\nC0644 5 x\n'],
        ['target', '\x01no\n'],
      ],
    ],
    ['a line without an end', 'scp -t f', [['client', `C0644 1 ${'x'.repeat(9000)}`]]],
    ['a size over 2^53', 'scp -t f', [['client', 'C0644 9999999999999999 x\n']]],
    ['no answers', 'scp -t f', [['client', 'T1 0 1 0\n'.repeat(70)]]],
    [
      'folders without an end',
      'scp -r -t f',
      Array.from({ length: 257 }, (): Line[] => [
        ['client', 'D0755 0 d\n'],
        ['target', '\0'],
      ]).flat(),
    ],
    [
      'a text without an end',
      'scp -t f',
      [
        ['target', 'hello\n'],
        ['target', 'x'.repeat(5000)],
      ],
    ],
    [
      'an upload after the target has no scp',
      'scp -t f',
      [
        ['target', 'no scp here\n'],
        ['client', 'C0644 1 x\n'],
      ],
    ],
  ]
  for (const [name, command, lines] of violations) {
    it(`is cut: ${name}`, () => {
      const { violations, frames } = play(command, lines)
      expect(violations).toHaveLength(1)
      expect(frames.filter((frame) => frame.type === FRAME.denied)).toHaveLength(1)
    })
  }
})

describe('an SCP', () => {
  it('may have a sender that does not wait', () => {
    const { transfers, violations } = play('scp -t f', [
      ['client', 'C0644 3 f\nabc\0'],
      ['target', '\0\0\0'],
    ])
    expect(violations).toEqual([])
    expect(transfers).toEqual([
      { path: 'f', direction: 'up', size: 3, sha256: sha256(Buffer.from('abc')), result: 'ok' },
    ])
  })

  it('records the refusal of a file and goes on with the next', () => {
    const { transfers } = play('scp -d -t d', [
      ['target', '\0'],
      ['client', 'C0644 3 a\n'],
      ['target', '\x01scp: d/a: Permission denied\n'],
      ['client', 'C0644 3 b\n'],
      ['target', '\0'],
      ['client', 'abc\0'],
      ['target', '\0'],
    ])
    expect(transfers).toEqual([
      { path: 'd/a', direction: 'up', size: 0, result: 'scp: d/a: Permission denied' },
      { path: 'd/b', direction: 'up', size: 3, sha256: sha256(Buffer.from('abc')), result: 'ok' },
    ])
  })

  it('leaves a folder that was refused', () => {
    const { files, refusals } = play('scp -r -t d', [
      ['target', '\0'],
      ['client', 'D0755 0 x\n'],
      ['target', '\x01no\n'],
      ['client', 'C0644 0 b\n'],
      ['target', '\0'],
      ['client', '\0'],
      ['target', '\0'],
    ])
    expect(files.at(-1)).toMatchObject({ operation: 'transfer', path: 'd/b', result: 'ok' })
    expect(refusals).toEqual([{ operation: 'scp', path: 'd/x', direction: 'up', reason: 'no' }])
  })

  it("tells no message of the client as the target's refusal", () => {
    const { refusals, files } = play('scp -t f', [
      ['target', '\0'],
      ['client', '\x01my own disk\n'],
    ])
    expect(files).toMatchObject([{ operation: 'message', result: 'my own disk' }])
    expect(refusals).toEqual([])
  })

  it('has no hash where the sender could not read the file, or the channel ended', () => {
    const unread = play('scp -f f', [
      ['client', '\0'],
      ['target', 'C0644 1 f\n'],
      ['client', '\0'],
      ['target', '\0\x01io error\n'],
      ['client', '\0'],
    ])
    expect(unread.transfers).toEqual([{ path: 'f', direction: 'down', size: 1, result: 'io error' }])
    const cut = play('scp -f f', [
      ['client', '\0'],
      ['target', 'C0644 5 f\n'],
      ['client', '\0'],
      ['target', 'ab'],
    ])
    expect(cut.transfers).toEqual([
      { path: 'f', direction: 'down', size: 2, result: 'the channel ended before the file was complete' },
    ])
  })

  it('records the text of a target that has none', () => {
    const text = 'This account is currently not available.\n'
    const up = play('scp -t f', [['target', text]])
    const down = play('scp -f f', [
      ['target', text],
      ['client', '\0\x01protocol error\n'],
      ['target', 'more'],
    ])
    expect(up.violations).toEqual([])
    expect(down.violations).toEqual([])
    expect(up.bytes(FRAME.output).toString()).toBe(text)
    expect(up.refusals).toEqual([
      { operation: 'scp', path: 'f', direction: 'up', reason: 'This account is currently not available.' },
    ])
    expect(down.refusals).toHaveLength(1)
    expect(down.bytes(FRAME.output).toString()).toBe(`${text}more`)
  })
})

describe('rules for files', () => {
  const up = (rules: string[], records: string, command = 'scp -r -t /in') => {
    const { notes, recorder } = begin(Buffer.from(command), rules)
    recorder.fromTarget(Buffer.of(0), false)
    recorder.fromClient(Buffer.from(records))
    recorder.close()
    return notes
  }

  it('are asked with the size that the record names', () => {
    const rules = ['deny up /** size>10B']
    expect(up(rules, 'C0644 10 a\n').denials).toEqual([])
    const { denials, transfers } = up(rules, 'C0644 11 a\n01234567890')
    expect(denials).toMatchObject([{ operation: 'transfer', path: '/in/a', direction: 'up' }])
    expect(transfers).toEqual([])
  })

  it('are asked for the name of the record and for the one of the command', () => {
    const rules = ['deny up /** ext=exe']
    expect(up(rules, 'C0644 1 a.txt\n').denials).toEqual([])
    expect(up(rules, 'C0644 1 a.EXE\n').denials).toHaveLength(1)
    expect(up(rules, 'C0644 1 a.txt\n', 'scp -t b.exe').denials).toHaveLength(1)
    expect(up(rules, 'D0755 0 d.exe\n').denials).toHaveLength(1)
  })
})
