/**
 * Logs in at a target by what it prints: types the login at a login prompt, the password at a password prompt, once
 * each, and tells how that went. It looks when the target has fallen silent, because only then is a last line a
 * prompt and not the beginning of another line. No socket, no clock.
 */
import { Buffer } from 'node:buffer'
import { TerminalFilter } from '../../recordings/decode/terminal/filter.ts'
import { LOGIN_OPTIONS, type LoginOptions } from '../../src/model/login-options.ts'
import { Heard } from './prompts.ts'
import { Redactor } from './redactor.ts'

/** Bytes that a target may say before it has let the bastion in: banners have some thousands. */
export const LOGIN_OUTPUT_LIMIT = 256 * 1024

export interface LoginDialogOptions {
  /** What the user calls the target. */
  name: string
  /** Empty: the target is expected to ask for none. */
  login: string
  /** None is stored: the target must not ask for one. */
  password?: string
  /** For its privileged mode. */
  enable?: string
  /** The protocol has told the target the login. */
  isNamed?: boolean
  /** The person types what the login prompt does not ask for. */
  isPersonal: boolean
  options: LoginOptions
}

/** `type`: to be typed now, Return included. `in`: it is over, and the person goes on. */
export type LoginStep = { type: string } | { in: true } | { failed: string } | undefined

/** What was typed last. */
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

  /** Output of the target; returns what of it may be shown. */
  receive(bytes: Uint8Array): Uint8Array {
    this.#said += bytes.length
    const redacted = this.#redactor.redact(bytes)
    this.#heard.add(redacted, this.#redactor.held)
    return this.#shown(redacted)
  }

  /** Why the login has come to nothing over what the target has said. */
  get flaw(): string | undefined {
    if (this.#said <= LOGIN_OUTPUT_LIMIT) return undefined
    return `${this.#given.name} said more than ${LOGIN_OUTPUT_LIMIT / 1024} KiB before the login was over`
  }

  /** The rest of what may be shown. */
  flush(): Uint8Array {
    return this.#shown(this.#redactor.flush())
  }

  /** The target has said nothing for a moment, or `isLong`: for some seconds. */
  silent(isLong: boolean): LoginStep {
    const step = this.#look(isLong)
    if (step && 'type' in step) this.#heard.clear()
    return step
  }

  /** Why the login has come to nothing when the target closes now. */
  get brokenOff(): string {
    const { name } = this.#given
    const words = this.#heard.lastWords
    if (this.#stage === 'password' && this.#heard.saysFailure) return this.#refusal()
    return `${name} closed the connection during the login${words === '' ? '' : `; it said "${words}"`}`
  }

  /** The time is up. */
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
        // Before a password was asked for, a line of a banner may look like either.
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
   * Nobody has asked for the login: what looks like a prompt may be anybody's text, and the password is for the target's
   * own. Unless the login was told already, or there is none, or a rule of the policy says what the prompt looks like.
   */
  #passwordFirst(isLong: boolean): LoginStep {
    const { name, login, isNamed, options } = this.#given
    const isExpected = isNamed || login === '' || options.passwordPrompt !== LOGIN_OPTIONS.passwordPrompt
    if (isExpected) return this.#typePassword()
    // A line of a banner may look like one.
    if (!isLong) return undefined
    const words = `${name} asks for a password and has not asked for the login ${login}`
    return { failed: `${words}: if that is its way, give its connection policy a password_prompt of its own` }
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
