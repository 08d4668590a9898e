/**
 * Records the signed checkpoints of one running recording, and decides on the next. The recording process is
 * not trusted: checkpoints never go back, nothing follows the one that closes the file, and the file's reach
 * is derived from the statements themselves.
 *
 * A writer has one flush in flight (recordings/container/writer.ts): it requests the next signature when the
 * previous checkpoint is on the disk. Only a failed flush is followed by one more request, for the closing
 * checkpoint `failed`, somewhere behind the last one that reached the disk.
 */
import { Buffer } from 'node:buffer'
import { Chain } from '../../recordings/container/chain.ts'
import type { Checkpoint, Closing, Statement } from '../../recordings/container/format/checkpoint.ts'
import { RECORD } from '../../recordings/container/format/record.ts'

/** A recording up to the end of a signed checkpoint. */
export interface Reached {
  /** Sequence of the checkpoint's record. */
  sequence: number
  /** Bytes of the file up to the end of that record. */
  size: number
  /** The chain's head there, in hex. */
  digest: string
  /** Microseconds since the recording began. */
  time: number
}

/** The closing checkpoint's statement about the whole file. */
export interface SignedEnd {
  state: 'sealed' | 'failed'
  size: number
  frames: number
  digest: string
}

interface Signed {
  statement: Statement
  signature: Buffer
  /** Milliseconds on the recording service's monotonic clock. */
  at: number
  /** Derived on demand. */
  reached?: Reached
}

/** Closing checkpoints of one recording: the second is `failed`, if the first could not be written. */
const MAX_CLOSING = 2

export class SignedRecording {
  /** The last checkpoint that is on the disk. */
  #settled: Signed | undefined
  #latest: Signed | undefined
  readonly #ends: Signed[] = []

  /** Throws if this statement may not be signed after the previous ones. */
  require(statement: Statement): void {
    const flaw = this.#flawOf(statement)
    if (flaw !== undefined) throw new Error(`expected the next checkpoint of this recording, but ${flaw}`)
  }

  #flawOf(statement: Statement): string | undefined {
    const { checkpoint, sequence } = statement
    if (checkpoint.kind === 'recovered') return 'only the broker signs what a crash has left'
    if (checkpoint.closing && !isPlain(checkpoint.closing)) return 'it says that bytes were dropped'
    const latest = this.#latest
    if (!latest) {
      return checkpoint.kind === 'interim' && sequence === 0 ? undefined : 'the first one is record 0'
    }
    const isRetry = checkpoint.kind === 'failed'
    if (this.#ends.length > 0 && !(isRetry && this.#ends.length < MAX_CLOSING))
      return 'the recording is closed'
    // The last checkpoint may not have reached the disk; a checkpoint that did must stay.
    const last = isRetry ? (this.#settled ?? latest) : latest
    if (last !== latest && sequence === latest.statement.sequence) {
      return flawOfRetry(latest.statement, statement)
    }
    return flawBehind(reachedOf(last), statement)
  }

  /**
   * Adds a statement that `require` has accepted, with the time `at` of its signature, in milliseconds on a
   * monotonic clock.
   */
  add(statement: Statement, signature: Buffer, at: number): void {
    if (statement.checkpoint.kind !== 'failed') this.#settled = this.#latest ?? this.#settled
    this.#latest = { statement, signature, at }
    if (statement.checkpoint.closing) this.#ends.push(this.#latest)
  }

  /** The reach of the file known to be on the disk. Undefined if none is known. */
  get settled(): Reached | undefined {
    return this.#settled && reachedOf(this.#settled)
  }

  /** The reach of the file once the last checkpoint is on the disk, and the time of its signature. */
  get latest(): (Reached & { at: number }) | undefined {
    return this.#latest && { ...reachedOf(this.#latest), at: this.#latest.at }
  }

  /** Marks the file as synced to the disk up to here. */
  settle({ sequence }: Reached): void {
    if (this.#latest?.statement.sequence === sequence) this.#settled = this.#latest
  }

  /** The closing checkpoints, the last one first. Empty if the recording was not closed. */
  get ends(): SignedEnd[] {
    return this.#ends.map(endOf).reverse()
  }
}

const isPlain = ({ droppedBytes, unsignedBytes }: Closing): boolean =>
  droppedBytes === 0 && unsignedBytes === 0

function flawBehind(reached: Reached, { sequence, offset, head, checkpoint }: Statement): string | undefined {
  if (sequence <= reached.sequence) return `record ${sequence} is not behind record ${reached.sequence}`
  if (offset < reached.size) return `byte ${offset} is not behind byte ${reached.size}`
  if (checkpoint.time < reached.time) return 'its time is before that of the last one'
  const isNext = sequence === reached.sequence + 1
  const goesOn = offset === reached.size && Buffer.from(head).toString('hex') === reached.digest
  return isNext && !goesOn ? 'it does not go on where the last one ended' : undefined
}

function flawOfRetry(before: Statement, { offset, head, checkpoint }: Statement): string | undefined {
  const isSame = offset === before.offset && Buffer.from(head).equals(before.head)
  return isSame && checkpoint.time >= before.checkpoint.time
    ? undefined
    : 'it is about other bytes than the one that it stands for'
}

function reachedOf(signed: Signed): Reached {
  if (signed.reached) return signed.reached
  const { session, sequence, offset, head, body, checkpoint } = signed.statement
  const chain = new Chain(session, head, sequence, offset)
  chain.add(RECORD.checkpoint, [body, signed.signature])
  const { offset: size, head: link } = chain.place
  signed.reached = { sequence, size, digest: Buffer.from(link).toString('hex'), time: checkpoint.time }
  return signed.reached
}

function endOf(signed: Signed): SignedEnd {
  const { size, digest } = reachedOf(signed)
  const { kind, closing } = signed.statement.checkpoint as Checkpoint & { closing: Closing }
  return { state: kind === 'sealed' ? 'sealed' : 'failed', size, frames: closing.frames, digest }
}
