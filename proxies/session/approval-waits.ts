/** Clients that wait for an approval, and the gate's notices about it. */
import type { ApprovalWait, Gate, GateNotice, WaitState } from '../../src/contract/gate.ts'
import { MAX_EARLY_NOTICES } from './limits.ts'

export type ApprovalNotice = GateNotice & { type: 'approval' }

/** `left`: the client does not wait any more. */
export interface WaitEnd {
  state: Exclude<WaitState, 'pending'> | 'left'
  /** For the user. */
  text: string
}

/** One client's wait. */
export interface Waiting {
  /** Token of the sign-in. */
  identity: string
  wait: Pick<ApprovalWait, 'approval'>
  /** Called with each new state before the end. */
  onNews: (text: string) => void
  /** Aborts the wait. */
  signal: AbortSignal
}

export class ApprovalWaits {
  readonly #gate: Pick<Gate, 'withdraw'>
  readonly #waiting = new Map<string, (notice: ApprovalNotice) => void>()
  /** The last notice of each approval whose client does not wait yet. */
  readonly #early = new Map<string, ApprovalNotice>()

  constructor(gate: Pick<Gate, 'withdraw'>) {
    this.#gate = gate
  }

  /** Number of waiting clients. */
  get count(): number {
    return this.#waiting.size
  }

  noticed(notice: ApprovalNotice): void {
    const key = keyOf(notice.identity, notice.approval)
    const hear = this.#waiting.get(key)
    if (hear) {
      hear(notice)
      return
    }
    this.#early.set(key, notice)
    const [oldest] = this.#early.keys()
    if (this.#early.size > MAX_EARLY_NOTICES && oldest !== undefined) this.#early.delete(oldest)
  }

  /** Resolves with the approval's end. If the client gives up, withdraws the request. Never rejects. */
  end({ identity, wait: { approval }, onNews, signal }: Waiting): Promise<WaitEnd> {
    const key = keyOf(identity, approval)
    return new Promise((resolve) => {
      const settle = (end: WaitEnd): void => {
        this.#waiting.delete(key)
        signal.removeEventListener('abort', leave)
        resolve(end)
      }
      const leave = (): void => {
        // If the message fails, the broker is gone, and cancels the request at its next start.
        this.#gate.withdraw({ identity, approval }).catch(() => undefined)
        settle({ state: 'left', text: 'the request for approval was withdrawn' })
      }
      if (signal.aborted) {
        leave()
        return
      }
      const hear = ({ state, text }: ApprovalNotice): void => {
        if (state === 'pending') onNews(text)
        else settle({ state, text })
      }
      this.#waiting.set(key, hear)
      signal.addEventListener('abort', leave)
      const early = this.#early.get(key)
      this.#early.delete(key)
      if (early) hear(early)
    })
  }
}

function keyOf(identity: string, approval: string): string {
  return `${identity} ${approval}`
}
