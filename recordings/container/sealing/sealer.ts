/**
 * Seals large groups on a separate thread, one for the process: started with the first of them, and ended
 * when there have been none for a while. Sealing and hashing a byte costs more than relaying it. Small groups
 * are sealed by their writers, since a message costs more.
 */
import { Buffer } from 'node:buffer'
import type { KeyObject } from 'node:crypto'
import { Questions } from '../../../src/threads/questions.ts'
import { programBeside, Thread } from '../../../src/threads/thread.ts'
import { type CollectedGroup, dropBuffers, reuse } from '../format/group.ts'
import { HeldBytes, type Part, type Sealed } from '../held.ts'
import type { FromSealer, SealAnswer, SealRequest, ToSealer, WrittenPiece } from './messages.ts'

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
  /** Takes the group's buffer. Rejects if the group is lost, as it is when the thread dies. */
  seal(number: number, group: CollectedGroup, compress: boolean): Promise<Sealed>
  /** Forgets held groups, which were written. */
  release(groups: readonly HeldBytes[]): void
  /** Wipes the key on the thread, and forgets what is held. No call may follow. */
  close(): void
}

/** Where the sealing thread writes what it holds. */
export interface Outlet {
  /** A blocking socket, which the thread alone uses. */
  descriptor: number
  /** Called when the thread has died amid a write: the reader would not understand what follows. */
  onTorn: () => void
}

export interface SealerOptions {
  program?: URL
  idleMs?: number
  outlet?: Outlet
}

export class Sealer {
  readonly #thread: Thread<ToSealer, FromSealer>
  readonly #idleMs: number
  readonly #open = new Questions<Sealed>()
  readonly #outlet: Outlet | undefined
  /** Groups that wait for the next message, and messages that the thread has not answered. */
  #waiting: SealRequest[] = []
  #messages = 0
  /** Groups that the thread holds, and the number of writes that it has not finished. */
  readonly #held = new Set<number>()
  #writes = 0
  #nextRecording = 0
  /** Counts how often the thread began without keys. */
  #era = 0
  #idle: NodeJS.Timeout | undefined
  /** Groups since the timer was set. */
  #isUsed = false

  constructor({ program, idleMs = SEALER_IDLE_MS, outlet }: SealerOptions = {}) {
    this.#idleMs = idleMs
    this.#outlet = outlet
    this.#thread = new Thread('sealing', {
      program: program ?? programBeside(import.meta.url, 'worker'),
      ...(outlet && { workerData: () => ({ descriptor: outlet.descriptor }) }),
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
    const own = new Set<number>()
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
        const sealed = this.#open.ask((id) => {
          this.#waiting.push({ id, ...fields })
          if (this.#outlet) own.add(id)
        })
        this.#post()
        return sealed
      },
      release: (groups) => {
        const ids = groups.filter(({ run }) => run === this.#thread.run).map(({ id }) => id)
        for (const id of ids) {
          own.delete(id)
          this.#held.delete(id)
        }
        if (ids.length > 0) this.#thread.send({ kind: 'release', groups: ids })
      },
      close: () => {
        if (era === this.#era) this.#thread.send({ kind: 'close', recording })
        for (const id of own) this.#held.delete(id)
      },
    }
  }

  /**
   * Writes bytes and held groups to the outlet, behind all that were written before.
   * @throws Error if a group is lost, because the thread has died
   */
  write(parts: readonly Part[]): void {
    const pieces: WrittenPiece[] = []
    const own: Uint8Array[] = []
    let until = 0
    for (const part of parts) {
      if (part instanceof HeldBytes) {
        if (part.run !== this.#thread.run) throw new Error('the sealing thread has ended')
        pieces.push({ group: part.id })
        continue
      }
      own.push(part)
      const from = until
      until += part.length
      const last = pieces.at(-1)
      if (last && 'until' in last) last.until = until
      else pieces.push({ from, until })
    }
    // Memory of its own, since it is transferred.
    const bytes = Buffer.allocUnsafeSlow(until)
    let at = 0
    for (const part of own) {
      bytes.set(part, at)
      at += part.length
    }
    this.#writes++
    this.#thread.send({ kind: 'write', pieces, bytes }, [bytes.buffer])
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
    if (this.#isUsed || this.#open.size + this.#held.size + this.#writes > 0) {
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
    switch (message.kind) {
      case 'sealed':
        this.#sealed(message.groups)
        return
      case 'written':
        this.#writes--
        return
      case 'wiped':
        if (this.#isUsed) return
        dropBuffers()
        void this.#thread.destroy()
    }
  }

  #sealed(groups: readonly SealAnswer[]): void {
    this.#messages--
    this.#post()
    for (const group of groups) {
      reuse(group.buffer)
      this.#settle(group)
    }
    if (this.#open.size === 0) this.#thread.unref()
  }

  #settle(group: SealAnswer): void {
    const { id } = group
    switch (group.kind) {
      case 'sealed': {
        const body = [bufferOf(group.head), bufferOf(group.ciphertext), bufferOf(group.tag)]
        this.#open.answer(id, { body, hash: bufferOf(group.hash) })
        return
      }
      case 'held': {
        this.#held.add(id)
        const body = [new HeldBytes(id, this.#thread.run as number, group.length)]
        this.#open.answer(id, { body, hash: bufferOf(group.hash) })
        return
      }
      case 'lost':
        this.#open.fail(id, new Error(group.message))
    }
  }

  #lost(error: Error): void {
    this.#era++
    this.#waiting = []
    this.#messages = 0
    this.#held.clear()
    const isTorn = this.#writes > 0
    this.#writes = 0
    this.#open.failAll(error)
    if (isTorn) this.#outlet?.onTorn()
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
