/**
 * Writes one session's recording while it runs. `write` is synchronous and cheap: it collects frames in a
 * group. A group is sealed when it is full or half a second old, and a single flush at a time numbers and
 * links the sealed groups, has a checkpoint signed, and puts them on the disk. So a killed process loses less
 * than a second.
 *
 * Nothing is dropped silently: a failure to write, sign or keep a frame is reported once through `onFailure`,
 * and the session has to end (invariant 2).
 */
import { Buffer } from 'node:buffer'
import { createSecretKey, type KeyObject } from 'node:crypto'
import { Chain } from './chain.ts'
import { FlushWaiters } from './flush-waiters.ts'
import { type CheckpointKind, encodeCheckpoint } from './format/checkpoint.ts'
import { CONTINUED, GroupBuilder } from './format/group.ts'
import { encodeHeader, parseHeader } from './format/header.ts'
import {
  LINK_LENGTH,
  MAX_FRAME_PAYLOAD,
  MAX_STRUCTURED_PAYLOAD,
  SESSION_KEY_LENGTH,
} from './format/limits.ts'
import { type End, FRAME, type FrameSink, type FrameType, isStream } from './frames.ts'
import type { RecordingGrant } from './grant.ts'
import { GroupQueue, type SealedGroup } from './group-queue.ts'
import type { Part } from './held.ts'
import { type Appended, type CreateFile, NoSpaceError, type RecordingFile } from './recording-file.ts'
import type { Sealer } from './sealing/sealer.ts'
import { inTime, proving, type Sign } from './signer.ts'

/** Backlog in bytes above which the relay has to stop reading until `onDrain`. */
export const BACKLOG_LIMIT = 4 * 1024 * 1024
/**
 * Backlog in bytes at which the recording fails: leaves room for the data in flight when a relay stops
 * reading.
 */
export const BACKLOG_HARD_LIMIT = 4 * BACKLOG_LIMIT
/**
 * Age of a group's first frame at which the group is sealed; the rest of the second is for signing and the
 * disk.
 */
export const GROUP_MILLISECONDS = 500
/**
 * Bytes a second that are compressed; faster data is stored uncompressed. zstd costs several times as much as
 * sealing and hashing, which would slow bulk output.
 */
const COMPRESSED_PER_SECOND = 8 * 1024 * 1024

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Microseconds since any moment, never decreasing. */
  monotonic(): bigint | number
}

export interface WriterOptions {
  create: CreateFile
  sign: Sign
  clock: Clock
  /** Seals large groups off the caller's thread. Absent if none are. */
  sealer?: Sealer
  /** Called once, when the recording cannot continue: the session must end too. */
  onFailure: (error: Error) => void
}

export interface RecordingResult {
  state: 'sealed' | 'failed'
  /** Length of the file in bytes. */
  size: number
  frames: number
  /** The chain's head, in hex. */
  digest: string
}

export class RecordingWriter implements FrameSink {
  readonly #options: WriterOptions
  readonly #file: RecordingFile
  readonly #epoch: number
  readonly #group = new GroupBuilder()
  readonly #queue: GroupQueue
  #chain: Chain
  #framesOnDisk = 0
  #lastOnDisk = 0
  #lastTime = 0
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> | undefined
  #drains: (() => void)[] = []
  readonly #waiters = new FlushWaiters()
  /** Groups on the disk behind the last checkpoint. */
  #unproven = 0
  #accepted = 0
  #compressible = COMPRESSED_PER_SECOND
  #compressibleSince = 0
  #failure: Error | undefined
  /** Set when no more frames are accepted. */
  #stopped = false
  /** Set when a flush failed: no further flush is tried until the end. */
  #broken = false
  /** Set when a group could not be written: no group may follow it. */
  #lost = false
  #closed: Promise<RecordingResult> | undefined

