/** Rules for files against all ways to give a path another name. */

import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { FXP } from '../../../../proxies/ssh/codec/sftp.ts'
import { OpenSizes } from '../../../../proxies/ssh/files/open-sizes.ts'
import { Turns } from '../../../../proxies/ssh/sftp/turns.ts'
import {
  APPEND,
  attributes,
  CREATE,
  extended,
  idOf,
  init,
  named,
  open,
  packet,
  packetsOf,
  READ,
  read,
  status,
  Target,
  TRUNCATE,
  WRITE,
  write,
} from './support/packets.ts'
import { Talk } from './support/talk.ts'

const DENIED = 3
const LINKS = {
  '/in/way': '/etc',
  '/in/up': '..',
  '/in/chain': 'way',
  '/home/me/secret': '/etc/shadow',
  '/in/open': '/in/folder',
}

function talk(rules: string[], files: Record<string, number> = { '/in/f': 10, '/etc/shadow': 10 }): Talk {
  return new Talk(new Target(LINKS, files), ['SFTP_SESSION'], rules).begin()
}

describe('a path that is denied', () => {
  const names = [
    '/etc/shadow',
    '/etc/../etc/./shadow',
    '//etc///shadow',
    '/in/../etc/shadow',
    '../../etc/shadow',
    'secret',
    './secret',
    '/in/way/shadow',
    '/in/chain/shadow',
    '/in/up/etc/shadow',
    '/in/folder/../way/shadow',
  ]

  test.each(names)('is not read as %s', (name) => {
    const one = talk(['deny down /etc/**'])
    expect(one.ask(open(1, name, READ)).code).toBe(DENIED)
    expect(one.passed).not.toContain(FXP.open)
    expect(one.denials).toMatchObject([{ operation: 'open', path: name, direction: 'down' }])
  })

  test.each(names)('is not written as %s', (name) => {
    const one = talk(['deny up /etc/**'])
    expect(one.ask(open(1, name, WRITE | CREATE)).code).toBe(DENIED)
    expect(one.ask(open(2, name, READ)).type).toBe(FXP.handle)
    expect(one.ask(attributes(FXP.setstat, 3, name, 0)).code).toBe(DENIED)
  })

  test.each([
    ['a symbolic link to it', named(FXP.symlink, 1, '/etc/shadow', '/in/new')],
    ['a relative one', named(FXP.symlink, 1, '../etc/shadow', '/in/new')],
    ['one to a link', named(FXP.symlink, 1, 'way/shadow', '/in/new')],
    ['a link to its folder', named(FXP.symlink, 1, '/etc', '/in/new')],
    ['a link to what is above it', named(FXP.symlink, 1, '/', '/in/new')],
    ['a hard link', extended(1, 'hardlink@openssh.com', '/etc/shadow', '/in/new')],
    ['a hard link through a link', extended(1, 'hardlink@openssh.com', '/in/way/shadow', '/in/new')],
    ['another name', named(FXP.rename, 1, '/etc/shadow', '/in/new')],
    ['another name, the other way', extended(1, 'posix-rename@openssh.com', '/etc/shadow', '/in/new')],
    ['another name of its folder', named(FXP.rename, 1, '/etc', '/in/new')],
    ['another name of a link to it', named(FXP.rename, 1, '/in/way', '/in/new')],
  ])('gets no other name: %s', (_, request) => {
    for (const rule of ['deny down /etc/**', 'deny up /etc/**', 'deny any /etc/shadow']) {
      const one = talk([rule])
      const { code } = one.ask(request)
      expect(code, rule).toBe(DENIED)
      expect(one.denials).toHaveLength(1)
    }
  })

  test('gets none either when it is a link, and is named by way of another', () => {
    for (const rule of ['deny down /in/open', 'deny up /in/open']) {
      const link = extended(1, 'hardlink@openssh.com', '/in/up/in/open', '/in/new')
      expect(talk([rule]).ask(link).code, rule).toBe(DENIED)
      expect(talk([rule]).ask(named(FXP.rename, 1, '/in/up/in/open', '/in/new')).code, rule).toBe(DENIED)
    }
  })

  test.each([
    ['a folder above it', 'deny down /in/folder/f', named(FXP.rename, 1, '/in/folder', '/new')],
    ['a folder above it, the other way', 'deny up /in/folder/f', named(FXP.rename, 1, '/in/folder', '/new')],
    ['a folder, to be above it', 'deny up /new/f', named(FXP.rename, 1, '/in/folder', '/new')],
    ['a folder above the name in use', 'deny any /in/up/d/f', named(FXP.rename, 1, '/in/up/d', '/new')],
    ['a link to it', 'deny down /etc', named(FXP.rename, 1, '/in/way', '/new')],
    ['a link to what is above it', 'deny down /etc/shadow', named(FXP.rename, 1, '/in/way', '/new')],
    ['the same, the other way', 'deny up /etc/shadow', named(FXP.rename, 1, '/in/way', '/new')],
  ])('is not moved with %s', (_, rule, request) => {
    expect(talk([rule]).ask(request).code).toBe(DENIED)
    expect(talk(['deny any /elsewhere/**']).ask(request).code).toBe(0)
  })

  test('gets no hard link that a link to it stands for', () => {
    const request = extended(1, 'hardlink@openssh.com', 'secret', '/in/new')
    expect(talk(['deny any /etc/shadow']).ask(request).code).toBe(DENIED)
  })

  test('is denied by the name in use as by its real one', () => {
    for (const path of ['/in/way/shadow', '/etc/shadow'])
      expect(talk([`deny down ${path}`]).ask(open(1, '/in/way/shadow', READ)).code).toBe(DENIED)
    expect(talk(['deny down /in/way/shadow']).ask(open(1, '/etc/shadow', READ)).type).toBe(FXP.handle)
  })

  test('is not made by moving something there', () => {
    const one = talk(['deny up /etc/**'])
    expect(one.ask(named(FXP.rename, 1, '/in/f', '/etc/cron')).code).toBe(DENIED)
    expect(one.ask(named(FXP.rename, 2, '/in/f', '/in/way/cron')).code).toBe(DENIED)
    expect(one.ask(named(FXP.rename, 3, '/in/f', '/in/g')).code).toBe(0)
    expect(one.ask(named(FXP.symlink, 4, '/in/f', '/etc/l')).code).toBe(DENIED)
    expect(one.ask(extended(5, 'hardlink@openssh.com', '/in/f', '/etc/l')).code).toBe(DENIED)
    expect(one.ask(named(FXP.mkdir, 6, '/etc/d', '')).code).toBe(DENIED)
    expect(one.ask(named(FXP.remove, 7, '/etc/shadow')).code).toBe(DENIED)
    expect(one.ask(named(FXP.rmdir, 8, '/etc/d')).code).toBe(DENIED)
  })

  test('a name in another Unicode form is the same name', () => {
    const one = talk(['deny down /in/\u00e9'])
    expect(one.ask(open(1, '/in/e\u0301', READ)).code).toBe(DENIED)
  })

  test('a link itself may go where it is', () => {
    const one = talk(['deny any /etc/**'])
    expect(one.ask(named(FXP.remove, 1, '/in/way')).code).toBe(0)
    expect(one.ask(named(FXP.stat, 2, '/in/way')).type).toBe(FXP.attrs)
  })

  test('a zero byte, and a path that no target takes, are refused', () => {
    const one = talk(['deny any /etc/**'])
    expect(one.ask(open(1, '/in/f\0/etc', READ)).code).toBe(DENIED)
    expect(one.ask(open(2, `/${'x'.repeat(5000)}`, READ)).code).toBe(DENIED)
  })
})

