/**
 * Recovers recordings that were left open, at the broker's start: cuts a torn tail and adds a signed record
 * that states the loss. Needs no key. A fault beyond a torn tail is left untouched and reported: signing it
 * would bless a forgery.
 */
import { Buffer } from 'node:buffer'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Chain } from '../container/chain.ts'
import type { Noted } from '../container/evidence.ts'
import { type Closing, encodeCheckpoint } from '../container/format/checkpoint.ts'
import type { Fault } from '../container/format/error.ts'
import { FILE_NAME } from '../container/format/limits.ts'
import { parseRecordHeader, RECORD, RECORD_HEADER_LENGTH } from '../container/format/record.ts'
import { readPieces, syncDirectory } from '../container/session-file.ts'
import { lackOf, type Verification, Verifier } from '../container/verify.ts'
import { BACKLOG_HARD_LIMIT } from '../container/writer.ts'
import { recordingsIn } from './catalog.ts'

/** Limit of a torn tail: the data of one flush, with its records' frames around. */
const MAX_TORN_TAIL = 2 * BACKLOG_HARD_LIMIT
/** Faults left by a write that a crash cut short. */
const TORN: ReadonlySet<Fault> = new Set(['cut_tail', 'not_closed', 'damaged_header', 'damaged_record'])

export interface RecoverOptions {
  /** Signs with the key of this id (`signerId`). */
  sign: (statement: Uint8Array, keyId: string) => Promise<Uint8Array>
  /** Raw Ed25519 keys, current and former, of this broker. */
  trusted: readonly Uint8Array[]
  /** Milliseconds since the epoch. */
  now: () => number
  /** Farthest checkpoint that the audit log noted. */
  noted?: Noted
}

export type Recovery =
  | ({ outcome: 'recovered'; size: number; digest: string; lack?: Lack } & Closing)
  /** The recording was closed in order; nothing was done. */
  | { outcome: 'closed'; lack?: Lack }
  /** The crash came before the header was on the disk: no session was opened. The file is removed. */
  | { outcome: 'empty' }
  /** A fault that no crash leaves behind; the file is untouched. */
  | { outcome: 'damaged'; fault: { code: Fault; message: string; offset?: number } }

/** The file does not contain the audit log's noted checkpoint. */
export interface Lack {
  /** Missing seconds, at least; 0 if the file has its length, but was written anew. */
  seconds: number
}

/**
 * Seals one session's recording after a crash. Throws the disk's and the signer's errors; then it may be
 * tried again.
 */
export async function recoverRecording(
  directory: string,
  session: string,
  options: RecoverOptions,
): Promise<Recovery> {
  const path = join(directory, FILE_NAME)
  const { trusted, noted } = options
  const verifier = new Verifier({ session, trusted, ...(noted && { noted }) })
  for await (const chunk of readPieces(path)) verifier.push(chunk)
  const verification = verifier.finish()
  const { fault, header } = verification
  if (!fault) return { outcome: 'closed' }
  if (verification.state !== 'open' && (fault.code === 'lost_tail' || fault.code === 'replaced_file')) {
    return { outcome: 'closed', ...lackIn(verification, noted) }
  }
  if (fault.code === 'cut_tail' && !header) {
    await rm(path)
    await syncDirectory(directory)
    return { outcome: 'empty' }
  }
  if (fault.code === 'trailing_data' && verification.state === 'recovered') {
    // An earlier recovery was interrupted before it could cut the tail.
    await withFile(path, (file) => cut(file, verification.goodSize))
    return { outcome: 'closed', ...lackIn(verification, noted) }
  }
  if (!header || !TORN.has(fault.code) || !(await isTornTail(path, verification)))
    return { outcome: 'damaged', fault }
  return seal(path, verification, header, options)
}

async function seal(
  path: string,
  verification: Verification,
  header: NonNullable<Verification['header']>,
  options: RecoverOptions,
): Promise<Recovery> {
  const { goodSize, signedSize, size, frames, lastFrame, records, digest } = verification
  const closing = { frames, droppedBytes: size - goodSize, unsignedBytes: goodSize - signedSize, lastFrame }
  const chain = new Chain(header.session, Buffer.from(digest, 'hex'), records, goodSize)
  const body = encodeCheckpoint({ kind: 'recovered', wallTime: options.now(), time: lastFrame, closing })
  const record = Buffer.concat(
    await chain.checkpoint(body, (statement) => options.sign(statement, header.signingKey)),
  )
  await withFile(path, async (file) => {
    // Write over the torn tail first, then cut: the count of dropped bytes survives another crash in between.
    await writeAt(file, record, goodSize)
    await cut(file, goodSize + record.length)
  })
  const sealed = { size: goodSize + record.length, digest: Buffer.from(chain.head).toString('hex') }
  return { outcome: 'recovered', ...sealed, ...closing, ...lackIn(verification, options.noted) }
}

function lackIn({ hasNoted, lastCheckpoint }: Verification, noted: Noted | undefined): { lack?: Lack } {
  if (!noted || hasNoted) return {}
  return { lack: { seconds: lackOf(noted, lastCheckpoint?.time ?? 0) } }
}

async function writeAt(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  let written = 0
  while (written < bytes.length) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, position + written)
    if (bytesWritten === 0) throw new Error('the disk took no bytes of the recording')
    written += bytesWritten
  }
}

async function cut(file: FileHandle, size: number): Promise<void> {
  await file.truncate(size)
  await file.sync()
}

/**
 * Returns whether the fault is a torn tail. One flush is in flight at a time, and the next begins when it is
 * on the disk: so a torn tail holds at most one checkpoint. Two checkpoints after the fault mean that signed
 * bytes were changed.
 */
async function isTornTail(path: string, verification: Verification): Promise<boolean> {
  const length = verification.size - verification.goodSize
  if (length > MAX_TORN_TAIL) return false
  const tail = Buffer.alloc(length)
  await withFile(path, (file) => file.read(tail, 0, length, verification.goodSize))
  let checkpoints = 0
  for (let at = tail.indexOf(RECORD.checkpoint); at >= 0; at = tail.indexOf(RECORD.checkpoint, at + 1)) {
    if (at + RECORD_HEADER_LENGTH > length) break
    const header = parseRecordHeader(tail, at)
    if (header && header.sequence >= verification.records) checkpoints++
  }
  return checkpoints < 2
}

async function withFile<T>(path: string, action: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, 'r+')
  try {
    return await action(file)
  } finally {
    await file.close()
  }
}

/**
 * Recovers all open recordings of `root`; the broker runs this before it listens. A recording that fails (a
 * disk error, no signature) is reported as `failed`, and the others are still sealed.
 */
export async function* recoverAll(
  root: string,
  options: RecoverOptions,
): AsyncGenerator<{
  session: string
  directory: string
  recovery: Recovery | { outcome: 'failed'; error: Error }
}> {
  for await (const { session, directory, state } of recordingsIn(root)) {
    if (state !== 'open' && state !== 'damaged') continue
    try {
      const recovery = await recoverRecording(directory, session, options)
      if (recovery.outcome !== 'closed') yield { session, directory, recovery }
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error))
      yield { session, directory, recovery: { outcome: 'failed', error: reason } }
    }
  }
}
