/** Random and mutated SFTP streams through the filter: it throws one kind of error, and lets nothing denied through. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { FXP } from '../../proxies/ssh/codec/sftp.ts'
import { parseAnswer, parseVersion } from '../../proxies/ssh/codec/sftp-answers.ts'
import { pathsOf } from '../../proxies/ssh/codec/sftp-paths.ts'
import type { Right } from '../../src/model/rights.ts'
import {
  attributes,
  extended,
  init,
  named,
  open,
  read,
  stringsOf,
  Target,
  write,
} from '../proxies/ssh/sftp/support/packets.ts'
import { Talk } from '../proxies/ssh/sftp/support/talk.ts'

const id = fc.nat(5)
const path = fc.constantFrom('/in/f', '/etc/shadow', 'way/shadow', '..', '')
const handle = fc.constantFrom('h0', 'h1', '')
const piece = fc.oneof(
  fc.tuple(id, path, fc.nat(63)).map((fields) => open(...fields)),
  fc.tuple(id, handle, fc.nat(99)).map(([n, h, at]) => write(n, h, at, 'data')),
  fc.tuple(id, handle, fc.nat(99)).map(([n, h, at]) => read(n, h, at, 9)),
  fc.tuple(fc.constantFrom(FXP.close, FXP.fstat), id, handle).map((fields) => named(...fields)),
  fc.tuple(fc.constantFrom(FXP.rename, FXP.symlink), id, path, path).map((fields) => named(...fields)),
  fc.tuple(fc.constantFrom(FXP.setstat, FXP.mkdir), id, path).map((fields) => attributes(...fields)),
  fc
    .tuple(id, fc.constantFrom('hardlink@openssh.com', 'copy-data', 'x@y'), path, path)
    .map((fields) => extended(...fields)),
  fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
)
const flips = fc.array(fc.tuple(fc.nat(300), fc.nat(7)), { maxLength: 3 })
const RULES = ['deny any /etc/**', 'deny any /** size>50B']

function mutated(stream: Buffer, where: [number, number][]): Buffer {
  const copy = Buffer.from(stream)
  for (const [at, bit] of where) if (at < copy.length) copy[at]! ^= 1 << bit
  return copy
}

function onlyMalformed(work: () => void): void {
  try {
    work()
  } catch (error) {
    expect(error).toBeInstanceOf(MalformedError)
  }
}

describe.each([[[]], [RULES]])('with the rules %j', (rules) => {
  test('what a client sends', () => {
    const rights = fc.subarray<Right>(['SSH_SCP_UP', 'SSH_SCP_DOWN', 'SFTP_SESSION'])
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 12 }),
        flips,
        rights,
        fc.nat(40),
        (pieces, where, held, size) => {
          const talk = new Talk(new Target({ '/home/me/way': '/etc' }), held, rules)
          onlyMalformed(() => talk.send(mutated(Buffer.concat([init(), ...pieces]), where), () => size + 1))
          if (rules.length === 0) return
          for (const got of talk.target.got) {
            if (got.type !== FXP.open && got.type !== FXP.setstat) continue
            expect(talk.target.real(stringsOf(got, 1)[0]!)).not.toMatch(/^\/etc(\/|$)/)
          }
        },
      ),
      { numRuns: 3000 },
    )
  })

  test('what a target answers', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), flips, fc.array(fc.nat(300)), (pieces, where, cuts) => {
        const target = new Target()
        const talk = new Talk(target, ['SFTP_SESSION'], rules)
        const honest = target.take.bind(target)
        target.take = (bytes) => mutated(honest(bytes), where)
        onlyMalformed(() => talk.send(Buffer.concat([init(), ...pieces]), () => (cuts.shift() ?? 99) + 1))
      }),
      { numRuns: 2000 },
    )
  })
})

test('the parsers of answers, versions and paths', () => {
  fc.assert(
    fc.property(fc.nat(255), fc.uint8Array({ maxLength: 64 }), (type, body) => {
      onlyMalformed(() => parseAnswer(type, body))
      onlyMalformed(() => parseVersion(body))
      onlyMalformed(() => pathsOf(type, body))
    }),
    { numRuns: 5000 },
  )
})
