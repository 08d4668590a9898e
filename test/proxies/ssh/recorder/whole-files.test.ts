/** A file's SHA-256 is reported only if it is the file's. */
import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { classifyExec } from '../../../../proxies/ssh/codec/classify.ts'
import { FXP } from '../../../../proxies/ssh/codec/sftp.ts'
import { recorderFor } from '../../../../proxies/ssh/recorder/factory.ts'
import { sha256 } from './support/real.ts'
import { READ, Wire, WRITE } from './support/wire.ts'

const APPEND = 4
const CREATE = 8
const TRUNCATE = 16
const EXCLUSIVE = 32
const ABCD = sha256(Buffer.from('abcd'))
const NONE = /^ok, no hash: /

const begin = () => new Wire().begin()
/** Opens, writes and closes a whole file, with a step in between. */
const upload = (between: (wire: Wire) => unknown, flags = WRITE) => {
  const wire = begin().open(1, '/f', flags, 'h').put(2, 'h', 0, 'ab')
  between(wire)
  return wire.put(3, 'h', 2, 'cd').close(4, 'h')
}
const copyInto = (wire: Wire, from: string, to: string) =>
  wire
    .ask(FXP.extended, 90, (w) =>
      w.string('copy-data').string(from).uint64(0n).uint64(0n).string(to).uint64(0n),
    )
    .status(90, 0)
const rename = (wire: Wire, name: string) =>
  wire.ask(FXP.extended, 91, (w) => w.string(name).string('/g').string('/f')).status(91, 0)

