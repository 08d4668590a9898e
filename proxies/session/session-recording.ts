/** The recording of one session: the file, the hashes that its frames wait for, and how full it is. */
import { Buffer } from 'node:buffer'
import { setTimeout as sleep } from 'node:timers/promises'
import { type End, type FrameSink, type FrameType, isStream } from '../../recordings/container/frames.ts'
import type { RecordingGrant } from '../../recordings/container/grant.ts'
import { BACKLOG_LIMIT, type RecordingResult, RecordingWriter } from '../../recordings/container/writer.ts'
import type { LiveAnswer, LiveRequest } from '../../src/contract/gate.ts'
import type { Hashing } from './hash/content-hash.ts'
import { HashAccount, hasher } from './hash/hasher.ts'
import { MAX_RECORDED_FACTS, RECORDING_CLOSE_MS } from './limits.ts'
import { LiveTap } from './live-tap.ts'

/** What a frame costs beside its payload, about. */
const FRAME_OVERHEAD = 16

export interface SessionRecordingOptions {
  sign: (statement: Uint8Array) => Promise<Uint8Array>
  onFailure: (error: Error) => void
  /** It has come to its bound: the session has to end. */
  onFull: () => void
  /** Where those who watch get its frames from. */
  live: (request: Omit<LiveRequest, 'session'>) => Promise<LiveAnswer>
  /** It takes more again. */
  onDrain: () => void
}

/** Without `begin` it takes frames and keeps none: of a session that its authorization says is not recorded. */
export class SessionRecording implements FrameSink {
  readonly #options: SessionRecordingOptions
  readonly #hashes: HashAccount
  #writer: RecordingWriter | undefined
  #tap: LiveTap | undefined
  #facts = 0
  #hasFailed = false
  /** How it was closed before the session was over. */
  #closed: Promise<RecordingResult> | undefined
  #isWaiting = false
  /** Recorders whose last frame is not written, and who waits for that. */
  #recorders = 0
  #onRecorded: (() => void) | undefined

  constructor(options: SessionRecordingOptions) {
    this.#options = options
    this.#hashes = new HashAccount(hasher, options.onDrain)
  }

  /** Rejects when it cannot begin. */
  async begin(grant: RecordingGrant): Promise<void> {
    const { sign, onFailure, live } = this.#options
    const writer = await RecordingWriter.open(grant, {
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

  get hasFailed(): boolean {
    return this.#hasFailed
  }

  /** Resolves when all until now is on the disk under a signed checkpoint; rejects when it never will be. */
  async flush(): Promise<void> {
    await this.#writer?.flush()
  }

  /** Closes it with this reason; the session goes on, and nothing of what follows is kept. */
  stop(reason: string): void {
    this.#tap?.close()
    this.#closed = this.#writer?.close({ result: 'failure', reason })
    this.#writer = undefined
    this.#options.onDrain()
  }

  /** Somebody watches: the frames go to them from now on. */
  watch(sync: number): void {
    this.#tap?.watch(sync)
  }

  /** Takes a frame; its payload is copied. */
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

  /** True while it has not taken what it was given: nothing more should be read. */
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

  /** For one recorder more, whose last frame is waited for. */
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

  /** Resolves when what waits for its hash is written, or has taken too long. */
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

  /** Seals it; a disk that hangs is not waited for. The broker knows itself what was sealed. */
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
