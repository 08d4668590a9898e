/**
 * Ids of new objects: ULIDs. A pool of random bytes makes them cheap: ulid itself requests each byte alone.
 */
import { randomFillSync } from 'node:crypto'
import { ulid } from 'ulid'

const pool = new Uint8Array(4096)
let used = pool.length

function randomFraction(): number {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  // 32 divides 256, so each of the 32 digits is equally likely.
  return pool[used++]! / 256
}

export function newUlid(): string {
  return ulid(undefined, randomFraction)
}