  private constructor(
    key: KeyObject,
    options: WriterOptions,
    epoch: number,
    file: RecordingFile,
    chain: Chain,
  ) {
    this.#options = options
    this.#file = file
    this.#chain = chain
    this.#queue = new GroupQueue({
      key,
      sealer: options.sealer,
      onDue: () => {
        if (!this.#broken) this.#flushing ??= this.#flush()
      },
      onLost: (error) => this.#lose(error),
    })
    this.#epoch = epoch
  }

  /**
   * Creates the recording's file; header and first signed checkpoint are on the disk when this resolves.
   * Throws if the file cannot be created, or if the signature is not by the key that the metadata name
   * (`signerMetadata`).
   */
  static async open(grant: RecordingGrant, options: WriterOptions): Promise<RecordingWriter> {
    if (grant.key.length !== SESSION_KEY_LENGTH) {
      throw new Error(`expected a session key of ${SESSION_KEY_LENGTH} bytes, got ${grant.key.length}`)
    }
    const { clock, sign, create } = options
    const bytes = encodeHeader(grant.metadata)
    const header = parseHeader(bytes)
    const chain = new Chain(header.session, bytes.subarray(-LINK_LENGTH), 0, bytes.length)
    const epoch = Number(clock.monotonic())
    const body = encodeCheckpoint({ kind: 'interim', wallTime: clock.now(), time: 0 })
    const checkpoint = await chain.checkpoint(body, inTime(proving(header, sign)))
    const file = await create([bytes, ...checkpoint])
    return new RecordingWriter(createSecretKey(grant.key), options, epoch, file, chain)
  }

  /** Bytes that were accepted and are not on the disk yet. */
  get backlog(): number {
    return this.#broken ? 0 : this.#queue.bytes + this.#group.length
  }

  /** Calls back once when half of BACKLOG_LIMIT is free again, or at once if it is free now. */
  onDrain(callback: () => void): void {
    this.#drains.push(callback)
    queueMicrotask(() => this.#drain())
  }

  /** Number of frames accepted so far, as a reader counts them. */
  get accepted(): number {
    return this.#accepted
  }

  /** Time of the last accepted frame, in microseconds since the recording began. */
  get time(): number {
    return this.#lastTime
  }

  /**
   * Resolves when all frames accepted so far are on the disk, under a signed checkpoint. Calls that come
   * while the disk is busy share its next turn. Rejects if the recording fails before.
   */
  flush(): Promise<void> {
    this.#seal()
    return this.#waiters.until(this.#queue.added, this.#broken || this.#lost ? this.#failure : undefined)
  }

  /**
   * Accepts a frame and copies its payload. Output and input longer than 64 KiB become several frames. A
   * structured payload has at most 2 MiB: a longer one fails the recording. Frames after a failure or after
   * `close` are ignored.
   */
  write(type: FrameType, channel: number, payload: Uint8Array): void {
    if (this.#stopped || this.#closed) return
    this.#take(type, channel, payload)
    if (this.backlog > BACKLOG_HARD_LIMIT) {
      // Accepted frames are still written; if the disk stays silent, the flush fails.
      this.#stopped = true
      this.#fail(new Error(`the disk is slower than the session: ${this.backlog} bytes are waiting`))
    }
  }

  /**
   * Writes the end frame and the closing checkpoint, and closes the file. Never throws: a recording that
   * could not be finished is `failed`. Further calls return the same result.
   */
  close(end: End): Promise<RecordingResult> {
    if (!this.#closed) {
      if (!this.#lost) this.#take(FRAME.end, 0, Buffer.from(JSON.stringify(end), 'utf8'))
      this.#closed = this.#finish()
    }
    return this.#closed
  }

  /** Microseconds since the recording began; never goes back, even if the clock does. */
  #now(): number {
    const time = Math.floor(Number(this.#options.clock.monotonic()) - this.#epoch)
    if (time > this.#lastTime) this.#lastTime = time
    return this.#lastTime
  }

  #take(type: FrameType, channel: number, payload: Uint8Array): void {
    const time = this.#now()
    if (payload.length <= MAX_FRAME_PAYLOAD) {
      this.#collect(type, channel, time, payload)
    } else {
      const stream = isStream(type)
      if (!stream && payload.length > MAX_STRUCTURED_PAYLOAD) {
        this.#fail(
          new Error(`expected at most ${MAX_STRUCTURED_PAYLOAD} bytes in a frame, got ${payload.length}`),
        )
        return
      }
      for (let at = 0; at < payload.length; at += MAX_FRAME_PAYLOAD) {
        const end = at + MAX_FRAME_PAYLOAD
        const more = !stream && end < payload.length ? CONTINUED : 0
        this.#collect(type | more, channel, time, payload.subarray(at, end))
      }
    }
  }

  #collect(type: number, channel: number, time: number, payload: Uint8Array): void {
    if (!this.#group.append(type, channel, time, payload)) {
      this.#seal()
      this.#group.append(type, channel, time, payload)
    }
    if ((type & CONTINUED) === 0) this.#accepted++
    this.#timer ??= setTimeout(() => this.#seal(), GROUP_MILLISECONDS)
  }

  /** Seals the group and starts a flush. */
  #seal(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const weight = this.#group.length
    if (weight === 0 || this.#lost) return
    this.#queue.add(this.#group.take(), this.#mayCompress(weight))
  }

  #mayCompress(bytes: number): boolean {
    const elapsed = (this.#lastTime - this.#compressibleSince) / 1e6
    this.#compressibleSince = this.#lastTime
    const earned = this.#compressible + elapsed * COMPRESSED_PER_SECOND
    this.#compressible = Math.min(earned, COMPRESSED_PER_SECOND)
    if (this.#compressible < bytes) return false
    this.#compressible -= bytes
    return true
  }

  async #flush(): Promise<void> {
    // Let the caller's turn end before the disk write: more frames may follow in it.
    await Promise.resolve()
    try {
      while (this.#queue.isDue && !this.#broken) {
        const { fault } = await this.#put('interim')
        // Report a fault but continue: the floor leaves room for the rest and for the end.
        if (fault) this.#fail(fault.isNoSpace ? new NoSpaceError(fault.message) : new Error(fault.message))
      }
    } catch (error) {
      this.#break(asError(error))
    } finally {
      this.#flushing = undefined
    }
  }

  /** Writes a batch of sealed groups to the disk, and a checkpoint after them if it has a kind. */
  async #put(kind?: CheckpointKind): Promise<Appended> {
    const batch = this.#queue.batch()
    const chain = this.#chain.fork()
    const parts = batch.flatMap((group) => chain.addGroup(group))
    const reached = {
      frames: batch.reduce((sum, group) => sum + group.frames, this.#framesOnDisk),
      last: batch.at(-1)?.last ?? this.#lastOnDisk,
    }
    let appended: Appended
    try {
      if (kind) parts.push(...(await this.#checkpoint(chain, kind, reached)))
      appended = await this.#append(parts)
    } catch (error) {
      await this.#salvage(batch)
      throw error
    }
    this.#written(chain, batch)
    this.#unproven += batch.length
    if (kind) {
      this.#waiters.prove(this.#unproven)
      this.#unproven = 0
    }
    return appended
  }

  /**
   * Writes the groups one by one as far as possible, when there is no signature or little room on the disk.
   */
  async #salvage(batch: readonly SealedGroup[]): Promise<void> {
    try {
      for (const group of batch) {
        const chain = this.#chain.fork()
        await this.#append(chain.addGroup(group))
        this.#written(chain, [group])
      }
    } catch {
      // The caller reports the failure that came first.
      this.#lost = true
    }
  }

  #written(chain: Chain, batch: readonly SealedGroup[]): void {
    this.#chain = chain
    for (const group of batch) {
      this.#framesOnDisk += group.frames
      this.#lastOnDisk = group.last
    }
    this.#queue.written(batch)
    this.#drain()
  }

  #append(parts: readonly Part[]): Promise<Appended> {
    return this.#file.append(this.#chain.place.offset, parts)
  }

  #checkpoint(
    chain: Chain,
    kind: CheckpointKind,
    reached: { frames: number; last: number },
  ): Promise<Buffer[]> {
    const closing = { frames: reached.frames, droppedBytes: 0, unsignedBytes: 0, lastFrame: reached.last }
    const body = encodeCheckpoint({
      kind,
      wallTime: this.#options.clock.now(),
      time: this.#now(),
      ...(kind === 'interim' ? {} : { closing }),
    })
    return chain.checkpoint(body, inTime(this.#options.sign))
  }

  #drain(): void {
    if (this.#drains.length === 0 || (this.backlog > BACKLOG_LIMIT / 2 && !this.#broken)) return
    const callbacks = this.#drains
    this.#drains = []
    for (const callback of callbacks) callback()
  }

  #fail(error: Error): void {
    if (this.#failure) return
    this.#failure = error
    this.#options.onFailure(error)
  }

  #break(error: Error): void {
    this.#broken = true
    this.#endWith(error)
  }

  /** Handles the loss of a group in the sealing thread: those before it are still written. */
  #lose(error: Error): void {
    this.#lost = true
    this.#endWith(error)
  }

  #endWith(error: Error): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#fail(error)
    this.#waiters.fail(error)
    this.#drain()
  }

  /** Writes all sealed groups, and a closing checkpoint after the last. */
  async #putRest(kind: CheckpointKind): Promise<void> {
    while (!this.#queue.isLastBatch) await this.#put()
    await this.#put(kind)
  }

  async #finish(): Promise<RecordingResult> {
    this.#seal()
    await this.#queue.settled()
    await this.#flushing
    if (!this.#broken) {
      await this.#putRest(this.#failure ? 'failed' : 'sealed').catch((error) => this.#break(asError(error)))
    }
    if (this.#broken) {
      // Make a last try with the frames accepted meanwhile: the tail that did not fit was cut off, so there
      // may be room for the closing checkpoint at least. If not, the recovery writes one.
      if (this.#lost) this.#queue.clear()
      await this.#putRest('failed').catch(() => undefined)
    }
    this.#queue.close()
    await this.#file.close().catch((error) => this.#fail(asError(error)))
    return {
      state: this.#failure ? 'failed' : 'sealed',
      size: this.#chain.place.offset,
      frames: this.#framesOnDisk,
      digest: Buffer.from(this.#chain.head).toString('hex'),
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
