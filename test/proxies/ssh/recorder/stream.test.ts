import { Buffer } from 'node:buffer'
import { mkdirSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { classifyExec } from '../../../../proxies/ssh/codec/classify.ts'
import { recorderFor } from '../../../../proxies/ssh/recorder/factory.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { Notes } from './support/notes.ts'
import { type Capture, pieceSizes, replay, sha256, Workshop } from './support/real.ts'

function inspect(capture: Capture, size?: () => number): Notes {
  const notes = new Notes()
  const classified = classifyExec(capture.command)
  replay(capture, recorderFor({ kind: 'exec', command: capture.command, classified }, notes.options()), size)
  return notes
}

function side(capture: Capture, from: 'client' | 'target'): Buffer {
  return Buffer.concat(capture.pieces.filter((piece) => piece.from === from).map((piece) => piece.data))
}

/** Expects a stream recorded by operation: two hashes, and none of its data. */
function expectByOperation(capture: Capture, operation: string, path: string): void {
  const { files, frames, violations } = inspect(capture)
  const up = side(capture, 'client')
  const down = side(capture, 'target')
  expect(violations).toEqual([])
  expect(files).toEqual([
    { operation, path, direction: 'up', size: up.length, sha256: sha256(up), result: 'ok' },
    { operation, path, direction: 'down', size: down.length, sha256: sha256(down), result: 'ok' },
  ])
  const others = [FRAME.input, FRAME.output].map((type) => frames.filter((frame) => frame.type === type))
  expect(others).toEqual([[], []])
  const whole = inspect(capture).frames
  fc.assert(
    fc.property(fc.integer(), fc.constantFrom(2, 30, 3000), (seed, most) => {
      expect(inspect(capture, pieceSizes(seed, most)).frames).toEqual(whole)
    }),
    { numRuns: 6 },
  )
}

const shop = new Workshop()
afterAll(() => shop.clean())

describe('a real rsync', () => {
  const big = shop.file('big', 300_000)
  const rsync = (...args: string[]) =>
    shop.capture((ssh) => ({ program: 'rsync', args: ['-a', '-z', '--delete', '-e', ssh, ...args] }))

  it('is recorded by operation, up', async () => {
    const capture = await rsync(big.path, `x:${shop.path('up')}`)
    expectByOperation(capture, 'rsync', shop.path('up'))
    expect(inspect(capture).transfers).toMatchObject([
      { path: shop.path('up'), direction: 'up', result: 'ok' },
    ])
  })

  it('is recorded by operation, down', async () => {
    const capture = await rsync(`x:${big.path}`, shop.path('down'))
    expectByOperation(capture, 'rsync', big.path)
    expect(inspect(capture).transfers).toMatchObject([{ path: big.path, direction: 'down', result: 'ok' }])
  })
})

describe('a real git', () => {
  const git = (...args: string[]) =>
    shop.capture((ssh) => ({
      program: 'git',
      args: ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'protocol.version=0', ...args],
      env: { GIT_SSH: ssh, GIT_SSH_VARIANT: 'ssh', GIT_CONFIG_NOSYSTEM: '1' },
    }))
  const plain = async (...args: string[]) => {
    await shop.capture((ssh) => {
      writeFileSync(ssh.replace(/\.sh$/, ''), '')
      return { program: 'git', args: ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args] }
    })
  }

  it('is recorded by operation: push, clone and archive', async () => {
    mkdirSync(shop.path('work'))
    await plain('init', '-q', '--bare', shop.path('bare.git'))
    await plain('init', '-q', shop.path('work'))
    writeFileSync(shop.path('work/file'), 'hello')
    await plain('-C', shop.path('work'), 'add', 'file')
    await plain('-C', shop.path('work'), 'commit', '-q', '-m', 'one')
    const bare = shop.path('bare.git')
    const push = await git('-C', shop.path('work'), 'push', '-q', `ssh://x${bare}`, 'HEAD:refs/heads/main')
    expectByOperation(push, 'git-receive-pack', bare)
    expectByOperation(
      await git('clone', '-q', '-b', 'main', `ssh://x${bare}`, 'cloned'),
      'git-upload-pack',
      bare,
    )
    const second = await git(
      '-c',
      'protocol.version=2',
      'clone',
      '-q',
      '-b',
      'main',
      `ssh://x${bare}`,
      'cloned2',
    )
    expectByOperation(second, 'git-upload-pack', bare)
    const archive = await git('archive', `--remote=ssh://x${bare}`, '-o', shop.path('a.tar'), 'main')
    expectByOperation(archive, 'git-upload-archive', bare)
  }, 300_000)
})

