import { Buffer } from 'node:buffer'
import { readFileSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FXP } from '../../../../proxies/ssh/codec/sftp.ts'
import { recorderFor } from '../../../../proxies/ssh/recorder/factory.ts'
import { Notes } from './support/notes.ts'
import { type Capture, pieceSizes, replay, sha256, Workshop } from './support/real.ts'
import { packet, READ, Wire, WRITE } from './support/wire.ts'

function inspect(capture: Capture, size?: () => number): Notes {
  const notes = new Notes()
  replay(capture, recorderFor({ kind: 'sftp' }, notes.options()), size)
  return notes
}

describe('real SFTP clients', () => {
  const shop = new Workshop()
  const big = shop.file('big', 3 * 1024 * 1024 + 17)
  const small = shop.file('small', 100)
  const empty = shop.file('empty', 0)
  let session: Capture

  beforeAll(async () => {
    session = await shop.capture((ssh) => ({
      program: 'sftp',
      args: ['-S', ssh, '-b', '-', 'nowhere'],
      input: [
        `put ${big.path} up-big`,
        `put ${empty.path} up-empty`,
        `get ${big.path} down-big`,
        `get ${empty.path} down-empty`,
        `get ${small.path} down-small`,
        'mkdir folder',
        'rename up-big folder/moved',
        'ln folder/moved hard',
        'ln -s folder/moved soft',
        'chmod 600 hard',
        'ls folder',
        'rm soft',
        '-rm missing',
        '-get missing nothing',
        '-rmdir folder',
        `cp ${small.path} ${shop.path('copied')}`,
      ].join('\n'),
    }))
  }, 300_000)
  afterAll(() => shop.clean())

  it('gives each file of an OpenSSH session its size and hash', () => {
    const { transferFrames, violations, transfers } = inspect(session)
    expect(violations).toEqual([])
    const told = transferFrames.map(({ path, direction, size, sha256, result }) => ({
      path,
      direction,
      size,
      sha256,
      result,
    }))
    const here = (name: string) => shop.path(name)
    expect(told.slice(0, 5)).toEqual([
      { path: here('up-big'), direction: 'up', size: big.size, sha256: big.sha256, result: 'ok' },
      { path: here('up-empty'), direction: 'up', size: 0, sha256: empty.sha256, result: 'ok' },
      { path: big.path, direction: 'down', size: big.size, sha256: big.sha256, result: 'ok' },
      { path: empty.path, direction: 'down', size: 0, sha256: empty.sha256, result: 'ok' },
      { path: small.path, direction: 'down', size: small.size, sha256: small.sha256, result: 'ok' },
    ])
    expect(transfers).toEqual(told)
    expect(sha256(readFileSync(shop.path('folder/moved')))).toBe(big.sha256)
  })

  it('records what an OpenSSH session did to names, with the answers', () => {
    const { files } = inspect(session)
    const here = (name: string) => shop.path(name)
    const done = files.filter((file) => !['transfer', 'stat', 'setstat'].includes(file.operation))
    expect(done).toEqual(
      expect.arrayContaining([
        { operation: 'mkdir', path: here('folder'), result: 'ok' },
        { operation: 'rename', path: here('up-big'), target: here('folder/moved'), result: 'ok' },
        { operation: 'link', path: here('folder/moved'), target: here('hard'), result: 'ok' },
        { operation: 'symlink', path: 'folder/moved', target: here('soft'), result: 'ok' },
        { operation: 'list', path: `${here('folder')}/`, result: 'ok' },
        { operation: 'remove', path: here('soft'), result: 'ok' },
        { operation: 'remove', path: here('missing'), result: 'no such file' },
        { operation: 'rmdir', path: here('folder'), result: 'failure' },
      ]),
    )
    expect(files).toContainEqual(
      expect.objectContaining({ operation: 'setstat', path: here('hard'), result: 'ok' }),
    )
    expect(files.at(-1)).toEqual({
      operation: 'stat',
      path: '',
      result: expect.stringMatching(/^\d+ queries$/),
    })
  })

  it('tells what the target refused, and no question', () => {
    const here = (name: string) => shop.path(name)
    expect(inspect(session).refusals).toEqual([
      { operation: 'remove', path: here('missing'), reason: 'no such file' },
      { operation: 'rmdir', path: here('folder'), reason: 'failure' },
    ])
  })

  it('distinguishes a copy on the target from a transfer', () => {
    const { files } = inspect(session)
    expect(files).toContainEqual({
      operation: 'copy',
      path: small.path,
      target: shop.path('copied'),
      size: expect.any(Number),
      result: 'ok',
    })
    expect(files).toContainEqual(
      expect.objectContaining({ operation: 'transfer', path: shop.path('copied'), size: 0 }),
    )
    expect(files.find((file) => file.path === shop.path('copied'))?.sha256).toBeUndefined()
  })

  it('does not depend on how the stream is cut', () => {
    const whole = inspect(session).frames
    fc.assert(
      fc.property(fc.integer(), fc.constantFrom(3, 40, 5000, 100_000), (seed, most) => {
        expect(inspect(session, pieceSizes(seed, most)).frames).toEqual(whole)
      }),
      { numRuns: 12 },
    )
    expect(inspect(session, () => 1).frames).toEqual(whole)
  }, 300_000)

  it('follows scp, which speaks SFTP', async () => {
    const up = await shop.capture((ssh) => ({
      program: 'scp',
      args: ['-S', ssh, '-p', big.path, `x:${shop.path('by-scp')}`],
    }))
    expect(inspect(up).transfers).toEqual([
      { path: shop.path('by-scp'), direction: 'up', size: big.size, sha256: big.sha256, result: 'ok' },
    ])
    const down = await shop.capture((ssh) => ({
      program: 'scp',
      args: ['-S', ssh, `x:${big.path}`, 'scp-got'],
    }))
    expect(inspect(down).transfers).toEqual([
      { path: big.path, direction: 'down', size: big.size, sha256: big.sha256, result: 'ok' },
    ])
  }, 300_000)

  it('follows lftp, which keeps many requests open', async () => {
    const capture = await shop.capture((ssh) => ({
      program: 'lftp',
      args: [
        '--norc',
        '-c',
        `set sftp:connect-program "${ssh} -a -x"; open sftp://user:@nowhere; get ${big.path} -o lftp-got; put ${big.path} -o ${shop.path('lftp-put')}`,
      ],
    }))
    const { transfers, violations } = inspect(capture)
    expect(violations).toEqual([])
    expect(transfers).toContainEqual({
      path: big.path,
      direction: 'down',
      size: big.size,
      sha256: big.sha256,
      result: 'ok',
    })
    expect(transfers).toContainEqual(
      expect.objectContaining({ direction: 'up', size: big.size, sha256: big.sha256, result: 'ok' }),
    )
  }, 300_000)

  it('follows paramiko, which asks for a whole file at once', async () => {
    const script = shop.path('client.py')
    writeFileSync(
      script,
      `
import socket, subprocess, sys, paramiko
ours, theirs = socket.socketpair()
server = subprocess.Popen([sys.argv[1], 'nowhere', '-s', 'sftp'], stdin=theirs, stdout=theirs)
theirs.close()
class Pipe:
    def __init__(self, end): self.end = end
    def __getattr__(self, name): return getattr(self.end, name)
    def get_name(self): return 'pipe'
client = paramiko.SFTPClient(Pipe(ours))
client.get(sys.argv[2], 'paramiko-got')
client.put(sys.argv[2], 'paramiko-put')
ours.shutdown(socket.SHUT_WR)
server.wait()
`,
    )
    const capture = await shop.capture((ssh) => ({
      program: '/usr/bin/python3',
      args: [script, ssh, big.path],
    }))
    const { transfers, violations } = inspect(capture)
    expect(violations).toEqual([])
    expect(transfers).toEqual([
      { path: big.path, direction: 'down', size: big.size, sha256: big.sha256, result: 'ok' },
      { path: 'paramiko-put', direction: 'up', size: big.size, sha256: big.sha256, result: 'ok' },
    ])
  }, 300_000)
})

