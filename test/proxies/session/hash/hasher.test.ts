import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ContentHash } from '../../../../proxies/session/hash/content-hash.ts'
import { HashAccount, Hasher, LAG_LIMIT } from '../../../../proxies/session/hash/hasher.ts'

const hasher = new Hasher()
const account = () => new HashAccount(hasher, () => undefined)
const digest = (hash: ContentHash) => new Promise<string | undefined>((resolve) => hash.digest(resolve))
const expected = (pieces: Uint8Array[]) => {
  const hash = createHash('sha256')
  for (const piece of pieces) hash.update(piece)
  return hash.digest('hex')
}

describe('streams that are hashed by the thread', () => {
  test('have the hash of their pieces, however they lie between those of others', async () => {
    const piece = fc.tuple(fc.nat(4), fc.oneof(fc.nat(40), fc.nat(300_000)), fc.nat(255))
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 30 }), fc.nat(4), async (pieces, dropped) => {
        const one = account()
        const hashes = Array.from({ length: 5 }, () => one.newHash())
        const given: Uint8Array[][] = hashes.map(() => [])
        for (const [stream, length, value] of pieces) {
          const bytes = new Uint8Array(length).fill(value)
          hashes[stream]!.update(bytes)
          given[stream]!.push(new Uint8Array(bytes))
          // The caller reuses its buffer.
          bytes.fill(0)
        }
        hashes[dropped]!.drop()
        for (const [stream, hash] of hashes.entries()) {
          if (stream !== dropped) expect(await digest(hash)).toBe(expected(given[stream]!))
        }
      }),
      { numRuns: 60 },
    )
  }, 300_000)

  test('are told to wait by their own amount, and to go on', async () => {
    let drained = 0
    const busy = new HashAccount(hasher, () => drained++)
    const idle = account()
    const hash = busy.newHash()
    const bytes = new Uint8Array(100_000)
    while (!busy.isBehind) hash.update(bytes)
    expect(idle.isBehind).toBe(false)
    const other = idle.newHash()
    other.update(bytes)
    expect(idle.isBehind).toBe(false)
    while (busy.isBehind) await turn()
    expect(drained).toBe(1)
    await Promise.all([digest(hash), digest(other)])
  })

  test('hold no more than the limit and a piece', () => {
    const one = account()
    const hash = one.newHash()
    let given = 0
    while (!one.isBehind) {
      hash.update(new Uint8Array(32_768))
      given += 32_768
    }
    expect(given).toBeLessThanOrEqual(LAG_LIMIT + 32_768)
    hash.drop()
  })
})

test('a thread that dies leaves no hash and nobody waiting; the next has another', async () => {
  const source = `
    import { parentPort } from 'node:worker_threads'
    parentPort.on('message', ({ kind }) => { if (kind === 'digest') throw new Error('died') })`
  const frail = new Hasher(new URL(`data:text/javascript,${encodeURIComponent(source)}`))
  let drained = 0
  const one = new HashAccount(frail, () => drained++)
  const [first, second] = [one.newHash(), one.newHash()]
  while (!one.isBehind) second.update(new Uint8Array(100_000))
  expect(await digest(first)).toBeUndefined()
  expect(await digest(second)).toBeUndefined()
  expect([one.isBehind, drained]).toEqual([false, 1])
  second.update(new Uint8Array(10))
  expect(one.isBehind).toBe(false)
  expect(await digest(one.newHash())).toBeUndefined()
})
