/** The recording of one session: its file, the hashes that its frames wait for, and its fill level. */
import { Buffer } from 'node:buffer'
import { setTimeout as sleep } from 'node:timers/promises'
import { type End, type FrameSink, type FrameType, isStream } from '../../recordings/container/frames.ts'
import type { RecordingGrant } from '../../recordings/container/grant.ts'
import type { CreateFile } from '../../recordings/container/recording-file.ts'
import { BACKLOG_LIMIT, type RecordingResult, RecordingWriter } from '../../recordings/container/writer.ts'
import type { LiveAnswer, LiveRequest } from '../../src/contract/gate.ts'
import type { Hashing } from './hash/content-hash.ts'
import { HashAccount, hasher } from './hash/hasher.ts'
import { MAX_RECORDED_FACTS, RECORDING_CLOSE_MS } from './limits.ts'
import { LiveTap } from './live-tap.ts'
import { ownSealer } from './sealing.ts'

/** The approximate size of a frame beside its payload. */
const FRAME_OVERHEAD = 16

export interface SessionRecordingOptions {
  create: CreateFile
  sign: (statement: Uint8Array) => Promise<Uint8Array>
  onFailure: (error: Error) => void
  /** Called when the recording has reached its limit: the session has to end. */
  onFull: () => void
  /** Sends frames to the watchers. */
  live: (request: Omit<LiveRequest, 'session'>) => Promise<LiveAnswer>
  /** Called when the recording accepts data again. */
  onDrain: () => void
}

/** Without `begin` it accepts frames and keeps none: for a session whose authorization excludes recording. */
export class SessionRecording implements FrameSink {
  readonly #options: SessionRecordingOptions
  readonly #hashes: HashAccount
  #writer: RecordingWriter | undefined
  #tap: LiveTap | undefined
  #facts = 0
  #hasFailed = false
  /** The result, if it was closed before the end of the session. */
  #closed: Promise<RecordingResult> | undefined
  #isWaiting = false
  /** Recorders whose last frame is not written yet, and the function that waits for them. */
  #recorders = 0
  #onRecorded: (() => void) | undefined

  constructor(options: SessionRecordingOptions) {
    this.#options = options
    this.#hashes = new HashAccount(hasher, options.onDrain)
  }

  /** Rejects if the recording cannot begin. */
  async begin(grant: RecordingGrant): Promise<void> {
    const { create, sign, onFailure, live } = this.#options
    const writer = await RecordingWriter.open(grant, {
      create,
      sealer: ownSealer(),
      sign,
      clock: { now: Date.now, monotonic: () => Math.round(performance.now() * 1000) },
      onFailure: (error) => {
        this.#hasFailed = true
        onFailure(error)
      },
    })
    this.#writer = writer
    this.#tap = new LiveTap({
      send: live,
      flush: () => writer.flush(),
      recorded: () => writer.accepted,
      now: () => performance.now(),
    })
  }

  /** True while frames are kept. */
  get isOn(): boolean {
    return this.#writer !== undefined
  }

  get hasFailed(): boolean {
    return this.#hasFailed
  }

  /**
   * Resolves when everything until now is on the disk under a signed checkpoint; rejects if it never will be.
   */
  async flush(): Promise<void> {
    await this.#writer?.flush()
  }

  /** Closes the recording with this reason; the session continues, and nothing more is kept. */
  stop(reason: string): void {
    this.#tap?.close()
    this.#closed = this.#writer?.close({ result: 'failure', reason })
    this.#writer = undefined
    this.#options.onDrain()
  }

  /** Starts sending frames for a new watcher. */
  watch(sync: number): void {
    this.#tap?.watch(sync)
  }

  /** Records a frame; its payload is copied. */
  write(type: FrameType, channel: number, payload: Uint8Array): void {
    const writer = this.#writer
    if (!writer) return
    writer.write(type, channel, payload)
    if (this.#tap?.isOn) {
      this.#tap.frame({ type, channel, time: writer.time, payload, after: writer.accepted })
    }
    if (isStream(type)) return
    const before = this.#facts
    this.#facts += payload.length + FRAME_OVERHEAD
    if (this.#facts > MAX_RECORDED_FACTS && before <= MAX_RECORDED_FACTS) this.#options.onFull()
  }

  writeJson(type: FrameType, channel: number, value: object): void {
    this.write(type, channel, Buffer.from(JSON.stringify(value)))
  }

  /** True while the recording still holds earlier data: nothing more should be read. */
  get isFull(): boolean {
    if (this.#hashes.isBehind) return true
    if (!this.#writer || this.#writer.backlog < BACKLOG_LIMIT) return false
    if (!this.#isWaiting) {
      this.#isWaiting = true
      this.#writer.onDrain(() => {
        this.#isWaiting = false
        this.#options.onDrain()
      })
    }
    return true
  }

  /** Returns hashing for one more recorder, whose last frame is awaited. */
  newHashing(): Hashing {
    this.#recorders++
    return {
      newHash: () => this.#hashes.newHash(),
      onClosed: () => {
        this.#recorders--
        if (this.#recorders === 0) this.#onRecorded?.()
      },
    }
  }

  /** Resolves when the frames that wait for hashes are written, or after a limit. */
  async settled(): Promise<void> {
    if (this.#recorders === 0) return
    const inTime = new AbortController()
    const all = new Promise<void>((resolve) => {
      this.#onRecorded = resolve
    })
    const late = sleep(RECORDING_CLOSE_MS, undefined, { signal: inTime.signal }).catch(() => undefined)
    await Promise.race([all, late])
    inTime.abort()
  }

  /** Seals the recording without waiting for a hanging disk. The broker itself knows what was sealed. */
  async seal(end: End): Promise<void> {
    this.#tap?.close()
    const closed = this.#closed ?? this.#writer?.close(end)
    if (!closed) return
    const inTime = new AbortController()
    const late = sleep(RECORDING_CLOSE_MS, undefined, { signal: inTime.signal }).catch(() => undefined)
    await Promise.race([closed, late])
    inTime.abort()
  }
}
