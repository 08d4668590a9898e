/**
 * Seals large groups on a separate thread, one for the process: started with the first of them, and ended
 * when there have been none for a while. Sealing and hashing a byte costs more than relaying it. Small groups
 * are sealed by their writers, since a message costs more.
 */
import { Buffer } from 'node:buffer'
import type { KeyObject } from 'node:crypto'
import { Questions } from '../../../src/threads/questions.ts'
import { programBeside, Thread } from '../../../src/threads/thread.ts'
import { type CollectedGroup, dropBuffers, reuse, type SealedBody } from '../format/group.ts'
import type { FromSealer, SealAnswer, SealRequest, ToSealer } from './messages.ts'

/** Milliseconds without a group after which the thread ends. */
export const SEALER_IDLE_MS = 30_000

/**
 * Messages that the thread may have, so that it always has work; groups that come meanwhile share the next
 * one, up to this number.
 */
const MAX_MESSAGES = 2
const MAX_GROUPS = 8

/** Seals the groups of one recording. */
export interface RecordingSealer {
  /** Takes the group's buffer. Rejects if the thread has died: the group is lost. */
  seal(number: number, group: CollectedGroup, compress: boolean): Promise<SealedBody>
  /** Wipes the key on the thread. No call may follow. */
  close(): void
}

export class Sealer {
  readonly #thread: Thread<ToSealer, FromSealer>
  readonly #idleMs: number
  readonly #open = new Questions<SealedBody>()
  /** Groups that wait for the next message, and messages that the thread has not answered. */
  #waiting: SealRequest[] = []
  #messages = 0
  #nextRecording = 0
  /** Counts how often the thread began without keys. */
  #era = 0
  #idle: NodeJS.Timeout | undefined
  /** Groups since the timer was set. */
  #isUsed = false

  constructor(
    program: URL = programBeside(import.meta.url, 'worker'),
    { idleMs = SEALER_IDLE_MS }: { idleMs?: number } = {},
  ) {
    this.#idleMs = idleMs
    this.#thread = new Thread('sealing', {
      program,
      onAnswer: (message) => this.#answered(message),
      onLost: (error) => this.#lost(error),
    })
  }

  /** True while the thread runs. */
  get isRunning(): boolean {
    return this.#thread.run !== undefined
  }

  recording(key: KeyObject): RecordingSealer {
    const recording = this.#nextRecording++
    let era: number | undefined
    return {
      seal: (number, { plain, first, last, frames }, compress) => {
        this.#keepRunning()
        if (era !== this.#era) {
          era = this.#era
          const copy = copyOf(key)
          this.#thread.send({ kind: 'open', recording, key: copy }, [copy.buffer])
        }
        const buffer = plain.buffer as ArrayBuffer
        const fields = { recording, number, first, last, frames, compress, buffer, length: plain.length }
        // The process waits for its last groups.
        if (this.#open.size === 0) this.#thread.ref()
        const sealed = this.#open.ask((id) => this.#waiting.push({ id, ...fields }))
        this.#post()
        return sealed
      },
      close: () => {
        if (era === this.#era) this.#thread.send({ kind: 'close', recording })
      },
    }
  }

  /** Ends the thread at once; groups that it had are lost. */
  async destroy(): Promise<void> {
    clearTimeout(this.#idle)
    this.#idle = undefined
    await this.#thread.destroy()
  }

  #keepRunning(): void {
    this.#thread.start()
    this.#isUsed = true
    this.#idle ??= setTimeout(() => this.#look(), this.#idleMs).unref()
  }

  #look(): void {
    this.#idle = undefined
    if (this.#thread.run === undefined) return
    if (this.#isUsed || this.#open.size > 0) {
      this.#isUsed = false
      this.#idle = setTimeout(() => this.#look(), this.#idleMs).unref()
      return
    }
    // Groups that come before the thread has ended bring their keys again.
    this.#era++
    this.#thread.send({ kind: 'wipe' })
  }

  #post(): void {
    while (this.#waiting.length > 0 && this.#messages < MAX_MESSAGES) {
      const groups = this.#waiting.splice(0, MAX_GROUPS)
      this.#messages++
      this.#thread.send(
        { kind: 'seal', groups },
        groups.map(({ buffer }) => buffer),
      )
    }
  }

  #answered(message: FromSealer): void {
    if (message.kind === 'sealed') this.#sealed(message.groups)
    else if (!this.#isUsed) {
      dropBuffers()
      void this.#thread.destroy()
    }
  }

  #sealed(groups: readonly SealAnswer[]): void {
    this.#messages--
    this.#post()
    for (const { id, head, ciphertext, tag, hash, buffer } of groups) {
      reuse(buffer)
      const body = [bufferOf(head), bufferOf(ciphertext), bufferOf(tag)] as const
      this.#open.answer(id, { body, hash: bufferOf(hash) })
    }
    if (this.#open.size === 0) this.#thread.unref()
  }

  #lost(error: Error): void {
    this.#era++
    this.#waiting = []
    this.#messages = 0
    this.#open.failAll(error)
  }
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

/** Returns a copy of the key's bytes for the thread, the only one. */
function copyOf(key: KeyObject): Uint8Array<ArrayBuffer> {
  const bytes = key.export()
  const copy = Uint8Array.from(bytes)
  bytes.fill(0)
  return copy
}

/** The one of this process. */
export const sealer = new Sealer()