describe('an upload', () => {
  test.each([
    ['emptied', 2 | TRUNCATE],
    ['emptied or made', 2 | CREATE | TRUNCATE],
    ['made, where nothing was', 2 | CREATE | EXCLUSIVE],
  ])('has it when the file was %s', (_, flags) => {
    const { notes } = upload(() => undefined, flags)
    expect(notes.transfers).toEqual([{ path: '/f', direction: 'up', size: 4, sha256: ABCD, result: 'ok' }])
  })

  test.each([
    ['written over', 2],
    ['made, or written over', 2 | CREATE],
    ['written over, though nothing may be there', 2 | EXCLUSIVE],
    ['added to', 2 | APPEND],
    ['emptied and added to', 2 | APPEND | TRUNCATE],
    ['opened to be read', 1],
  ])('has none when the file was %s', (_, flags) => {
    const [transfer] = upload(() => undefined, flags).notes.transfers
    expect(transfer).toMatchObject({ size: 4, result: expect.stringMatching(NONE) })
    expect(transfer?.sha256).toBeUndefined()
  })

  test('has none when nothing was written to a file that may be there', () => {
    const { notes } = begin()
      .open(1, '/f', 2 | CREATE, 'h')
      .close(2, 'h')
    expect(notes.transfers).toEqual([
      { path: '/f', direction: 'up', size: 0, result: expect.stringMatching(NONE) },
    ])
  })

  test('has it when the file is cut where it ends, as scp does it, and the target has done so', () => {
    const scp = (code: number, after: (wire: Wire) => unknown = () => undefined) => {
      const wire = begin()
        .open(1, '/f', 2 | CREATE, 'h')
        .put(2, 'h', 0, 'abcd')
      after(wire.resize(3, 'h', 4).status(3, code))
      return wire.close(4, 'h').notes.transfers[0]
    }
    expect(scp(0)).toMatchObject({ sha256: ABCD, result: 'ok' })
    expect(scp(4)?.sha256).toBeUndefined()
    expect(scp(0, (wire) => wire.put(5, 'h', 4, 'e'))?.sha256).toBeUndefined()
    expect(scp(0, (wire) => wire.resize(5, 'h', 9).status(5, 0))?.sha256).toBeUndefined()
  })

  test.each<[string, (wire: Wire) => unknown]>([
    [
      'a write to a name that may be a link to it',
      (wire) => wire.open(50, '/g', 2, 'g').put(51, 'g', 0, 'x'),
    ],
    ['an open that empties', (wire) => wire.open(50, '/g', 2 | TRUNCATE, 'g')],
    ['an open that makes', (wire) => wire.open(50, '/g', 2 | CREATE, 'g')],
    [
      'a size set by name',
      (wire) => wire.ask(FXP.setstat, 50, (w) => w.string('/g').uint32(1).uint64(1n)).status(50, 0),
    ],
    [
      'a size set by the name of a link',
      (wire) =>
        wire
          .ask(FXP.extended, 50, (w) => w.string('lsetstat@openssh.com').string('/g').uint32(1).uint64(1n))
          .status(50, 0),
    ],
    ['a rename over it', (wire) => rename(wire, 'posix-rename@openssh.com')],
    ['a hard link', (wire) => rename(wire, 'hardlink@openssh.com')],
    ['an extension that is not known', (wire) => rename(wire, 'swap@example.com')],
    ['a rename', (wire) => wire.ask(FXP.rename, 50, (w) => w.string('/').string('/old')).status(50, 0)],
    [
      'a symbolic link',
      (wire) => wire.ask(FXP.symlink, 50, (w) => w.string('/g').string('/f')).status(50, 0),
    ],
    ['a removal', (wire) => wire.ask(FXP.remove, 50, (w) => w.string('/g')).status(50, 0)],
    [
      'a change that the target claims to have failed',
      (wire) => wire.ask(FXP.remove, 50, (w) => w.string('/g')).status(50, 4),
    ],
    ['a copy into another file', (wire) => copyInto(wire.open(50, '/g', 2, 'g'), 'h', 'g')],
  ])('has none over %s', (_, between) => {
    const { transfers } = upload(between).notes
    const own = transfers.find(({ path }) => path === '/f')
    expect(own?.sha256).toBeUndefined()
    expect(own).toMatchObject({ size: 4, result: expect.stringMatching(NONE) })
  })

  test('has it when times, rights, folders and questions come between', () => {
    const { notes } = upload((wire) => {
      wire.ask(FXP.fsetstat, 50, (w) => w.string('h').uint32(4).uint32(0o600)).status(50, 0)
      wire.ask(FXP.setstat, 51, (w) => w.string('/g').uint32(4).uint32(0o600)).status(51, 0)
      wire.ask(FXP.mkdir, 52, (w) => w.string('/d').uint32(0)).status(52, 0)
      wire.ask(FXP.stat, 53, (w) => w.string('/g')).status(53, 2)
      wire.open(54, '/g', READ, 'g').close(55, 'g')
    })
    expect(notes.transfers.find(({ path }) => path === '/f')?.sha256).toBe(ABCD)
  })

  test('has it one after the other, also of the same name', () => {
    const wire = upload(() => undefined)
    wire.open(60, '/g', WRITE, 'g').put(61, 'g', 0, 'abcd').close(62, 'g')
    expect(wire.notes.transfers.map(({ sha256: told }) => told)).toEqual([ABCD, ABCD])
  })

  test('has none when it is copied into first, and written then', () => {
    const wire = begin().open(1, '/f', WRITE, 'h').open(2, '/g', READ, 'g')
    copyInto(wire, 'g', 'h').put(3, 'h', 0, 'abcd').close(4, 'h')
    expect(wire.notes.transfers[0]).toMatchObject({ path: '/f', result: expect.stringMatching(NONE) })
    expect(wire.notes.transfers[0]?.sha256).toBeUndefined()
  })

  test('has none when something was copied into it, though it is written over and cut where that ends', () => {
    const copied = (before: (wire: Wire) => unknown) => {
      const wire = begin().open(1, '/f', 2, 'h').open(2, '/g', READ, 'g')
      before(wire)
      wire.put(3, 'h', 0, 'abcd').resize(4, 'h', 4).status(4, 0)
      return wire.close(5, 'h').notes.transfers[0]
    }
    expect(copied((wire) => copyInto(wire, 'g', 'h'))?.sha256).toBeUndefined()
    expect(copied(() => undefined)).toMatchObject({ path: '/f', sha256: ABCD })
  })

  test('has none when another channel of the session is writing', () => {
    const one = begin()
    const other = new Wire(one).begin()
    other.open(1, '/g', WRITE, 'g').write(2, 'g', 0, 'x')
    // The target may run the other channel's request at any time from here on.
    one.open(1, '/f', WRITE, 'h').put(2, 'h', 0, 'abcd').close(3, 'h')
    other.status(2, 0).close(3, 'g')
    expect(one.notes.transfers.map(({ path, sha256: told }) => [path, told])).toEqual([
      ['/f', undefined],
      ['/g', undefined],
    ])
  })

  test('has it when another channel was cut in the middle of its file', () => {
    const one = begin()
    const other = new Wire(one).begin()
    other.open(1, '/g', WRITE, 'g').write(2, 'g', 0, 'x')
    other.recorder.close()
    one.open(1, '/f', WRITE, 'h').put(2, 'h', 0, 'abcd').close(3, 'h')
    expect(one.notes.transfers.at(-1)).toMatchObject({ path: '/f', sha256: ABCD })
  })

  test('has none when old SCP writes meanwhile, nor has that', () => {
    const wire = begin().open(1, '/f', WRITE, 'h').put(2, 'h', 0, 'ab')
    const classified = classifyExec(Buffer.from('scp -t /g'))
    const scp = recorderFor(
      { kind: 'exec', command: Buffer.from('scp -t /g'), classified },
      wire.notes.options(),
    )
    scp.fromTarget(Buffer.from('\0'), false)
    scp.fromClient(Buffer.from('C0644 4 g\n'))
    scp.fromTarget(Buffer.from('\0'), false)
    scp.fromClient(Buffer.from('abcd\0'))
    wire.put(3, 'h', 2, 'cd').close(4, 'h')
    scp.fromTarget(Buffer.from('\0'), false)
    expect(wire.notes.transfers).toEqual([
      { path: '/f', direction: 'up', size: 4, result: expect.stringMatching(NONE) },
      { path: '/g', direction: 'up', size: 4, result: expect.stringMatching(NONE) },
    ])
  })

  test('has none when it is opened with a size of its own, until that is reached', () => {
    const opened = (size: bigint) =>
      begin()
        .ask(FXP.open, 1, (w) => w.string('/f').uint32(WRITE).uint32(1).uint64(size))
        .answer(FXP.handle, 1, (w) => w.string('h'))
        .put(2, 'h', 0, 'abcd')
        .close(3, 'h').notes.transfers[0]
    expect(opened(4n)).toMatchObject({ sha256: ABCD })
    expect(opened(5n)?.sha256).toBeUndefined()
  })

  test('has none if data is sent after its close', () => {
    const wire = begin().open(1, '/f', WRITE, 'h').put(2, 'h', 0, 'abcd')
    wire.ask(FXP.close, 3, (w) => w.string('h')).write(4, 'h', 4, 'evil')
    wire.status(3, 0).status(4, 4)
    expect(wire.notes.transfers).toEqual([{ path: '/f', direction: 'up', size: 8, result: 'failure' }])
    const accepted = begin().open(1, '/f', WRITE, 'h').put(2, 'h', 0, 'abcd')
    accepted.ask(FXP.close, 3, (w) => w.string('h')).write(4, 'h', 4, 'evil')
    accepted.status(3, 0).status(4, 0)
    expect(accepted.notes.transfers).toEqual([
      { path: '/f', direction: 'up', size: 8, result: expect.stringMatching(NONE) },
    ])
  })

  test('reports the bytes sent, whatever the target replies, and in any order', () => {
    const claims = begin().open(1, '/f', WRITE, 'h').write(2, 'h', 0, 'abcd').status(2, 4).close(3, 'h', 4)
    expect(claims.notes.transfers).toEqual([{ path: '/f', direction: 'up', size: 4, result: 'failure' }])
    const late = begin().open(1, '/f', WRITE, 'h').write(2, 'h', 0, 'abcd').close(3, 'h')
    expect(late.notes.transfers).toEqual([])
    expect(late.status(2, 4).notes.transfers).toEqual([
      { path: '/f', direction: 'up', size: 4, result: 'failure' },
    ])
    const never = begin().open(1, '/f', WRITE, 'h').write(2, 'h', 0, 'abcd').close(3, 'h')
    never.recorder.close()
    expect(never.notes.transfers).toEqual([
      { path: '/f', direction: 'up', size: 4, result: 'the channel ended before all of it was answered' },
    ])
  })
})

