/**
 * Logs in at a target by its output: types the login at a login prompt and the password at a password prompt,
 * once each, and reports the result. It checks the output when the target is silent, because only then is the
 * last line a prompt and not the beginning of another line. No socket, no clock.
 */
import { Buffer } from 'node:buffer'
import { TerminalFilter } from '../../recordings/decode/terminal/filter.ts'
import { LOGIN_OPTIONS, type LoginOptions } from '../../src/model/login-options.ts'
import { Heard } from './prompts.ts'
import { Redactor } from './redactor.ts'

/** Bytes of output before the login has succeeded: banners have some thousands. */
export const LOGIN_OUTPUT_LIMIT = 256 * 1024

export interface LoginDialogOptions {
  /** The target's name as the user knows it. */
  name: string
  /** Empty if the target is expected not to ask for a login. */
  login: string
  /** Absent if none is stored: the target must not ask for one. */
  password?: string
  /** The secret for the target's privileged mode. */
  enable?: string
  /** Set if the protocol has sent the login to the target. */
  isNamed?: boolean
  /** Set if the user types everything that the login prompt does not ask for. */
  isPersonal: boolean
  options: LoginOptions
}

/** `type`: input to send now, Return included. `in`: the login has ended, and the user continues. */
export type LoginStep = { type: string } | { in: true } | { failed: string } | undefined

/** The last input sent. */
type Stage = 'nothing' | 'login' | 'password' | 'enable' | 'secret'

export class LoginDialog {
  readonly #given: LoginDialogOptions
  readonly #heard: Heard
  readonly #redactor: Redactor
  readonly #filter = new TerminalFilter()
  readonly #decoder = new TextDecoder()
  #stage: Stage = 'nothing'
  #said = 0

  constructor(given: LoginDialogOptions) {
    this.#given = given
    this.#heard = new Heard(given.options)
    this.#redactor = new Redactor([given.password ?? '', given.enable ?? ''])
  }

  /** Adds output of the target, and returns the part that may be shown. */
  receive(bytes: Uint8Array): Uint8Array {
    this.#said += bytes.length
    const redacted = this.#redactor.redact(bytes)
    this.#heard.add(redacted, this.#redactor.held)
    return this.#shown(redacted)
  }

  /** Returns the reason for a failed login if the target has sent too much, or undefined. */
  get flaw(): string | undefined {
    if (this.#said <= LOGIN_OUTPUT_LIMIT) return undefined
    return `${this.#given.name} said more than ${LOGIN_OUTPUT_LIMIT / 1024} KiB before the login was over`
  }

  /** Returns the rest of the output that may be shown. */
  flush(): Uint8Array {
    return this.#shown(this.#redactor.flush())
  }

  /** Called when the target has been silent for a moment, or for some seconds (`isLong`). */
  silent(isLong: boolean): LoginStep {
    const step = this.#look(isLong)
    if (step && 'type' in step) this.#heard.clear()
    return step
  }

  /** Returns the reason for a failed login if the target closes now. */
  get brokenOff(): string {
    const { name } = this.#given
    const words = this.#heard.lastWords
    if (this.#stage === 'password' && this.#heard.saysFailure) return this.#refusal()
    return `${name} closed the connection during the login${words === '' ? '' : `; it said "${words}"`}`
  }

  /** Called when the time for the login has expired. */
  expired(): LoginStep {
    const { name, options, isPersonal } = this.#given
    if (isPersonal) return { in: true }
    const words = this.#heard.lastWords
    const what =
      this.#stage === 'nothing'
        ? 'showed no prompt that the connection policy knows'
        : `did not go on after the ${this.#typed}`
    const said = words === '' ? 'it said nothing' : `it said "${words}"`
    return { failed: `${name} ${what} within ${options.loginTimeout} s: ${said}` }
  }

  get #typed(): string {
    if (this.#stage === 'enable' || this.#stage === 'secret') return this.#given.options.enableCommand
    return this.#stage === 'login' ? 'login' : 'password'
  }

  #look(isLong: boolean): LoginStep {
    const { login, isPersonal } = this.#given
    const heard = this.#heard
    switch (this.#stage) {
      case 'nothing':
        if (heard.asks('passwordPrompt')) return isPersonal ? { in: true } : this.#passwordFirst(isLong)
        if (heard.asks('loginPrompt')) {
          if (login === '')
            return { failed: `${this.#given.name} asks for a login, and the account has none` }
          this.#stage = 'login'
          return { type: `${login}\r` }
        }
        return isLong && heard.asks('shellPrompt') ? this.#loggedIn() : undefined
      case 'login':
        if (isPersonal) return { in: true }
        if (heard.asks('passwordPrompt')) return this.#typePassword()
        if (heard.asks('loginPrompt')) return { failed: this.#refusal() }
        // Before a password prompt, a line of a banner may look like a failure or a shell prompt.
        if (!isLong) return undefined
        if (heard.saysFailure) return { failed: this.#refusal() }
        return heard.asks('shellPrompt') ? this.#loggedIn() : undefined
      case 'password':
        if (heard.asks('passwordPrompt') || heard.asks('loginPrompt')) return { failed: this.#refusal() }
        if (heard.asks('shellPrompt')) return this.#loggedIn()
        if (heard.saysFailure) return { failed: this.#refusal() }
        return isLong && !heard.isSilent ? this.#loggedIn() : undefined
      case 'enable':
        if (!heard.asks('passwordPrompt')) return heard.asks('shellPrompt') ? { in: true } : undefined
        this.#stage = 'secret'
        return { type: `${this.#given.enable}\r` }
      case 'secret':
        if (heard.asks('passwordPrompt') || heard.saysFailure) return { failed: this.#refusal() }
        return heard.asks('shellPrompt') || (isLong && !heard.isSilent) ? { in: true } : undefined
    }
  }

  /**
   * A password prompt came without a login prompt: it may be any text, and the password is for the target's
   * own prompt only. It is trusted if the login was sent already, if there is none, or if the policy has a
   * pattern of its own.
   */
  #passwordFirst(isLong: boolean): LoginStep {
    const { name, login, isNamed, options } = this.#given
    const isExpected = isNamed || login === '' || options.passwordPrompt !== LOGIN_OPTIONS.passwordPrompt
    if (isExpected) return this.#typePassword()
    // A line of a banner may look like a prompt.
    if (!isLong) return undefined
    const words = `${name} asks for a password and has not asked for the login ${login}`
    return { failed: `${words}: if it never asks for a login, set password_prompt in its connection policy` }
  }

  #typePassword(): LoginStep {
    const { password, name } = this.#given
    if (password === undefined) {
      return { failed: `${name} asks for a password, and none is stored for the account` }
    }
    this.#stage = 'password'
    return { type: `${password}\r` }
  }

  #loggedIn(): LoginStep {
    const { enable, options } = this.#given
    if (enable === undefined || this.#heard.isPrivileged) return { in: true }
    this.#stage = 'enable'
    return { type: `${options.enableCommand}\r` }
  }

  #refusal(): string {
    const { name, login, options } = this.#given
    const words = this.#heard.reason
    const said = words === '' ? '' : `: it said "${words}"`
    if (this.#stage === 'login') return `${name} refused the login ${login}${said}`
    if (this.#stage === 'secret') return `${name} refused the secret for ${options.enableCommand}${said}`
    return `${name} refused the password${login === '' ? '' : ` of ${login}`}${said}`
  }

  #shown(bytes: Uint8Array): Uint8Array {
    return Buffer.from(this.#filter.push(this.#decoder.decode(bytes, { stream: true })))
  }
}
