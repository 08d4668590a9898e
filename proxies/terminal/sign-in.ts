/**
 * The sign-in at a terminal: asks for the login, the password and the gate's further questions, and sends
 * each answer to the gate. The gate alone decides the identity, which is kept here.
 */
import { Buffer } from 'node:buffer'
import {
  type AuthenticateRequest,
  type Challenge,
  type Gate,
  type Identity,
  type Source,
  WAIT_MS,
} from '../../src/contract/gate.ts'
import { MAX_LOGIN_BYTES } from '../../src/model/login.ts'
import { MAX_TYPED_PASSWORD_BYTES } from '../../src/model/logon.ts'
import type { TerminalProtocol } from '../../src/model/rights.ts'
import { MAX_AUTH_TRIES } from '../session/limits.ts'
import { INTERNAL } from '../wording/errors.ts'
import { LineInput, printable } from '../wording/line-input.ts'
import { instructionLines } from '../wording/round.ts'
import type { TerminalClient } from './client.ts'

/** Lines that may be typed before the sign-in, empty ones included. */
export const MAX_LINES = 64
/** Bytes that may be typed ahead. */
export const MAX_AHEAD = 4096

const LF = 0x0a
const CR = 0x0d
const NOTHING = Buffer.alloc(0)

export interface TerminalSignInOptions {
  gate: Gate
  protocol: TerminalProtocol
  source: Source
  client: TerminalClient
  /** Called when the connection may stay that many milliseconds longer without a sign-in. */
  onWaiting: (milliseconds: number) => void
}

export interface TerminalArrival {
  identity: Identity
  /** Input after the last answer. */
  ahead: Uint8Array
}

/** The current question. */
interface Question {
  line: LineInput
  echo: boolean
  /** Decodes bytes; a character may be split between calls. */
  decode(bytes: Uint8Array): string
  answer(line: string): void
}

/** The user has left, or the connection has closed. */
class Left extends Error {}

/** The sign-in of one connection. */
export class TerminalSignIn {
  readonly #options: TerminalSignInOptions
  readonly #client: TerminalClient
  /** Typed input that was not handled yet. */
  #ahead: Buffer = NOTHING
  #question: Question | undefined
  #leave: ((left: Left) => void) | undefined
  #lines = 0
  #tries = 0
  /** A challenge that the user has not answered yet, after a correct first factor. */
  #pending: Challenge | undefined