describe('answers that are short or overtake each other', () => {
  it('hashes a file whose replies come in any order', () => {
    const order = fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6, maxLength: 6 })
    fc.assert(
      fc.property(order, (ids) => {
        const wire = new Wire().begin().open(100, '/f', READ, 'h')
        for (let id = 0; id < 6; id++) wire.read(id, 'h', id * 4, 4)
        for (const id of ids) {
          if (id === 5) wire.status(5, 1)
          else wire.data(id, `abc${id}`)
        }
        wire.close(101, 'h')
        const expected = sha256(Buffer.from('abc0abc1abc2abc3abc4'))
        expect(wire.notes.transfers).toEqual([
          { path: '/f', direction: 'down', size: 20, sha256: expected, result: 'ok' },
        ])
      }),
    )
  })

  it('hashes a file after a short reply whose rest was asked for again', () => {
    const wire = new Wire().begin().open(1, '/f', READ, 'h').read(2, 'h', 0, 4).read(3, 'h', 4, 4)
    wire
      .data(2, 'ab')
      .data(3, 'ef')
      .read(4, 'h', 2, 2)
      .data(4, 'cd')
      .read(5, 'h', 6, 2)
      .status(5, 1)
      .close(6, 'h')
    expect(wire.notes.transfers[0]).toMatchObject({
      size: 6,
      sha256: sha256(Buffer.from('abcdef')),
      result: 'ok',
    })
  })

  it('gives no hash to a part of a file', () => {
    const parts = [
      new Wire().begin().open(1, '/f', READ, 'h').read(2, 'h', 0, 4).data(2, 'abcd').close(3, 'h'),
      new Wire()
        .begin()
        .open(1, '/f', READ, 'h')
        .read(2, 'h', 4, 4)
        .data(2, 'abcd')
        .read(4, 'h', 8, 1)
        .status(4, 1)
        .close(3, 'h'),
      new Wire().begin().open(1, '/f', WRITE, 'h').put(2, 'h', 0, 'abcd').resize(4, 'h', 3).close(3, 'h'),
      new Wire().begin().open(1, '/f', WRITE, 'h').put(2, 'h', 0, 'abcd').resize(4, 'h', 5).close(3, 'h'),
      new Wire().begin().open(1, '/f', WRITE, 'h').put(2, 'h', 9, 'abcd').close(3, 'h'),
      new Wire().begin().open(1, '/f', WRITE, 'h').put(2, 'h', 0, 'abcd').put(4, 'h', 2, 'x').close(3, 'h'),
      new Wire()
        .begin()
        .open(1, '/f', 2 | 4, 'h')
        .put(2, 'h', 0, 'abcd')
        .close(3, 'h'),
    ]
    for (const { notes } of parts) {
      expect(notes.transfers).toHaveLength(1)
      expect(notes.transfers[0]?.sha256).toBeUndefined()
      expect(notes.transfers[0]?.result).toMatch(/^ok, no hash/)
    }
  })

  it('gives the failure of a write, and no hash', () => {
    const wire = new Wire()
      .begin()
      .open(1, '/f', WRITE, 'h')
      .write(2, 'h', 0, 'abcd')
      .status(2, 4)
      .close(3, 'h')
    expect(wire.notes.transfers).toEqual([{ path: '/f', direction: 'up', size: 4, result: 'failure' }])
  })

  it('says so when the channel ends in the middle of a file', () => {
    const wire = new Wire().begin().open(1, '/f', WRITE, 'h').write(2, 'h', 0, 'abcd')
    wire.recorder.close()
    expect(wire.notes.transfers).toEqual([
      { path: '/f', direction: 'up', size: 4, result: 'the channel ended before the file was closed' },
    ])
  })

  it('stops hashing a file that waits for more than the reorder buffer', () => {
    const wire = new Wire().begin().open(1, '/f', WRITE, 'h')
    for (let id = 0; id < 80; id++) wire.put(1000 + id, 'h', 1 + id * 30_000, 'x'.repeat(30_000))
    wire.put(2000, 'h', 0, 'y').close(3, 'h')
    expect(wire.notes.transfers).toMatchObject([
      { size: 80 * 30_000 + 1, result: expect.stringMatching(/^ok, no hash/) },
    ])
  })
})

