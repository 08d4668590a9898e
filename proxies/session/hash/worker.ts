/** The hashing thread: SHA-256 of many streams. */
import { createHash, type Hash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { giveWay } from '../../../src/threads/priority.ts'
import type { FromHasher, ToHasher } from './messages.ts'

/** A nice value, 19 at most: on a busy machine keystrokes come before hashes of files. */
const NICENESS = 10

giveWay(NICENESS)

const hashes = new Map<number, Hash>()

function hashOf(stream: number): Hash {
  let hash = hashes.get(stream)
  if (hash === undefined) {
    hash = createHash('sha256')
    hashes.set(stream, hash)
  }
  return hash
}

function answer(message: FromHasher, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer)
}

parentPort?.on('message', (message: ToHasher) => {
  switch (message.kind) {
    case 'data': {
      const { buffer, segments } = message
      let at = 0
      for (let index = 0; index < segments.length; index += 2) {
        const length = segments[index + 1]!
        hashOf(segments[index]!).update(new Uint8Array(buffer, at, length))
        at += length
      }
      answer({ kind: 'free', buffer }, [buffer])
      return
    }
    case 'digest': {
      const sha256 = hashOf(message.stream).digest('hex')
      hashes.delete(message.stream)
      answer({ kind: 'digest', stream: message.stream, sha256 })
      return
    }
    case 'drop':
      hashes.delete(message.stream)
  }
})
