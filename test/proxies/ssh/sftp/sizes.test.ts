/** Rules for sizes against all ways to enlarge a file: handles, channels, names, copies, truncation. */
import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { FXP } from '../../../../proxies/ssh/codec/sftp.ts'
import { OpenSizes } from '../../../../proxies/ssh/files/open-sizes.ts'
import {
  APPEND,
  attributes,
  CREATE,
  extended,
  idOf,
  named,
  open,
  packet,
  packetsOf,
  READ,
  status,
  Target,
  TRUNCATE,
  WRITE,
  write,
} from './support/packets.ts'
import { Talk } from './support/talk.ts'

const DENIED = 3
const LIMIT = ['allow up /** size<=100B', 'deny up /**']
const FILES = {
  '/in/f': 90,
  '/in/hard': 90,
  '/in/small': 10,
  '/free/f': 1,
  '/free/small': 1,
  '/out/small': 1,
}
const LINKS = { '/in/link': '/in/f', '/elsewhere': '/in' }

/** Returns a channel; with `sizes`, another one of the same session. */
const channel = (rules = LIMIT, sizes = new OpenSizes()) =>
  new Talk(new Target(LINKS, FILES), ['SFTP_SESSION'], rules, sizes).begin()
const copy = (id: number, from: string, to: string, at: bigint, length = 1n) =>
  packet(FXP.extended, (w) =>
    w.uint32(id).string('copy-data').string(from).uint64(0n).uint64(length).string(to).uint64(at),
  )

describe('a file that is added to', () => {
  test.each(['/in/f', '/in/link', '/elsewhere/f', '/in/hard'])(
    'counts what another handle adds, opened as %s',
    (name) => {
      const one = channel()
      one.ask(open(1, '/in/f', WRITE | APPEND))
      one.ask(open(2, name, WRITE | APPEND))
      expect(one.ask(write(3, 'h0', 0, 'x'.repeat(10))).code).toBe(0)
      expect(one.ask(write(4, 'h1', 0, 'x')).code).toBe(DENIED)
      expect(one.ask(write(5, 'h0', 0, 'x')).code).toBe(DENIED)
    },
  )

  test('counts what another channel adds', () => {
    const sizes = new OpenSizes()
    const [one, other] = [channel(LIMIT, sizes), channel(LIMIT, sizes)]
    one.ask(open(1, '/in/f', WRITE | APPEND))
    other.ask(open(1, '/in/hard', WRITE | APPEND))
    expect(one.ask(write(3, 'h0', 0, 'x'.repeat(10))).code).toBe(0)
    expect(other.ask(write(4, 'h0', 0, 'x')).code).toBe(DENIED)
  })

  test.each<[string, (one: Talk) => Buffer]>([
    ['a write at an offset', () => write(9, 'h1', 99, 'x')],
    ['a size that is set', () => attributes(FXP.fsetstat, 9, 'h1', 100)],
    ['a size that is set by name', () => attributes(FXP.setstat, 9, '/in/hard', 100)],
    ['a copy', () => copy(9, 'h2', 'h1', 99n)],
  ])('counts %s', (_, grow) => {
    const one = channel()
    one.ask(open(1, '/in/small', WRITE | APPEND))
    one.ask(open(2, '/in/hard', WRITE))
    one.ask(open(3, '/in/hard', READ))
    expect(one.ask(grow(one)).code).toBe(0)
    expect(one.ask(write(10, 'h0', 0, 'x')).code).toBe(DENIED)
  })

  test('counts an upload by old SCP', () => {
    const sizes = new OpenSizes()
    const one = channel(LIMIT, sizes)
    one.ask(open(1, '/in/small', WRITE | APPEND))
    sizes.reached(100)
    expect(one.ask(write(10, 'h0', 0, 'x')).code).toBe(DENIED)
  })

  test('counts, when it is opened, writes of another channel that have no reply yet', () => {
    const sizes = new OpenSizes()
    const [one, other] = [channel(LIMIT, sizes), channel(LIMIT, sizes)]
    one.ask(open(1, '/in/new', WRITE | CREATE | TRUNCATE))
    one.filter.fromClient(write(2, 'h0', 50, 'x'.repeat(50)))
    other.ask(open(1, '/in/small', WRITE | APPEND))
    expect(other.ask(write(2, 'h0', 0, 'x')).code).toBe(DENIED)
    one.settle()
    other.ask(open(3, '/in/small', WRITE | APPEND))
    expect(other.ask(write(4, 'h1', 0, 'x')).code).toBe(0)
  })

  test('counts no file that is closed, nor any of a closed channel', () => {
    const sizes = new OpenSizes()
    const [one, other] = [channel(LIMIT, sizes), channel(LIMIT, sizes)]
    one.ask(open(1, '/in/f', WRITE | APPEND))
    one.ask(write(2, 'h0', 0, 'x'.repeat(10)))
    one.ask(named(FXP.close, 3, 'h0'))
    one.ask(open(4, '/in/small', WRITE))
    one.filter.close()
    expect([...sizes.writing]).toEqual([])
    other.ask(open(1, '/in/small', WRITE | APPEND))
    expect(other.ask(write(2, 'h0', 0, 'x'.repeat(90))).code).toBe(0)
    expect(other.ask(write(3, 'h0', 0, 'x')).code).toBe(DENIED)
  })
})