describe('between a check and what it was for', () => {
  const rules = ['deny any /etc/**']
  /** Returns two channels of one session. */
  function pair(): [Talk, Talk] {
    const [sizes, turns] = [new OpenSizes(), new Turns()]
    const channel = () => new Talk(new Target(LINKS, {}), ['SFTP_SESSION'], rules, sizes, turns).begin()
    return [channel(), channel()]
  }
  const opening = open(1, '/in/f', READ)

  test.each([
    ['rename', named(FXP.rename, 1, '/in/cur', '/in/old')],
    ['posix-rename', extended(1, 'posix-rename@openssh.com', '/in/cur', '/in/old')],
    ['symlink', named(FXP.symlink, 1, '/in/other', '/in/cur')],
    ['hardlink', extended(1, 'hardlink@openssh.com', '/in/f', '/in/cur')],
    ['remove', named(FXP.remove, 1, '/in/cur')],
    ['rmdir', named(FXP.rmdir, 1, '/in/cur')],
  ])('no other channel changes names: %s', (_, change) => {
    const [one, other] = pair()
    const changes = () => other.passed.filter((type) => type !== FXP.init)
    one.filter.fromClient(opening)
    for (let step = 0; one.woken + other.woken === 0; step++) {
      expect(step).toBeLessThan(9)
      if (step === 0) other.send(change)
      else one.exchange()
      other.filter.resume()
      other.settle()
      if (one.answers().length === 0) expect(changes()).toEqual([])
    }
    other.filter.resume()
    other.settle()
    expect(changes()).toHaveLength(1)
    expect(other.answers()).toHaveLength(1)
  })

  test('nothing is looked for while a name changes, and a channel that ends holds nobody up', () => {
    const [one, other] = pair()
    one.filter.fromClient(named(FXP.remove, 1, '/in/cur'))
    other.send(opening)
    expect(other.target.got.map(({ type }) => type)).toEqual([FXP.init])
    one.filter.close()
    expect(other.woken).toBe(1)
    other.filter.resume()
    other.settle()
    expect(other.answers()).toMatchObject([{ type: FXP.handle }])
  })

  test('channels look at the same time', () => {
    const [one, other] = pair()
    one.filter.fromClient(opening)
    other.send(opening)
    expect(other.answers()).toMatchObject([{ type: FXP.handle }])
  })
})

