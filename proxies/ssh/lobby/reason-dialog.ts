/**
 * Prompts on a terminal for the reason of a session: a comment, a ticket, and how long, as far as the target's
 * authorization asks for them. It turns typed bytes into text to show, and owns no socket.
 */
import { MAX_REASON, type Reason, type ReasonQuestion } from '../../../src/contract/gate.ts'
import { LineInput, printable } from '../../wording/line-input.ts'
import { flawOfField, type ReasonField, reasonFields, reasonOf, wishOf } from '../../wording/reason.ts'

/** The result of typed bytes. */
export type ReasonStep = { show: string } | { show: string; reason: Reason } | { show: string; quit: true }

export class ReasonDialog {
  readonly #question: ReasonQuestion
  readonly #fields: { field: ReasonField; label: string }[]
  readonly #texts: Partial<Record<ReasonField, string>> = {}
  // One character above the limit, so that the gate can report that it is too long.
  readonly #input = new LineInput(MAX_REASON + 1)
  /** Decodes typed bytes; a character's bytes may be split. */
  readonly #decoder = new TextDecoder()

  constructor(question: ReasonQuestion) {
    this.#question = question
    this.#fields = reasonFields(question)
  }

  /** Returns the first prompt. `notice`: why the prompt is repeated. */
  start(notice?: string): string {
    const why = notice ?? `sallyport: ${this.#question.flaw ?? wishOf(this.#question)}`
    return `${printable(why)}\r\n${this.#prompt()}`
  }

  type(bytes: Uint8Array): ReasonStep {
    let show = ''
    for (const character of this.#decoder.decode(bytes, { stream: true })) {
      const key = this.#input.type(character)
      show += key.show
      if (key.done === 'leave') return { show, quit: true }
      if (key.done !== 'end') continue
      show += '\r\n'
      const step = this.#typed(this.#input.take())
      if (typeof step !== 'string') return { show, reason: step }
      show += step
    }
    return { show }
  }

  /** Returns the next prompt, or the reason if it is complete. */
  #typed(text: string): string | Reason {
    const [asked] = this.#fields
    if (!asked) return reasonOf(this.#texts)
    const flaw = flawOfField(this.#question, asked.field, text)
    if (flaw !== undefined) return `sallyport: ${flaw}\r\n${this.#prompt()}`
    this.#texts[asked.field] = text
    this.#fields.shift()
    return this.#fields.length === 0 ? reasonOf(this.#texts) : this.#prompt()
  }

  #prompt(): string {
    const [asked] = this.#fields
    return asked ? `${asked.label}: ` : 'Return goes on: '
  }
}
