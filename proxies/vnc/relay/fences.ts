/**
 * Fences that the target has sent to the viewer. Targets stop drawing while their fences are unanswered, so a
 * viewer could hide the desktop by holding one: after a while the bastion answers it.
 */
import { Buffer } from 'node:buffer'
import { UNSEEN_MS } from './limits.ts'

/** Community specification, ClientFence. */
export const FENCE = { BLOCK_BEFORE: 1, BLOCK_AFTER: 2, SYNC_NEXT: 4, REQUEST: 0x80000000 } as const

/** Unanswered fences of a viewer: a target has one for each pending update. */
const MAX_OWED = 64

interface Owed {
  flags: number
  payload: Buffer
  since: number
}

export interface FencesOptions {
  /** Sends the reply to a fence that the viewer has held. */
  answer: (flags: number, payload: Uint8Array) => void
  /** Milliseconds, never decreasing. */
  now?: () => number
}

export class Fences {
  readonly #options: FencesOptions
  readonly #now: () => number
  readonly #owed: Owed[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(options: FencesOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** Notes a fence that is forwarded to the viewer next. */
  asked(flags: number, payload: Uint8Array): void {
    if (this.#owed.length === MAX_OWED) this.#answer(this.#owed.shift()!)
    this.#owed.push({ flags, payload: Buffer.from(payload), since: this.#now() })
    this.#timer ??= setTimeout(() => this.#look(), UNSEEN_MS)
  }

  /** Returns true if the viewer's reply is to be forwarded: the fence exists and has no reply yet. */
  answers(payload: Uint8Array): boolean {
    const index = this.#owed.findIndex((owed) => owed.payload.equals(payload))
    if (index >= 0) this.#owed.splice(index, 1)
    return index >= 0
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #look(): void {
    this.#timer = undefined
    const last = this.#now() - UNSEEN_MS
    while (this.#owed.length > 0 && this.#owed[0]!.since <= last) this.#answer(this.#owed.shift()!)
    const [oldest] = this.#owed
    if (oldest) this.#timer = setTimeout(() => this.#look(), oldest.since - last)
  }

  #answer({ flags, payload }: Owed): void {
    this.#options.answer(flags & (FENCE.BLOCK_BEFORE | FENCE.BLOCK_AFTER), payload)
  }
}
