/**
 * Prompts on a terminal for a login at a target: the name, unless it is known, and the password without echo.
 * It turns typed bytes into text to show, and owns no socket.
 */
import type { Logon, LogonQuestion } from '../../../src/contract/gate.ts'
import { MAX_TYPED_LOGIN_BYTES, MAX_TYPED_PASSWORD_BYTES } from '../../../src/model/logon.ts'
import { LineInput, printable } from '../../wording/line-input.ts'

/** The result of typed bytes. */
export type LogonStep = { show: string } | { show: string; logon: Logon } | { show: string; quit: true }

export class LogonDialog {
  readonly #question: LogonQuestion
  // One byte above the limit, so that the gate can report that it is too long.
  readonly #login = new LineInput(MAX_TYPED_LOGIN_BYTES + 1)
  readonly #password = new LineInput(MAX_TYPED_PASSWORD_BYTES + 1)
  /** Decodes typed bytes; a character's bytes may be split. */
  readonly #decoder = new TextDecoder()
  /** Typed here, or known before. */
  #name: string | undefined

  constructor(question: LogonQuestion) {
    this.#question = question
    this.#name = question.login
  }

  /** Returns the first prompt. `notice` gives the reason. */
  start(notice?: string): string {
    const why = notice ?? this.#question.flaw
    return `${why === undefined ? '' : `${printable(why)}\r\n`}${this.#prompt()}`
  }

  type(bytes: Uint8Array): LogonStep {
    let show = ''
    for (const character of this.#decoder.decode(bytes, { stream: true })) {
      const isLogin = this.#name === undefined
      const input = isLogin ? this.#login : this.#password
      const key = input.type(character, isLogin)
      show += key.show
      if (key.done === 'leave') return { show, quit: true }
      if (key.done !== 'end') continue
      show += '\r\n'
      if (!isLogin) return { show, logon: this.#typed() }
      this.#name = this.#login.take()
      show += this.#prompt()
    }
    return { show }
  }

  #typed(): Logon {
    const password = this.#password.take()
    return this.#question.login === undefined && this.#name !== undefined
      ? { login: this.#name, password }
      : { password }
  }

  #prompt(): string {
    const { target } = this.#question
    return this.#name === undefined
      ? `Login at ${target}: `
      : `Password of ${printable(this.#name)} at ${target}: `
  }
}
