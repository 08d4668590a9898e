/**
 * Real messages to begin from: the connection layer (RFC 4254) between OpenSSH 9.2's client and server, as
 * captured, by action. `> ` is the client's, `< ` the target's.
 */
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'

export interface Said {
  from: 'client' | 'target'
  message: Buffer
}

const FILE = join(import.meta.dirname, 'corpus', 'openssh.json')

export const SESSIONS: ReadonlyMap<string, readonly Said[]> = new Map(
  Object.entries(JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, string[]>).map(([name, lines]) => [
    name,
    lines.map((line) => ({
      from: line.startsWith('>') ? 'client' : 'target',
      message: Buffer.from(line.slice(2), 'hex'),
    })),
  ]),
)

/**
 * Changes to bytes: each edit replaces, removes, inserts, or writes a number that is critical as a length.
 */
export const edits = fc.array(
  fc.record({
    at: fc.nat(2_000),
    removed: fc.nat(6),
    added: fc.oneof(
      fc.uint8Array({ maxLength: 6 }),
      fc
        .constantFrom(0, 1, 0x7f, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff)
        .map((number) => Uint8Array.of(number >>> 24, number >>> 16, number >>> 8, number)),
    ),
  }),
  { minLength: 1, maxLength: 3 },
)

export type Edits = typeof edits extends fc.Arbitrary<infer T> ? T : never

export function edited(bytes: Buffer, changes: Edits): Buffer {
  return changes.reduce((now, { at, removed, added }) => {
    const place = at % (now.length + 1)
    return Buffer.concat([now.subarray(0, place), added, now.subarray(place + removed)])
  }, bytes)
}
