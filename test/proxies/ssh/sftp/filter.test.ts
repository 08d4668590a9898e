import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { FXP } from '../../../../proxies/ssh/codec/sftp.ts'
import { ANSWERS_LIMIT } from '../../../../proxies/ssh/sftp/filter.ts'
import type { Right } from '../../../../src/model/rights.ts'
import {
  attributes,
  CREATE,
  EXTENSIONS,
  extended,
  idOf,
  init,
  named,
  open,
  type Packet,
  READ,
  read,
  stringsOf,
  Target,
  TRUNCATE,
  WRITE,
  write,
} from './support/packets.ts'
import { Talk } from './support/talk.ts'

const UP: Right = 'SSH_SCP_UP'
const DOWN: Right = 'SSH_SCP_DOWN'
const ALL: Right = 'SFTP_SESSION'
const DENIED = 3

/** The lists of the notes, written independently. */
const QUESTIONS = [FXP.realpath, FXP.stat, FXP.lstat, FXP.fstat, FXP.close] as const
const ASKED_BY_NAME = ['limits@openssh.com', 'statvfs@openssh.com', 'expand-path@openssh.com']

function mayPass({ type, body }: Packet, rights: readonly Right[]): boolean {
  if (rights.includes(ALL) || type === FXP.init) return true
  if (QUESTIONS.some((question) => question === type)) return true
  const isUp = rights.includes(UP)
  const isDown = rights.includes(DOWN)
  const [first = ''] = stringsOf({ type, body }, 1)
  switch (type) {
    case FXP.open: {
      const flags = body.readUInt32BE(8 + Buffer.byteLength(first))
      if (flags === READ) return isDown
      return isUp && (isDown || ((flags & WRITE) !== 0 && (flags & READ) === 0))
    }
    case FXP.read:
    case FXP.opendir:
    case FXP.readdir:
    case FXP.readlink:
      return isDown
    case FXP.write:
    case FXP.mkdir:
    case FXP.setstat:
    case FXP.fsetstat:
      return isUp
    case FXP.extended:
      return ASKED_BY_NAME.includes(first) || (first === 'fsync@openssh.com' && isUp)
  }
  return false
}

const path = fc.constantFrom('/in/a', '/etc/b', 'c', '..', '/link/d', '')
const handle = fc.constantFrom('h0', 'h1')
const request = fc.oneof(
  fc.tuple(path, fc.nat(63)).map(
    ([where, flags]) =>
      (id: number) =>
        open(id, where, flags),
  ),
  fc.tuple(handle, fc.nat(200)).map(
    ([h, at]) =>
      (id: number) =>
        write(id, h, at, 'data'),
  ),
  fc.tuple(handle, fc.nat(200)).map(
    ([h, at]) =>
      (id: number) =>
        read(id, h, at, 50),
  ),
  fc.tuple(fc.constantFrom(FXP.close, FXP.fstat, FXP.readdir), handle).map(
    ([type, h]) =>
      (id: number) =>
        named(type, id, h),
  ),
  fc
    .tuple(
      fc.constantFrom(FXP.lstat, FXP.stat, FXP.opendir, FXP.remove, FXP.rmdir, FXP.realpath, FXP.readlink),
      path,
    )
    .map(
      ([type, where]) =>
        (id: number) =>
          named(type, id, where),
    ),
  fc.tuple(fc.constantFrom(FXP.setstat, FXP.mkdir), path).map(
    ([type, where]) =>
      (id: number) =>
        attributes(type, id, where),
  ),
  fc.tuple(fc.constantFrom(FXP.rename, FXP.symlink), path, path).map(
    ([type, from, to]) =>
      (id: number) =>
        named(type, id, from, to),
  ),
  fc.tuple(fc.constantFrom(...EXTENSIONS.filter((name) => name !== 'copy-data')), path).map(
    ([name, where]) =>
      (id: number) =>
        extended(id, name, where, where),
  ),
)
const requests = fc.array(request, { maxLength: 30 })
const rightSets = fc.subarray([UP, DOWN, ALL], { minLength: 1 })
const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 5 })

