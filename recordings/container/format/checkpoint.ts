/**
 * Checkpoints. The body of the record:
 *
 *     0   1  kind: 0 interim; the last record of a file is 1 sealed, 2 recovered or 3 failed
 *     1   8  wall clock, milliseconds since 1970
 *     9   8  microseconds since the recording began
 *  only where the kind is not 0:
 *    17   8  frames in the file
 *    25   8  bytes dropped from the file's end (recovered; else 0)
 *    33   8  bytes kept that no checkpoint had covered before (recovered; else 0)
 *    41   8  time of the last frame, microseconds since the recording began
 *  then
 *        64  Ed25519 signature over the statement
 *
 * The statement is not in the file: the verifier builds it from the records read so far, so that a
 * signature cannot be valid beside content that is wrong:
 *
 *        20  ASCII `sallyport-recording` and 0x01
 *         1  length of the session's id
 *         n  the session's id
 *         4  sequence of the checkpoint's record
 *         8  offset of the checkpoint's record in the file
 *        32  the link before it
 *        17  or 49: the body up to the signature
 *
 * All numbers are big-endian.
 */
import { Buffer } from 'node:buffer'
import { LINK_LENGTH, MAX_SESSION_ID, SIGNATURE_LENGTH } from './limits.ts'

export const KIND = { interim: 0, sealed: 1, recovered: 2, failed: 3 } as const
export type CheckpointKind = keyof typeof KIND
const KINDS = Object.keys(KIND) as CheckpointKind[]

const STATEMENT_PREFIX = Buffer.from('sallyport-recording\x01', 'latin1')
const INTERIM_LENGTH = 17
const CLOSING_LENGTH = 49

/** The content of a checkpoint. */
export interface Checkpoint {
  kind: CheckpointKind
  /** Milliseconds since the epoch. */
  wallTime: number
  /** Microseconds since the recording began. */
  time: number
  /** Present in every kind but `interim`. */
  closing?: Closing
}

export interface Closing {
  frames: number
  droppedBytes: number
  unsignedBytes: number
  /** Microseconds since the recording began. */
  lastFrame: number
}

/** A parsed statement: its checkpoint, and the bytes of that checkpoint's body up to the signature. */
export interface Statement extends CheckpointPlace {
  checkpoint: Checkpoint
  body: Buffer
}

/** The recording and the place in it where the checkpoint stands. */
export interface CheckpointPlace {
  session: string
  sequence: number
  offset: number
  /** The chain's head before the checkpoint's record, 32 bytes. */
  head: Uint8Array
}

/** Length of the body of a record that closes a file. */
export const CLOSING_BODY_LENGTH = CLOSING_LENGTH + SIGNATURE_LENGTH

/** Returns the body without its signature. */
export function encodeCheckpoint(checkpoint: Checkpoint): Buffer {
  const { closing } = checkpoint
  const body = Buffer.alloc(closing ? CLOSING_LENGTH : INTERIM_LENGTH)
  body.writeUInt8(KIND[checkpoint.kind], 0)
  writeNumber(body, checkpoint.wallTime, 1)
  writeNumber(body, checkpoint.time, 9)
  if (closing) {
    writeNumber(body, closing.frames, 17)
    writeNumber(body, closing.droppedBytes, 25)
    writeNumber(body, closing.unsignedBytes, 33)
    writeNumber(body, closing.lastFrame, 41)
  }
  return body
}

/** Returns the bytes to sign; `body` is that of `encodeCheckpoint`. */
export function encodeStatement(place: CheckpointPlace, body: Uint8Array): Buffer {
  const session = Buffer.from(place.session, 'utf8')
  const numbers = Buffer.alloc(12)
  numbers.writeUInt32BE(place.sequence, 0)
  writeNumber(numbers, place.offset, 4)
  return Buffer.concat([STATEMENT_PREFIX, Buffer.of(session.length), session, numbers, place.head, body])
}

/** Splits a checkpoint record's body. Returns undefined if it is malformed. */
export function parseCheckpoint(
  body: Buffer,
): { checkpoint: Checkpoint; signed: Buffer; signature: Buffer } | undefined {
  const signed = body.subarray(0, Math.max(0, body.length - SIGNATURE_LENGTH))
  const checkpoint = parseBody(signed)
  return checkpoint && { checkpoint, signed, signature: body.subarray(signed.length) }
}

/**
 * Parses a statement that a recording process sends for signing, so that the signer can check that it belongs
 * to that process's session. Returns undefined if it is malformed.
 */
export function parseStatement(statement: Buffer): Statement | undefined {
  const prefix = STATEMENT_PREFIX.length
  if (!statement.subarray(0, prefix).equals(STATEMENT_PREFIX)) return undefined
  const length = statement[prefix] ?? 0
  const numbers = prefix + 1 + length
  const head = numbers + 12
  if (length === 0 || length > MAX_SESSION_ID || statement.length < head + LINK_LENGTH) return undefined
  const body = statement.subarray(head + LINK_LENGTH)
  const checkpoint = parseBody(body)
  const offset = readNumber(statement, numbers + 4)
  if (!checkpoint || offset === undefined) return undefined
  return {
    session: statement.toString('utf8', prefix + 1, numbers),
    sequence: statement.readUInt32BE(numbers),
    offset,
    head: statement.subarray(head, head + LINK_LENGTH),
    checkpoint,
    body,
  }
}

function parseBody(body: Buffer): Checkpoint | undefined {
  const kind = KINDS[body[0] ?? KINDS.length]
  if (!kind || body.length !== (kind === 'interim' ? INTERIM_LENGTH : CLOSING_LENGTH)) return undefined
  const wallTime = readNumber(body, 1)
  const time = readNumber(body, 9)
  if (wallTime === undefined || time === undefined) return undefined
  if (kind === 'interim') return { kind, wallTime, time }
  const frames = readNumber(body, 17)
  const droppedBytes = readNumber(body, 25)
  const unsignedBytes = readNumber(body, 33)
  const lastFrame = readNumber(body, 41)
  if (frames === undefined || droppedBytes === undefined) return undefined
  if (unsignedBytes === undefined || lastFrame === undefined) return undefined
  return { kind, wallTime, time, closing: { frames, droppedBytes, unsignedBytes, lastFrame } }
}

function writeNumber(target: Buffer, value: number, offset: number): void {
  target.writeBigUInt64BE(BigInt(value), offset)
}

function readNumber(source: Buffer, offset: number): number | undefined {
  const value = source.readBigUInt64BE(offset)
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : undefined
}