describe('a stream that begins otherwise', () => {
  const rsync = Buffer.from('rsync --server -e.LsfxCIvu . /p')
  const receive = Buffer.from("git-upload-pack '/p'")
  const greeting = '001e# service=git-upload-pack\n'
  const advert = `003f${'0123456789abcdef0123'.repeat(2)} refs/heads/main\n`

  function play(command: Buffer, pieces: [from: 'client' | 'target', text: string][]): Notes {
    const capture = {
      command,
      pieces: pieces.map(([from, text]) => ({ from, data: Buffer.from(text, 'latin1') })),
    }
    return inspect(capture)
  }

  it('is recorded whole from its first byte, in either direction', () => {
    const cases: [Buffer, [from: 'client' | 'target', text: string][]][] = [
      [
        rsync,
        [
          ['client', 'id\n'],
          ['target', 'uid=0\n'],
        ],
      ],
      [
        rsync,
        [
          ['client', '\x1f\0\0\0'],
          ['target', 'bash-5.2$ '],
          ['client', 'id\n'],
        ],
      ],
      [
        rsync,
        [
          ['target', '\x1f\0\0\0'],
          ['client', '\x1f\0\0'],
          ['client', '\x01id\n'],
        ],
      ],
      [rsync, [['client', '\x1f\0']]],
      [
        rsync,
        [
          ['client', `\x1f\0\0\0${'i'.repeat(70_000)}`],
          ['target', 'x'],
        ],
      ],
      [
        receive,
        [
          ['target', '$ '],
          ['client', 'id\n'],
        ],
      ],
      [
        receive,
        [
          ['target', greeting],
          ['client', '0000'],
        ],
      ],
      [
        receive,
        [
          ['target', advert],
          ['client', '0009id\n\n\n'],
        ],
      ],
      [receive, [['target', '0003']]],
    ]
    for (const [command, pieces] of cases) {
      const notes = play(command, pieces)
      const sent = (from: string) =>
        pieces
          .filter((piece) => piece[0] === from)
          .map((piece) => piece[1])
          .join('')
      expect(notes.bytes(FRAME.input).toString('latin1')).toBe(sent('client'))
      expect(notes.bytes(FRAME.output).toString('latin1')).toBe(sent('target'))
      expect(notes.files).toEqual([])
      expect(notes.frames.at(-1)?.type).toBe(FRAME.channelClose)
    }
  })

  it('says what is missing when it shows only after a long beginning of the target', () => {
    const long = `${advert}${'x'.repeat(70_000)}`
    const notes = play(receive, [
      ['target', long],
      ['client', 'id\n'],
      ['target', 'uid=0\n'],
    ])
    expect(notes.bytes(FRAME.input).toString()).toBe('id\n')
    expect(notes.bytes(FRAME.output).toString()).toBe('uid=0\n')
    expect(notes.gaps).toEqual([
      { direction: 'out', reason: 'quota' },
      { direction: 'out', reason: 'quota', bytes: long.length, sha256: sha256(Buffer.from(long)) },
    ])
  })

  it('is none when nobody says anything', () => {
    const { files } = play(rsync, [])
    expect(files).toMatchObject([
      { operation: 'rsync', size: 0 },
      { operation: 'rsync', size: 0 },
    ])
  })
})