/** Sends all requests. Returns false if one breaks the protocol: reuses a handle, or guesses one. */
function run(talk: Talk, stream: Buffer, cuts: number[]): boolean {
  let at = 0
  try {
    talk.send(Buffer.concat([init(), stream]), () => cuts[at++ % cuts.length]!)
    return true
  } catch (error) {
    expect(error).toBeInstanceOf(MalformedError)
    return false
  }
}

describe('any stream of requests with any rights', () => {
  test('nothing that is forbidden passes, what passes is as it came, and each has one answer', () => {
    fc.assert(
      fc.property(requests, rightSets, sizes, (make, rights, cuts) => {
        const talk = new Talk(new Target(), rights)
        const sent = make.map((one, id) => one(id))
        expect(run(talk, Buffer.concat(sent), cuts)).toBe(true)
        const got = talk.target.got.slice(1)
        expect(got.filter((packet) => !mayPass(packet, rights))).toEqual([])
        for (const one of got) expect(one.body).toEqual(sent[idOf(one)]!.subarray(5))
        const expected = make.map((_, id) => id).filter((id) => mayPass(packetOf(sent[id]!), rights))
        expect(got.map(idOf)).toEqual(expected)
        const [version, ...answers] = talk.answers()
        expect(version?.type).toBe(FXP.version)
        expect(answers.map(idOf).sort((a, b) => a - b)).toEqual(make.map((_, id) => id))
        expect(talk.denials).toHaveLength(make.length - got.length)
      }),
      { numRuns: 500 },
    )
  })

  test('the same with rules beside', () => {
    const rules = ['deny any /etc/**', 'deny up /** size>100B', 'allow any /**']
    fc.assert(
      fc.property(requests, rightSets, sizes, (make, rights, cuts) => {
        const talk = new Talk(new Target({ '/link': '/etc' }), rights, rules)
        const sent = make.map((one, id) => one(id))
        const isWhole = run(talk, Buffer.concat(sent), cuts)
        const got = talk.target.got.slice(1).filter((packet) => idOf(packet) < 0xffff0000)
        for (const packet of got) {
          expect(mayPass(packet, rights)).toBe(true)
          const isChange = [FXP.open, FXP.opendir, FXP.mkdir, FXP.remove, FXP.rename, FXP.setstat].some(
            (type) => type === packet.type,
          )
          if (isChange) expect(talk.target.real(stringsOf(packet, 1)[0]!)).not.toMatch(/^\/etc/)
        }
        const ids = talk.answers().slice(1).map(idOf)
        expect(new Set(ids).size).toBe(ids.length)
        if (isWhole) expect(ids.sort((a, b) => a - b)).toEqual(make.map((_, id) => id))
      }),
      { numRuns: 500 },
    )
  })
})

function packetOf(bytes: Buffer): Packet {
  return { type: bytes[4]!, body: bytes.subarray(5) }
}

test('extensions that are not allowed are not offered', () => {
  const offered = (rights: Right[], rules: string[] = []) => {
    const talk = new Talk(new Target(), rights, rules)
    talk.send(init())
    const [version] = talk.answers()
    return EXTENSIONS.filter((name) => version?.body.includes(name))
  }
  expect(offered([UP])).toEqual(['limits@openssh.com', 'fsync@openssh.com'])
  expect(offered([DOWN])).toEqual(['limits@openssh.com'])
  expect(offered([ALL])).toEqual(EXTENSIONS)
  expect(offered([ALL], ['deny up /x'])).toEqual(EXTENSIONS.slice(0, -1))
})

test('a client of a later version is answered by version 3', () => {
  const talk = new Talk(new Target(), [UP])
  talk.send(init(6))
  expect(talk.target.got[0]?.body).toEqual(Buffer.from([0, 0, 0, 3]))
})