describe('only what is allowed', () => {
  const rules = ['allow any /in/**', 'deny any /**']

  test('by the name and by the place', () => {
    const one = talk(rules)
    expect(one.ask(named(FXP.opendir, 1, '/in')).type).toBe(FXP.handle)
    expect(one.ask(open(2, '/in/folder/f', READ)).type).toBe(FXP.handle)
    expect(one.ask(open(3, '/in/open/f', WRITE | CREATE)).type).toBe(FXP.handle)
    expect(one.ask(open(4, '/in/way/passwd', READ)).code).toBe(DENIED)
    expect(one.ask(named(FXP.opendir, 5, '/in/up')).code).toBe(DENIED)
    expect(one.ask(open(6, 'f', READ)).code).toBe(DENIED)
    expect(one.ask(named(FXP.rename, 7, '/in/folder', '/in/other')).code).toBe(0)
    expect(one.ask(named(FXP.symlink, 8, 'f', '/in/l')).code).toBe(0)
  })

  test('an extension that is not known is refused', () => {
    const one = talk(rules)
    expect(one.ask(extended(1, 'unheard-of@example.com', '/in/f')).code).toBe(DENIED)
    expect(one.denials).toMatchObject([{ operation: 'unheard-of@example.com' }])
  })
})

describe('sizes', () => {
  const upTo = ['allow up /** size<=100B', 'deny up /**']

  test('an upload is refused at the write that crosses it, and from there on', () => {
    const one = talk(upTo)
    one.ask(open(1, '/in/new', WRITE | CREATE | TRUNCATE))
    expect(one.ask(write(2, 'h0', 0, 'x'.repeat(60))).code).toBe(0)
    expect(one.ask(write(3, 'h0', 60, 'x'.repeat(40))).code).toBe(0)
    expect(one.ask(write(4, 'h0', 100, 'x')).code).toBe(DENIED)
    expect(one.ask(write(5, 'h0', 0, 'x')).code).toBe(DENIED)
    expect(one.ask(named(FXP.close, 6, 'h0')).code).toBe(0)
    expect(one.denials).toHaveLength(1)
    expect(one.passed.filter((type) => type === FXP.write)).toHaveLength(2)
  })

  test('neither in its middle nor at its end, however it is opened', () => {
    const one = talk(upTo, { '/in/f': 90 })
    one.ask(open(1, '/in/f', WRITE | APPEND))
    expect(one.ask(write(2, 'h0', 0, 'x'.repeat(10))).code).toBe(0)
    expect(one.ask(write(3, 'h0', 0, 'x')).code).toBe(DENIED)
    one.ask(open(4, '/in/new', WRITE | CREATE | TRUNCATE))
    expect(one.ask(write(5, 'h1', 2 ** 40, 'x')).code).toBe(DENIED)
    expect(one.ask(attributes(FXP.fsetstat, 6, 'h1', 101)).code).toBe(DENIED)
    expect(one.ask(attributes(FXP.setstat, 7, '/in/f', 101)).code).toBe(DENIED)
    const copy = packet(FXP.extended, (w) =>
      w.uint32(8).string('copy-data').string('h0').uint64(0n).uint64(0n).string('h1').uint64(0n),
    )
    expect(one.ask(copy).code).toBe(DENIED)
  })

  test('nor by a copy of what has grown too large to be read since it was opened', () => {
    const one = talk(['deny down /in/** size>100B'], { '/in/f': 90 })
    one.ask(open(1, '/in/f', READ | WRITE))
    one.ask(open(2, '/out', WRITE | CREATE | TRUNCATE))
    const copy = (id: number) =>
      packet(FXP.extended, (w) =>
        w.uint32(id).string('copy-data').string('h0').uint64(0n).uint64(5n).string('h1').uint64(0n),
      )
    expect(one.ask(copy(3)).code).toBe(0)
    expect(one.ask(write(4, 'h0', 90, 'x'.repeat(11))).code).toBe(0)
    expect(one.ask(copy(5)).code).toBe(DENIED)
  })

  test('a file that is too large gets no name where it would be', () => {
    const one = talk(['deny up /in/** size>100B'], { '/out/big': 101, '/out/small': 100 })
    expect(one.ask(named(FXP.rename, 1, '/out/big', '/in/b')).code).toBe(DENIED)
    expect(one.ask(extended(2, 'hardlink@openssh.com', '/out/big', '/in/b')).code).toBe(DENIED)
    expect(one.ask(named(FXP.rename, 3, '/out/small', '/in/b')).code).toBe(0)
  })

  test('a download is refused by its size or, if that is unknown, at the reply that exceeds the limit', () => {
    const one = talk(['deny down /** size>250B'], { '/in/big': 251, '/proc/f': 0 })
    expect(one.ask(open(1, '/in/big', READ)).code).toBe(DENIED)
    one.ask(open(2, '/proc/f', READ))
    expect(one.ask(read(3, 'h0', 0, 100)).type).toBe(FXP.data)
    expect(one.ask(read(4, 'h0', 100, 150)).type).toBe(FXP.data)
    expect(one.ask(read(5, 'h0', 200, 51)).code).toBe(DENIED)
    expect(one.ask(read(6, 'h0', 0, 1)).code).toBe(DENIED)
    expect(one.denials).toHaveLength(2)
  })
})

