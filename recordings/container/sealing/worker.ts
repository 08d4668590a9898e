/**
 * The sealing thread: compresses, encrypts and hashes groups of many recordings. Its priority is that of the
 * relay: strict sessions wait for it, and all others when they are far ahead of it.
 */
import { Buffer } from 'node:buffer'
import { parentPort } from 'node:worker_threads'
import { sealGroup } from '../format/group.ts'
import type { FromSealer, SealAnswer, SealRequest, ToSealer } from './messages.ts'

const keys = new Map<number, Uint8Array>()

function seal({ id, recording, number, buffer, length, compress, ...times }: SealRequest): SealAnswer {
  const key = keys.get(recording)
  if (!key) throw new Error('expected the key of a recording before its groups')
  const plain = Buffer.from(buffer, 0, length)
  const { body, hash } = sealGroup(key, number, { plain, ...times }, compress)
  const [head, ciphertext, tag] = body
  return { id, head, ciphertext, tag, hash, buffer }
}

function sealAll(requests: readonly SealRequest[]): void {
  const groups = requests.map(seal)
  const transfer: ArrayBuffer[] = []
  for (const { buffer, ciphertext } of groups) {
    transfer.push(buffer)
    const whole = ciphertext.buffer as ArrayBuffer
    if (whole.byteLength === ciphertext.byteLength) transfer.push(whole)
  }
  parentPort?.postMessage({ kind: 'sealed', groups } satisfies FromSealer, transfer)
}

function wipe(recording: number): void {
  keys.get(recording)?.fill(0)
  keys.delete(recording)
}

parentPort?.on('message', (message: ToSealer) => {
  switch (message.kind) {
    case 'open':
      keys.set(message.recording, message.key)
      return
    case 'seal':
      sealAll(message.groups)
      return
    case 'close':
      wipe(message.recording)
      return
    case 'wipe':
      for (const recording of [...keys.keys()]) wipe(recording)
      parentPort?.postMessage({ kind: 'wiped' } satisfies FromSealer)
  }
})