test('the refusal names the missing right, and is told once', () => {
  const talk = new Talk(new Target(), [UP]).begin()
  expect(talk.ask(open(7, '/secret', READ))).toEqual({
    type: FXP.status,
    code: DENIED,
    text: 'the right SSH_SCP_DOWN is missing',
  })
  expect(talk.denials).toEqual([
    {
      operation: 'open',
      path: '/secret',
      direction: 'down',
      reason: 'the right SSH_SCP_DOWN is missing',
    },
  ])
  expect(talk.ask(named(FXP.remove, 8, '/f')).text).toBe('the right SFTP_SESSION is missing')
})

test('an answer of the bastion does not break into one of the target', () => {
  const talk = new Talk(new Target(), [DOWN]).begin()
  talk.send(open(1, '/f', READ))
  talk.answers()
  const data = talk.target.take(read(2, 'h0', 0, 100))
  talk.filter.fromTarget(data.subarray(0, 40))
  talk.filter.fromClient(named(FXP.remove, 3, '/f'))
  talk.filter.fromTarget(data.subarray(40))
  expect(talk.answers().map(({ type }) => type)).toEqual([FXP.data, FXP.status])
})

test('an answer of the bastion comes behind those to what was asked before', () => {
  const talk = new Talk(new Target(), [ALL], ['deny up /** size>10B']).begin()
  talk.ask(open(1, '/in/f', WRITE | CREATE | TRUNCATE))
  const writes = [write(2, 'h0', 0, '12345'), write(3, 'h0', 5, '12345'), write(4, 'h0', 10, '12345')]
  talk.filter.fromClient(Buffer.concat([...writes, named(FXP.close, 5, 'h0')]))
  expect(talk.answers()).toEqual([])
  talk.settle()
  expect(talk.answers().map(idOf)).toEqual([2, 3, 4, 5])
})

test('a client that does not take its answers is not looked at any more', () => {
  const talk = new Talk(new Target(), [DOWN]).begin()
  talk.backlog = ANSWERS_LIMIT + 1
  const asked = Array.from({ length: 50 }, (_, id) => named(FXP.remove, id, '/f'))
  talk.send(Buffer.concat(asked))
  expect(talk.denials).toEqual([])
  expect(talk.filter.held).toBe(Buffer.concat(asked).length)
  talk.backlog = 0
  talk.filter.resume()
  expect(talk.filter.held).toBe(0)
  expect(talk.answers().map(idOf)).toEqual(asked.map((_, id) => id))
})

test('what is asked before the version is answered after it', () => {
  const talk = new Talk(new Target(), [DOWN])
  talk.filter.fromClient(Buffer.concat([init(), named(FXP.remove, 1, '/f')]))
  expect(talk.answers()).toEqual([])
  talk.settle()
  expect(talk.answers().map(({ type }) => type)).toEqual([FXP.version, FXP.status])
})

test.each([
  ['a request before init', named(FXP.stat, 1, '/')],
  ['a second init', Buffer.concat([init(), init()])],
  ['an unknown request', Buffer.concat([init(), named(21, 1, '/', '/')])],
  ['a write whose data is not its packet', Buffer.concat([init(), torn()])],
  ['a path longer than its packet', Buffer.concat([init(), torn(FXP.stat)])],
])('%s cannot be followed', (_, stream) => {
  const talk = new Talk(new Target(), [UP])
  expect(() => talk.send(stream)).toThrow(MalformedError)
})

function torn(type: number = FXP.write): Buffer {
  const request = type === FXP.write ? write(1, 'h', 0, 'data') : named(type, 1, '/path')
  const at = type === FXP.write ? request.length - 8 : 9
  request.writeUInt32BE(1000, at)
  return request
}

test('flags that read in disguise count as reading', () => {
  const talk = new Talk(new Target(), [UP]).begin()
  for (const flags of [0, READ, READ | WRITE, CREATE, CREATE | TRUNCATE])
    expect(talk.ask(open(1, '/f', flags)).code, String(flags)).toBe(DENIED)
  expect(talk.ask(open(1, '/f', WRITE | CREATE | TRUNCATE)).type).toBe(FXP.handle)
})
