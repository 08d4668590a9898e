import { randomFillSync } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'

const MIB = 1024 * 1024

/** Writes a file of random bytes, which no compression on the way can shrink. */
export function randomFileBytes(path: string, mebibytes: number): void {
  const block = Buffer.alloc(MIB)
  const file = openSync(path, 'w')
  for (let index = 0; index < mebibytes; index++) {
    randomFillSync(block)
    writeSync(file, block)
  }
  closeSync(file)
}
