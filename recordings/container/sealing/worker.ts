/**
 * The sealing thread: compresses, encrypts and hashes groups of many recordings. Its priority is that of the
 * relay: strict sessions wait for it, and all others when they are far ahead of it. With a descriptor it holds
 * what it sealed, and writes it when told to: the relay's thread never touches these bytes again.
 */
import { Buffer } from 'node:buffer'
import { writevSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { releaseBytes, sealGroup } from '../format/group.ts'
import type { FromSealer, SealAnswer, SealRequest, ToSealer, WrittenPiece } from './messages.ts'

interface Recording {
  key: Uint8Array
  held: Set<number>
}

/** A blocking socket: a reader that is slow makes the thread wait. */
const descriptor = (workerData as { descriptor?: number } | null)?.descriptor
const recordings = new Map<number, Recording>()
const held = new Map<number, { recording: number; parts: readonly Buffer[] }>()

function seal(request: SealRequest): SealAnswer {
  const { id, buffer } = request
  try {
    return sealed(request)
  } catch (error) {
    return { kind: 'lost', id, buffer, message: (error as Error).message }
  }
}

function sealed({ id, recording, number, buffer, length, compress, ...times }: SealRequest): SealAnswer {
  const owner = recordings.get(recording)
  if (!owner) throw new Error('expected the key of a recording before its groups')
  const plain = Buffer.from(buffer, 0, length)
  const { body, hash } = sealGroup(owner.key, number, { plain, ...times }, compress)
  const [head, ciphertext, tag] = body
  if (descriptor === undefined) return { kind: 'sealed', id, buffer, head, ciphertext, tag, hash }
  owner.held.add(id)
  held.set(id, { recording, parts: body })
  return { kind: 'held', id, buffer, hash, length: head.length + ciphertext.length + tag.length }
}

function sealAll(requests: readonly SealRequest[]): void {
  const groups = requests.map(seal)
  const transfer: ArrayBuffer[] = []
  for (const group of groups) {
    transfer.push(group.buffer)
    if (group.kind !== 'sealed') continue
    const whole = group.ciphertext.buffer as ArrayBuffer
    if (whole.byteLength === group.ciphertext.byteLength) transfer.push(whole)
  }
  answer({ kind: 'sealed', groups }, transfer)
}

function write(pieces: readonly WrittenPiece[], bytes: Uint8Array): void {
  const parts = pieces.flatMap((piece): readonly Uint8Array[] => {
    if ('until' in piece) return [bytes.subarray(piece.from, piece.until)]
    const group = held.get(piece.group)
    if (!group) throw new Error('expected a group that is held')
    return group.parts
  })
  writeAll(descriptor as number, parts)
  answer({ kind: 'written' })
}

function writeAll(to: number, parts: readonly Uint8Array[]): void {
  let left = parts
  while (left.length > 0) {
    let skip = writevSync(to, left)
    left = left.flatMap((part) => {
      const rest = part.subarray(Math.min(skip, part.length))
      skip -= part.length - rest.length
      return rest.length > 0 ? [rest] : []
    })
  }
}

function release(ids: Iterable<number>): void {
  for (const id of ids) {
    const group = held.get(id)
    if (!group) continue
    held.delete(id)
    recordings.get(group.recording)?.held.delete(id)
    for (const part of group.parts) releaseBytes(part)
  }
}

function wipe(recording: number): void {
  const owner = recordings.get(recording)
  if (!owner) return
  owner.key.fill(0)
  release(owner.held)
  recordings.delete(recording)
}

function answer(message: FromSealer, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer)
}

parentPort?.on('message', (message: ToSealer) => {
  switch (message.kind) {
    case 'open':
      recordings.set(message.recording, { key: message.key, held: new Set() })
      return
    case 'seal':
      sealAll(message.groups)
      return
    case 'write':
      write(message.pieces, message.bytes)
      return
    case 'release':
      release(message.groups)
      return
    case 'close':
      wipe(message.recording)
      return
    case 'wipe':
      for (const recording of [...recordings.keys()]) wipe(recording)
      answer({ kind: 'wiped' })
  }
})
