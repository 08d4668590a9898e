/** The questions of a session to approvers about its command lines. */
import type { Gate } from '../../../src/contract/gate.ts'
import { MAX_SCREEN_COLUMNS, MAX_SCREEN_LINES } from '../../../src/contract/gate.ts'
import type { Answered, Question } from '../commands/watch.ts'

export class Asks {
  readonly #gate: Pick<Gate, 'askCommand' | 'giveUpCommand'>
  readonly #session: string
  #count = 0

  constructor(gate: Pick<Gate, 'askCommand' | 'giveUpCommand'>, session: string) {
    this.#gate = gate
    this.#session = session
  }

  /** Calls `answered` later, once, unless the function that it returns has given up before. */
  ask({ line, rule, screen }: Question, answered: Answered): () => void {
    const session = this.#session
    const ask = ++this.#count
    let isOpen = true
    const close = (isAccepted: boolean, message: string) => {
      if (!isOpen) return
      isOpen = false
      answered(isAccepted, message)
    }
    const rows = screen.slice(0, MAX_SCREEN_LINES).map((row) => row.slice(0, MAX_SCREEN_COLUMNS))
    this.#gate.askCommand({ session, ask, line, rule, screen: rows }).then(
      ({ result, message }) => close(result === 'accepted', message),
      () => close(false, 'no approver can be asked now'),
    )
    return () => {
      if (!isOpen) return
      isOpen = false
      // The gate gives it up itself when the session has ended.
      this.#gate.giveUpCommand({ session, ask }).catch(() => undefined)
    }
  }
}
