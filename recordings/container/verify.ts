/**
 * Verifies a recording without its key: every byte through the links, and the links through the signatures.
 * Names the first fault exactly.
 */
import { type KeyObject, verify } from 'node:crypto'
import type { Noted } from './evidence.ts'
import {
  type Checkpoint,
  type CheckpointKind,
  encodeStatement,
  parseCheckpoint,
} from './format/checkpoint.ts'
import { type Fault, RecordingError } from './format/error.ts'
import { parseGroupHeader } from './format/group.ts'
import type { Header } from './format/header.ts'
import { type PlacedRecord, RecordParser } from './format/parser.ts'
import { RECORD } from './format/record.ts'
import { publicKeyOf } from './format/signature.ts'

export interface VerifyOptions {
  /** Expected session. */
  session?: string
  /** Raw Ed25519 keys that are accepted as signers. Absent to trust the key that the header names. */
  trusted?: readonly Uint8Array[]
  /** Size and digest of the sealed file according to the audit log. */
  expected?: { size: number; digest: string }
  /** Farthest checkpoint that the audit log noted while the file was written. */
  noted?: Noted
  /** Set if a recording that is still being written is in order. */
  mayBeOpen?: boolean
}

export interface Verification {
  ok: boolean
  /** The first fault. Absent if `ok`. */
  fault?: { code: Fault; message: string; offset?: number }
  header?: Header
  state: 'open' | Exclude<CheckpointKind, 'interim'>
  /** Bytes of the file; of a file with a fault, the bytes that were read. */
  size: number
  /** Bytes up to the end of the last valid record, and up to the end of the last valid checkpoint. */
  goodSize: number
  signedSize: number
  records: number
  checkpoints: number
  frames: number
  /** Time of the last frame, microseconds since the recording began. */
  lastFrame: number
  /** The chain's head, in hex. */
  digest: string
  lastCheckpoint?: Checkpoint
  /** True if the file contains the audit log's noted checkpoint. Absent if `noted` was not given. */
  hasNoted?: boolean
}

/** A place where a record is missing: a swapped record comes later in the file, a removed one never. */
interface Gap {
  expected: number
  found: boolean
  ended: boolean
}

/** Verifies the bytes of a `session.rec`. Throws only the errors of `source`. */
export async function verifyStream(
  source: AsyncIterable<Uint8Array>,
  options: VerifyOptions = {},
): Promise<Verification> {
  const verifier = new Verifier(options)
  for await (const chunk of source) verifier.push(chunk)
  return verifier.finish()
}

/** The verifier without I/O: push the file in pieces, in order, then call `finish`. */
export class Verifier {
  readonly #options: VerifyOptions
  readonly #parser = new RecordParser()
  #header: Header | undefined
  #key: KeyObject | undefined
  #fault: RecordingError | undefined
  #gap: Gap | undefined
  #state: Verification['state'] = 'open'
  #size = 0
  #goodSize = 0
  #signedSize = 0
  #groups = 0
  #checkpoints = 0
  #frames = 0
  #lastFrame = 0
  #last: Checkpoint | undefined
  #hasNoted = false
  /** Length of the valid bytes, without the record that a recovery appended. */
  #writtenSize = 0

  constructor(options: VerifyOptions = {}) {
    this.#options = options
  }

