/**
 * Prompts on a terminal for a second factor: one round of the gate's prompts. It turns typed bytes into text to show, and owns
 * no socket.
 */
import type { Challenge, FactorAnswers } from '../../../src/contract/gate.ts'
import { MAX_TYPED_PASSWORD_BYTES } from '../../../src/model/logon.ts'
import { LineInput, printable } from '../../wording/line-input.ts'
import { instructionLines } from '../../wording/round.ts'

/** The result of typed bytes. */
export type FactorStep =
  | { show: string }
  | { show: string; factor: FactorAnswers }
  | { show: string; quit: true }

export class FactorDialog {
  readonly #challenge: Challenge
  readonly #answers: string[] = []
  // One byte above the limit, so that the gate can report that it is too long.
  readonly #input = new LineInput(MAX_TYPED_PASSWORD_BYTES + 1)
  /** Decodes typed bytes; a character's bytes may be split. */
  readonly #decoder = new TextDecoder()

  constructor(challenge: Challenge) {
    this.#challenge = challenge
  }

  /** Returns the instructions and the first prompt. `notice` gives the reason. */
  start(notice?: string): string {
    const lines = [...(notice === undefined ? [] : [notice]), ...instructionLines(this.#challenge)]
    return `${lines.map((line) => `${printable(line)}\r\n`).join('')}${this.#prompt()}`
  }

  type(bytes: Uint8Array): FactorStep {
    let show = ''
    for (const character of this.#decoder.decode(bytes, { stream: true })) {
      const { id, prompts } = this.#challenge
      const key = this.#input.type(character, prompts[this.#answers.length]?.echo === true)
      show += key.show
      if (key.done === 'leave') return { show, quit: true }
      if (key.done !== 'end') continue
      this.#answers.push(this.#input.take())
      show += '\r\n'
      if (prompts.length <= this.#answers.length)
        return { show, factor: { challenge: id, answers: this.#answers } }
      show += this.#prompt()
    }
    return { show }
  }

  #prompt(): string {
    return printable(this.#challenge.prompts[this.#answers.length]?.text ?? '')
  }
}