describe('a download', () => {
  const stat = (wire: Wire, id: number, size: bigint) =>
    wire.ask(FXP.stat, id, (w) => w.string('/f')).answer(FXP.attrs, id, (w) => w.uint32(1).uint64(size))
  const told = (wire: Wire) => wire.notes.transfers.find(({ direction }) => direction === 'down')

  test('has it when it was read from the beginning to the end', () => {
    const byEnd = begin().open(1, '/f', READ, 'h').read(2, 'h', 0, 9).data(2, 'abcd').read(3, 'h', 4, 9)
    expect(told(byEnd.status(3, 1).close(4, 'h'))).toMatchObject({ sha256: ABCD })
    const bySize = stat(begin(), 9, 4n).open(1, '/f', READ, 'h').read(2, 'h', 0, 4).data(2, 'abcd')
    expect(told(bySize.close(4, 'h'))).toMatchObject({ sha256: ABCD })
  })

  test('has none when its size was asked before the file was changed', () => {
    const wire = stat(begin(), 9, 4n)
      .open(10, '/g', 2 | APPEND, 'g')
      .put(11, 'g', 0, 'more')
      .close(12, 'g')
    wire.open(1, '/f', READ, 'h').read(2, 'h', 0, 4).data(2, 'abcd').close(4, 'h')
    expect(told(wire)).toMatchObject({ size: 4, result: expect.stringMatching(NONE) })
    expect(told(wire)?.sha256).toBeUndefined()
  })

  test('has none if it is longer than the target had reported', () => {
    const wire = stat(begin(), 9, 2n)
      .open(1, '/f', READ, 'h')
      .read(2, 'h', 0, 4)
      .data(2, 'abcd')
      .close(4, 'h')
    expect(told(wire)?.sha256).toBeUndefined()
  })

  test('has none when something is written meanwhile, also by itself', () => {
    const other = begin().open(1, '/f', READ, 'h').read(2, 'h', 0, 9).data(2, 'abcd')
    other.open(10, '/g', 2, 'g').put(11, 'g', 0, 'x').read(3, 'h', 4, 9).status(3, 1).close(4, 'h')
    expect(told(other)?.sha256).toBeUndefined()
    const own = begin()
      .open(1, '/f', READ | 2, 'h')
      .read(2, 'h', 0, 9)
      .data(2, 'abcd')
    own.put(11, 'h', 0, 'x').read(3, 'h', 4, 9).status(3, 1).close(4, 'h')
    expect(told(own)?.sha256).toBeUndefined()
  })

  test('counts data that arrives after its close', () => {
    const wire = begin().open(1, '/f', READ, 'h').read(2, 'h', 0, 9).read(3, 'h', 4, 9).close(4, 'h')
    expect(wire.notes.files).toEqual([])
    wire.data(2, 'abcd').status(3, 1)
    expect(told(wire)).toEqual({ path: '/f', direction: 'down', size: 4, sha256: ABCD, result: 'ok' })
  })

  test('counts the whole of an answer that comes in pieces behind its close', () => {
    const wire = begin().open(1, '/f', READ, 'h').read(2, 'h', 0, 9).close(4, 'h')
    const answer = Buffer.from('00000009670000000200000004'.replace('09', '0d'), 'hex')
    wire.recorder.fromTarget(answer, false)
    wire.recorder.fromTarget(Buffer.from('ab'), false)
    expect(told(wire)).toBeUndefined()
    wire.recorder.fromTarget(Buffer.from('cd'), false)
    expect(told(wire)).toMatchObject({ size: 4 })
  })
})