  constructor(options: TerminalSignInOptions) {
    this.#options = options
    this.#client = options.client
    this.#client.onTyped = (bytes) => {
      this.#ahead = Buffer.concat([this.#ahead, bytes])
      this.#look()
    }
    this.#client.onClosed = () => this.#gone()
  }

  /**
   * Returns the signed-in user, or undefined if the sign-in failed and the connection is closing. `user`: the
   * login that the client has named, which replaces the first question. Never rejects.
   */
  async run(user: string | undefined): Promise<TerminalArrival | undefined> {
    try {
      const identity = await this.#signIn(user)
      if (identity && !this.#client.closed) return { identity, ahead: this.#takeAhead() }
      if (identity) await this.#options.gate.leave({ identity: identity.token })
    } catch (error) {
      if (!(error instanceof Left)) this.#client.show(`sallyport: ${INTERNAL}\r\n`)
      this.#drop()
    }
    this.#client.close()
    return undefined
  }

  async #signIn(user: string | undefined): Promise<Identity | undefined> {
    let named = user === '' ? undefined : user
    if (named !== undefined) this.#client.show(`login: ${printable(named)}\r\n`)
    for (;;) {
      // One more than the limit, so that the gate sees that the answer is too long and reports it.
      const login = named ?? (await this.#ask('login: ', true, MAX_LOGIN_BYTES + 1))
      named = undefined
      if (login === '') continue
      const begun = await this.#begin(login)
      if (begun) {
        const verdict = await this.#judge(login, await this.#answers(begun))
        if (verdict !== 'again') return verdict
        continue
      }
      const password = await this.#ask('Password: ', false, MAX_TYPED_PASSWORD_BYTES + 1)
      // Returns to the login, for clients that name a user automatically.
      if (password === '') continue
      const verdict = await this.#judge(login, { method: 'password', password })
      if (verdict !== 'again') return verdict
    }
  }

  /** Returns the challenge of a name whose person signs in in a browser. */
  async #begin(login: string): Promise<Challenge | undefined> {
    const { gate, protocol, source } = this.#options
    const answer = await gate.authenticate({ protocol, source, login, proof: { method: 'browser' } })
    if (answer.result !== 'challenge') return undefined
    this.#pending = answer.challenge
    if (this.#client.closed) throw new Left()
    return answer.challenge
  }

  async #judge(login: string, first: AuthenticateRequest['proof']): Promise<Identity | 'again' | undefined> {
    const { gate, protocol, source } = this.#options
    for (let proof = first; ; ) {
      this.#tries++
      const answer = await gate.authenticate({ protocol, source, login, proof })
      switch (answer.result) {
        case 'accepted':
          this.#pending = undefined
          return answer.identity
        case 'challenge':
          this.#pending = answer.challenge
          if (this.#client.closed) throw new Left()
          break
        case 'malformed':
          this.#client.show(`sallyport: ${printable(answer.message)}\r\n`)
          break
        case 'unavailable':
          this.#client.show(`sallyport: ${printable(answer.message)}\r\n`)
          this.#drop()
          return undefined
        default:
          this.#client.show('Login incorrect\r\n')
      }
      if (this.#tries >= MAX_AUTH_TRIES) {
        this.#client.show('sallyport: too many failed attempts, try again with a new connection\r\n')
        this.#drop()
        return undefined
      }
      if (answer.result !== 'challenge') return 'again'
      proof = await this.#answers(answer.challenge)
    }
  }

  async #answers({ id, title, prompts, link, ...shown }: Challenge): Promise<AuthenticateRequest['proof']> {
    if (link !== undefined) this.#options.onWaiting(WAIT_MS)
    const lines = [...(title === '' ? [] : [title]), ...instructionLines(shown)]
    for (const line of lines) this.#client.show(`${printable(line)}\r\n`)
    const answers: string[] = []
    for (const { text, echo } of prompts) {
      answers.push(await this.#ask(printable(text), echo, MAX_TYPED_PASSWORD_BYTES + 1))
    }
    return { method: 'keyboard-interactive', challenge: id, answers }
  }

  /** Rejects with Left. */
  #ask(prompt: string, echo: boolean, maximum: number): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#leave = reject
      if (this.#client.closed || ++this.#lines > MAX_LINES) {
        reject(new Left())
        return
      }
      this.#client.show(prompt)
      const decoder = new TextDecoder()
      const decode = (bytes: Uint8Array) => decoder.decode(bytes, { stream: true })
      this.#question = { line: new LineInput(maximum), echo, decode, answer: resolve }
      this.#look()
    })
  }

  /** Input without a question waits, and is not read beyond a bound. */
  #look(): void {
    while (this.#question && this.#ahead.length > 0) this.#type(this.#question, this.#takeLine())
    this.#client.paused = this.#ahead.length >= MAX_AHEAD
  }

  /** Takes the input up to the end of the line: the bytes after it may be for the target. */
  #takeLine(): Buffer {
    const end = this.#ahead.findIndex((byte) => byte === CR || byte === LF)
    const line = this.#ahead.subarray(0, end === -1 ? this.#ahead.length : end + 1)
    this.#ahead = this.#ahead.subarray(line.length)
    return line
  }

  #type({ line, echo, decode, answer }: Question, bytes: Buffer): void {
    let shown = ''
    for (const character of decode(bytes)) {
      const key = line.type(character, echo)
      shown += key.show
      if (key.done === undefined) continue
      this.#question = undefined
      if (key.done === 'leave') {
        this.#client.show(shown)
        this.#leave?.(new Left())
        return
      }
      this.#client.show(`${shown}\r\n`)
      answer(line.take())
      return
    }
    this.#client.show(shown)
  }

  #takeAhead(): Uint8Array {
    const ahead = this.#ahead
    this.#ahead = NOTHING
    return ahead
  }

  #gone(): void {
    this.#question = undefined
    this.#leave?.(new Left())
  }

  #drop(): void {
    const challenge = this.#pending
    this.#pending = undefined
    // If this fails, the challenge ends with the broker.
    if (challenge) this.#options.gate.leave({ identity: challenge.id }).catch(() => undefined)
  }
}
