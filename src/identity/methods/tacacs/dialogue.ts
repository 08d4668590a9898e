/** The dialogue of an ASCII sign-in (RFC 8907 5.4.2.1): the server asks, until it has decided. */
import { Buffer } from 'node:buffer'
import type { Secret } from '../../../model/secret.ts'
import type { MethodPrompt, MethodState } from '../method.ts'
import { shown } from '../words.ts'
import type { TacacsSession } from './connection.ts'
import {
  type AuthenticationReply,
  authenticationAbort,
  authenticationContinue,
  readAuthenticationReply,
} from './messages.ts'
import { TacacsError } from './packet.ts'
import type { TacacsServer } from './server.ts'

/** Questions that a server may ask in one sign-in. */
const MAX_ROUNDS = 16
const MAX_MESSAGE = 1024
const MAX_PROMPT = 256

/** A verdict, or a question to the user. */
export type Turn =
  | { verdict: AuthenticationReply }
  | { question: { message: string; prompts: MethodPrompt[]; answered?: string } }

export class Dialogue implements MethodState {
  readonly server: TacacsServer
  readonly userName: string
  readonly #session: TacacsSession
  #rounds = 0
  #hasGivenName = false
  /** The question that the password was given to. */
  #answered: string | undefined

  constructor(server: TacacsServer, session: TacacsSession, userName: string) {
    this.server = server
    this.userName = userName
    this.#session = session
  }

  /** Answers questions for name and password, the first of each, and returns the rest. @throws TacacsError */
  async follow(first: Buffer, password: Secret, signal: AbortSignal): Promise<Turn> {
    let reply = readAuthenticationReply(first)
    for (;;) {
      let known: Uint8Array | undefined
      if (reply.status === 'get_user' && !this.#hasGivenName) {
        this.#hasGivenName = true
        known = Buffer.from(this.userName)
      } else if (reply.status === 'get_password' && this.#answered === undefined) {
        this.#answered = wordsOf(reply).text
        known = password.reveal()
      }
      if (!known) return this.#turn(reply)
      reply = await this.#send(known, signal)
    }
  }

  /** Goes on with the user's answer. @throws TacacsError */
  async answer(text: Secret, signal: AbortSignal): Promise<Turn> {
    return this.#turn(await this.#send(text.reveal(), signal))
  }

  /** Ends it, and says so to the server. */
  close(): void {
    this.#session.tell(authenticationAbort())
  }

  async #send(answer: Uint8Array, signal: AbortSignal): Promise<AuthenticationReply> {
    if (++this.#rounds > MAX_ROUNDS)
      throw new TacacsError(`${this.server.name}: asked more than ${MAX_ROUNDS} questions in one sign-in`)
    return readAuthenticationReply(
      await this.server.goOn(this.#session, authenticationContinue(answer), signal),
    )
  }

  #turn(reply: AuthenticationReply): Turn {
    const { status, echo } = reply
    const isQuestion = status === 'get_data' || status === 'get_password' || status === 'get_user'
    if (!isQuestion) {
      this.#session.close()
      return { verdict: reply }
    }
    const { message, text } = wordsOf(reply)
    return {
      question: {
        message,
        prompts: [{ text, echo: echo && status !== 'get_password' }],
        ...(this.#answered !== undefined && { answered: this.#answered }),
      },
    }
  }
}

/** Returns the words of a question: the last line is the prompt. */
function wordsOf({ status, message }: AuthenticationReply): { message: string; text: string } {
  const lines = shown(message, MAX_MESSAGE).split('\n')
  const text = lines.pop()?.slice(0, MAX_PROMPT) || (status === 'get_password' ? 'Password: ' : 'Answer: ')
  return { message: lines.join('\n'), text }
}