test.each<[string, (wire: Wire) => unknown]>([
  // Written twice: it is broken.
  ['a file that never has a hash', (wire) => wire.put(2000, 'h', 1, 'x')],
  ['a file that is closed before', () => undefined],
  ['what has come since', (wire) => wire.put(2000, 'h', 0, 'x')],
])('pieces that wait for %s leave their room to the next file', (_, then) => {
  const wire = begin()
  const piece = 'x'.repeat(30_000)
  for (let round = 0; round < 3; round++) {
    wire.open(1, '/before', WRITE, 'h')
    for (let id = 0; id < 60; id++) wire.put(1000 + id, 'h', 1 + id * piece.length, piece)
    then(wire)
    wire.close(3, 'h')
  }
  wire.open(1, '/f', WRITE, 'h')
  for (let id = 60; id >= 0; id--) wire.put(1000 + id, 'h', id * piece.length, piece)
  wire.close(3, 'h')
  expect(wire.notes.transfers.at(-1)).toMatchObject({
    path: '/f',
    sha256: sha256(Buffer.from(piece.repeat(61))),
  })
})

test('pieces of a byte have a bound that counts what each costs beside its byte', () => {
  const backward = (bytes: number) => {
    const wire = begin().open(1, '/f', WRITE, 'h')
    for (let at = bytes - 1; at >= 0; at--) wire.put(1000 + at, 'h', at, 'x')
    return wire.close(3, 'h').notes.transfers[0]
  }
  expect(backward(1_000)?.sha256).toBe(sha256(Buffer.from('x'.repeat(1_000))))
  expect(backward(10_000)).toMatchObject({ size: 10_000, result: expect.stringMatching(NONE) })
})