describe('a file that is written at offsets', () => {
  test('stays within its limit by however many handles and names', () => {
    const one = channel()
    one.ask(open(1, '/in/new', WRITE | CREATE | TRUNCATE))
    one.ask(open(2, '/in/new', WRITE))
    expect(one.ask(write(3, 'h0', 0, 'x'.repeat(100))).code).toBe(0)
    expect(one.ask(write(4, 'h1', 100, 'x')).code).toBe(DENIED)
    expect(one.ask(write(5, 'h1', 2 ** 40, 'x')).code).toBe(DENIED)
  })

  test('gets no copy behind its limit, wherever it begins', () => {
    const one = channel()
    one.ask(open(1, '/in/new', WRITE | CREATE | TRUNCATE))
    one.ask(open(2, '/in/f', READ))
    expect(one.ask(copy(3, 'h1', 'h0', 99n)).code).toBe(0)
    expect(one.ask(copy(4, 'h1', 'h0', 100n)).code).toBe(DENIED)
    one.ask(open(5, '/in/other', WRITE | CREATE | TRUNCATE))
    expect(one.ask(copy(6, 'h1', 'h2', 2n ** 40n)).code).toBe(DENIED)
  })

  test('is not opened with a size beyond it', () => {
    const sized = (id: number, size: bigint) =>
      packet(FXP.open, (w) =>
        w
          .uint32(id)
          .string('/in/new')
          .uint32(WRITE | CREATE)
          .uint32(1)
          .uint64(size),
      )
    expect(channel().ask(sized(1, 100n)).type).toBe(FXP.handle)
    expect(channel().ask(sized(1, 101n)).code).toBe(DENIED)
  })

  test('is given no size by the name of a link that it may not have', () => {
    const one = channel(['deny up /in/f size>100B'])
    const set = (id: number, size: bigint) =>
      packet(FXP.extended, (w) =>
        w.uint32(id).string('lsetstat@openssh.com').string('/in/link').uint32(1).uint64(size),
      )
    expect(one.ask(set(1, 100n)).code).toBe(0)
    expect(one.ask(set(2, 101n)).code).toBe(DENIED)
  })
})

describe('a limit that holds in one folder', () => {
  const rules = ['deny up /in/** size>100B', 'deny down /out/** size>100B']
  const hardLink = (id: number, from: string, to: string) => extended(id, 'hardlink@openssh.com', from, to)

  test('is not left behind by another name', () => {
    const one = channel(rules)
    expect(one.ask(hardLink(1, '/free/small', '/in/new')).code).toBe(DENIED)
    expect(one.ask(hardLink(2, '/in/small', '/free/new')).code).toBe(DENIED)
    expect(one.ask(hardLink(3, '/out/small', '/free/new')).code).toBe(DENIED)
    expect(one.ask(hardLink(4, '/in/small', '/in/new')).code).toBe(0)
    expect(one.ask(hardLink(5, '/free/small', '/free/new')).code).toBe(0)
    expect(one.denials.map(({ reason }) => reason)).toEqual(
      Array(3).fill('the rules limit sizes otherwise under the other name'),
    )
  })

  test.each([
    ['rename', (id: number) => named(FXP.rename, id, '/free/f', '/in/new')],
    ['posix-rename', (id: number) => extended(id, 'posix-rename@openssh.com', '/free/f', '/in/new')],
  ])('is not left behind by a %s while the file is open, in whatever channel', (_, rename) => {
    const sizes = new OpenSizes()
    const [one, other] = [channel(rules, sizes), channel(rules, sizes)]
    other.ask(open(1, '/free/f', WRITE))
    expect(one.ask(rename(1)).code).toBe(DENIED)
    expect(one.denials.at(-1)?.reason).toMatch(/close it first/)
    expect(one.ask(named(FXP.rename, 2, '/free/f', '/free/g')).code).toBe(0)
    other.ask(named(FXP.close, 2, 'h0'))
    expect(one.ask(rename(3)).code).toBe(0)
  })
})

describe('a target that does not tell a size', () => {
  function asked(request: Buffer, answer: (id: number) => Buffer) {
    const one = channel()
    const take = one.target.take.bind(one.target)
    one.target.take = (bytes) => {
      const [question] = packetsOf(Buffer.from(bytes))
      const isSize = question?.type === FXP.stat || question?.type === FXP.lstat
      return isSize ? answer(idOf(question)) : take(bytes)
    }
    return { ...one.ask(request), denials: one.denials, passed: one.passed }
  }
  const sizeless = (id: number) => packet(FXP.attrs, (w) => w.uint32(id).uint32(0))

  test.each([
    ['opened', open(1, '/in/f', WRITE)],
    ['added to', open(1, '/in/f', WRITE | APPEND)],
    ['renamed', named(FXP.rename, 1, '/in/f', '/in/g')],
    ['linked', extended(1, 'hardlink@openssh.com', '/in/f', '/in/g')],
  ])('has nothing %s', (_, request) => {
    const { code, denials } = asked(request, sizeless)
    expect(code).toBe(DENIED)
    expect(denials).toMatchObject([{ reason: 'the target does not say how large it is' }])
  })

  test('for nothing is there: it can be made', () => {
    expect(asked(open(1, '/in/new', WRITE | CREATE), (id) => status(id, 2)).type).toBe(FXP.handle)
  })

  test('for another reason: the client is told that, and it is no denial', () => {
    const { code, denials, passed } = asked(open(1, '/in/f', WRITE), (id) => status(id, 4))
    expect([code, denials]).toEqual([4, []])
    expect(passed).not.toContain(FXP.open)
  })
})

test('a hard link of a link is judged by the place of the link too', () => {
  const target = new Target({ '/in/way': '/free/f', '/in/up': '..' }, { '/free/f': 1 })
  const one = new Talk(target, ['SFTP_SESSION'], ['deny any /in/way']).begin()
  expect(one.ask(extended(1, 'hardlink@openssh.com', '/in/up/in/way', '/free/new')).code).toBe(DENIED)
  expect(one.ask(extended(2, 'hardlink@openssh.com', '/in/up/free/f', '/free/new')).code).toBe(0)
})