describe('streams that would hide something', () => {
  const cases: Record<string, (wire: Wire) => unknown> = {
    'a request before init': (wire) => wire.ask(FXP.remove, 1, (w) => w.string('/f')),
    'a version over 3': (wire) => {
      wire.recorder.fromClient(packet(FXP.init, (w) => w.uint32(6)))
      wire.recorder.fromTarget(
        packet(FXP.version, (w) => w.uint32(6)),
        false,
      )
    },
    'a write on a guessed handle': (wire) => wire.begin().write(1, 'h', 0, 'x'),
    'a packet over the limit': (wire) => wire.begin().recorder.fromClient(Buffer.from('7fffffff05', 'hex')),
    'a packet without a type': (wire) => wire.begin().recorder.fromClient(Buffer.from('0000000005', 'hex')),
    'a request over its limit': (wire) => wire.begin().recorder.fromClient(Buffer.from('0000ffff11', 'hex')),
    'an answer to nothing': (wire) => wire.begin().status(1, 0),
    'an answer of another kind': (wire) =>
      wire
        .begin()
        .ask(FXP.remove, 1, (w) => w.string('/f'))
        .answer(FXP.handle, 1, (w) => w.string('h')),
    'more data than was asked for': (wire) =>
      wire.begin().open(1, '/f', READ, 'h').read(2, 'h', 0, 2).data(2, 'abc'),
    'a request id that is in use': (wire) =>
      wire
        .begin()
        .ask(FXP.remove, 1, (w) => w.string('/f'))
        .ask(FXP.remove, 1, (w) => w.string('/g')),
    'a handle given twice': (wire) => wire.begin().open(1, '/f', WRITE, 'h').open(2, '/g', WRITE, 'h'),
    'a type of version 6': (wire) => wire.begin().ask(22, 1, (w) => w.string('h')),
    'too many open files': (wire) => {
      wire.begin()
      for (let id = 0; id < 1025; id++) wire.open(id, '/f', READ, `h${id}`)
    },
    'too many waiting reads': (wire) => {
      wire.begin().open(1, '/f', READ, 'h')
      for (let id = 2; id < 2 + 131_073; id++) wire.read(id, 'h', 0, 1)
    },
    'too many waiting requests': (wire) => {
      wire.begin()
      for (let id = 0; id < 4097; id++) wire.ask(FXP.stat, id, (w) => w.string('/f'))
    },
  }
  for (const [name, play] of Object.entries(cases)) {
    it(`are cut: ${name}`, () => {
      const wire = new Wire()
      play(wire)
      expect(wire.notes.violations).toHaveLength(1)
      wire.recorder.close()
    })
  }

  it('are not cut one request earlier', () => {
    const wire = new Wire().begin()
    for (let id = 0; id < 1024; id++) wire.open(id, '/f', READ, `h${id}`)
    for (let id = 2000; id < 2000 + 4096; id++) wire.ask(FXP.stat, id, (w) => w.string('/f'))
    for (let id = 10_000; id < 10_000 + 131_072 - 4096; id++) wire.read(id, 'h0', 0, 1)
    expect(wire.notes.violations).toEqual([])
  })
})