  /** Verifies the next bytes. `chunk` must not change afterwards. */
  push(chunk: Uint8Array): void {
    this.#size += chunk.length
    if (this.#fault && (!this.#gap || this.#gap.found || this.#gap.ended)) return
    this.#parser.push(chunk)
    if (!this.#fault) this.#advance()
    if (this.#gap) this.#lookBehind(this.#gap)
  }

  finish(): Verification {
    let fault = this.#fault ?? this.#faultAtEnd()
    if (fault && this.#gap?.found) {
      const message = `record ${this.#gap.expected} is not at byte ${fault.offset} but later: records were swapped`
      fault = new RecordingError('misplaced_record', message, fault.offset)
    }
    return {
      ok: fault === undefined,
      ...(fault && { fault: { code: fault.code, message: fault.message, ...at(fault) } }),
      ...(this.#header && { header: this.#header }),
      state: this.#state,
      size: this.#size,
      goodSize: this.#goodSize,
      signedSize: this.#signedSize,
      records: this.#groups + this.#checkpoints,
      checkpoints: this.#checkpoints,
      frames: this.#frames,
      lastFrame: this.#lastFrame,
      digest: this.#parser.head.toString('hex'),
      ...(this.#last && { lastCheckpoint: this.#last }),
      ...(this.#options.noted && { hasNoted: this.#hasNoted }),
    }
  }

  #advance(): void {
    try {
      this.#step()
    } catch (error) {
      if (!(error instanceof RecordingError)) throw error
      this.#fault = error
      if (error.code === 'missing_records') {
        this.#gap = { expected: this.#parser.sequence, found: false, ended: false }
      }
    }
  }

  #step(): void {
    if (!this.#header) {
      const header = this.#parser.header()
      if (!header) return
      this.#checkHeader(header)
      this.#header = header
      this.#key = publicKeyOf(header.publicKey)
      this.#goodSize = this.#parser.offset
    }
    const { noted } = this.#options
    while (this.#state === 'open') {
      const record = this.#parser.next()
      if (!record) return
      if (record.type === RECORD.checkpoint) this.#checkpoint(record, this.#header, this.#key)
      else this.#group(record)
      this.#goodSize = record.end
      if (!isRecovery(record, this.#last)) this.#writtenSize = record.end
      if (record.end === noted?.size) this.#hasNoted = this.#parser.head.toString('hex') === noted.digest
    }
    if (this.#parser.pending > 0) {
      throw new RecordingError(
        'trailing_data',
        'bytes follow the record that closes the file',
        this.#parser.offset,
      )
    }
  }

  #checkHeader(header: Header): void {
    const { session, trusted } = this.#options
    if (session !== undefined && header.session !== session) {
      throw new RecordingError(
        'wrong_session',
        `expected the recording of ${session}, this is of ${header.session}`,
        0,
      )
    }
    if (trusted && !trusted.some((key) => header.publicKey.equals(key))) {
      throw new RecordingError(
        'unknown_signer',
        `signed by ${header.signingKey}, which is none of the trusted keys`,
        0,
      )
    }
  }

  #group(record: PlacedRecord): void {
    const group = parseGroupHeader(record.body)
    if (!group || group.number !== this.#groups) {
      const message = `record ${record.sequence} at byte ${record.offset} is not group ${this.#groups}`
      throw new RecordingError('bad_group', message, record.offset)
    }
    this.#groups++
    this.#frames += group.frames
    this.#lastFrame = group.last
  }

  #checkpoint(record: PlacedRecord, header: Header, key: KeyObject | undefined): void {
    const parsed = parseCheckpoint(record.body)
    const { sequence, offset, before: head } = record
    const place = { session: header.session, sequence, offset, head }
    if (!key || !parsed || !verify(null, encodeStatement(place, parsed.signed), key, parsed.signature)) {
      const since = this.#signedSize
      throw new RecordingError(
        'bad_signature',
        `the checkpoint at byte ${offset} (record ${sequence}) is not signed by ${header.signingKey}: ` +
          `bytes ${since} to ${record.end} were made or changed by somebody else`,
        offset,
      )
    }
    this.#checkpoints++
    this.#last = parsed.checkpoint
    this.#signedSize = record.end
    if (parsed.checkpoint.kind !== 'interim') this.#state = parsed.checkpoint.kind
  }

  #faultOfNoted(noted: Noted): RecordingError {
    if (this.#writtenSize >= noted.size) {
      const message = `the bytes up to ${noted.size} are not those with digest ${noted.digest}: it was written anew`
      return new RecordingError('replaced_file', message)
    }
    const seconds = lackOf(noted, this.#last?.time ?? 0).toFixed(3)
    const message = `it had ${noted.size} bytes already, and has ${this.#writtenSize} of them: at least ${seconds} s are missing`
    return new RecordingError('lost_tail', message, this.#writtenSize)
  }

  #lookBehind(gap: Gap): void {
    try {
      for (let header = this.#parser.skip(); header && !gap.found; header = this.#parser.skip()) {
        gap.found = header.sequence === gap.expected
      }
    } catch {
      // A second fault behind the first proves nothing about the first.
      gap.ended = true
    }
  }

  #faultAtEnd(): RecordingError | undefined {
    const { expected, mayBeOpen } = this.#options
    const { offset, pending } = this.#parser
    if (!this.#header)
      return new RecordingError('cut_tail', `the file ends after ${this.#size} bytes, in its header`, 0)
    if (pending > 0 && !mayBeOpen) {
      const message = `the file ends in the middle of record ${this.#parser.sequence}, which begins at byte ${offset}`
      return new RecordingError('cut_tail', message, offset)
    }
    if (this.#state === 'open' && !mayBeOpen) {
      const message = `the file ends at byte ${this.#size} without a closing record: still running, or its end was cut`
      return new RecordingError('not_closed', message, offset)
    }
    const { noted } = this.#options
    if (noted && !this.#hasNoted) return this.#faultOfNoted(noted)
    if (expected && (expected.size !== this.#size || expected.digest !== this.#parser.head.toString('hex'))) {
      const message = `expected ${expected.size} bytes with digest ${expected.digest}: another file was sealed here`
      return new RecordingError('replaced_file', message)
    }
    return undefined
  }
}

/**
 * Returns whether the record is the one that a recovery appended after a crash; `last` is the last
 * checkpoint.
 */
const isRecovery = ({ type }: PlacedRecord, last: Checkpoint | undefined): boolean =>
  type === RECORD.checkpoint && last?.kind === 'recovered'

/** Returns the seconds by which the noted time exceeds `reached`, the recording's time in microseconds. */
export const lackOf = ({ milliseconds }: Noted, reached: number): number =>
  Math.max(0, milliseconds - Math.floor(reached / 1000)) / 1000

function at(fault: RecordingError): { offset?: number } {
  return fault.offset === undefined ? {} : { offset: fault.offset }
}

/**
 * Describes the missing part of a recovered recording in one sentence. Returns undefined if nothing is
 * missing.
 */
export function missingPart(verification: Verification): string | undefined {
  const closing = verification.lastCheckpoint?.closing
  if (verification.state !== 'recovered' || !closing) return undefined
  const seconds = (closing.lastFrame / 1e6).toFixed(3)
  const unsigned =
    closing.unsignedBytes > 0
      ? `, the last ${closing.unsignedBytes} bytes before it were signed afterwards`
      : ''
  return (
    `the session was interrupted: the recording ends ${seconds} s after its beginning, ` +
    `${closing.droppedBytes} bytes of an unfinished record were dropped${unsigned}`
  )
}