describe('extensions', () => {
  test('of either name, in any case, with what Windows drops behind them', () => {
    const one = talk(['deny up /** ext=exe,tar.gz'])
    for (const [id, name] of ['/in/a.exe', '/in/a.EXE', '/in/.exe', '/in/a.exe. ', '/in/b.tar.gz'].entries())
      expect(one.ask(open(id, name, WRITE | CREATE)).code, name).toBe(DENIED)
    for (const [id, name] of ['/in/exe', '/in/a.exe.txt', '/in/b.gz'].entries())
      expect(one.ask(open(id, name, WRITE | CREATE)).type, name).toBe(FXP.handle)
    expect(one.ask(named(FXP.rename, 9, '/in/f', '/in/f.exe')).code).toBe(DENIED)
  })
})

describe('a target that answers otherwise', () => {
  /** Plays the target: answers the bastion's requests with `answers`. */
  function asked(request: Buffer, answers: ((id: number) => Buffer)[]) {
    const one = new Talk(new Target(), ['SFTP_SESSION'], ['deny any /etc/**']).begin()
    const questions: number[] = []
    one.target.take = (bytes) => {
      const [question] = packetsOf(Buffer.from(bytes))
      if (question === undefined) return Buffer.alloc(0)
      questions.push(question.type)
      return answers.shift()?.(idOf(question)) ?? status(idOf(question), 0)
    }
    one.send(request)
    return { questions, answers: one.answers(), denials: one.denials }
  }
  const name = (path: string) => (id: number) =>
    packet(FXP.name, (w) => w.uint32(id).uint32(1).string(path).string(path).uint32(0))
  const failure = (code: number) => (id: number) => status(id, code)

  test('that something is not there: the client is told so, and it is no denial', () => {
    const { answers, denials } = asked(open(1, '/nowhere/f', READ), [failure(2), failure(2)])
    expect(answers.map(({ body }) => body.readUInt32BE(4))).toEqual([2])
    expect(denials).toEqual([])
  })

  test('nothing of what is not there yet, but of its folder', () => {
    const there = [failure(2), name('/in'), failure(2)]
    expect(asked(open(1, '/in/new', WRITE | CREATE), there).questions.at(-1)).toBe(FXP.open)
    const linked = [failure(2), name('/etc'), failure(2)]
    expect(asked(open(1, '/in/new', WRITE | CREATE), linked).denials).toHaveLength(1)
  })

  test('that it is there, but not where: it is refused', () => {
    const attrs = (id: number) => packet(FXP.attrs, (w) => w.uint32(id).uint32(0))
    const { denials, questions } = asked(open(1, '/in/f', READ), [failure(4), name('/in'), attrs])
    expect(denials).toMatchObject([{ reason: 'the target does not say where the path leads' }])
    expect(questions).not.toContain(FXP.open)
  })

  test('a relative path: it is refused', () => {
    expect(asked(open(1, '/in/f', READ), [name('f')]).denials).toHaveLength(1)
  })

  test('no number that the client has in use is taken for a question', () => {
    const one = new Talk(new Target(), ['SFTP_SESSION'], ['deny any /etc/**'])
    one.send(init())
    one.answers()
    one.filter.fromClient(named(FXP.stat, 0xfffffff0, '/in'))
    one.filter.fromClient(open(1, '/in/f', READ))
    one.settle()
    expect(one.answers().map(({ type }) => type)).toEqual([FXP.attrs, FXP.handle])
  })
})
