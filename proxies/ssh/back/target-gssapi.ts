/**
 * The sign-in at a target by the ticket that the user has forwarded (RFC 4462 3). The gate makes the token and the
 * signature; what the target answers is brought to it.
 */
import type { Buffer } from 'node:buffer'
import type { TargetGssapiAnswer, TargetGssapiRequest } from '../../../src/contract/gate.ts'
import { wordsOf } from '../../wording/errors.ts'
import {
  buildGssapiMic,
  buildGssapiRequest,
  buildGssapiToken,
  choosesKerberos,
  GSSAPI,
  GSSAPI_METHOD,
  parseGssapiError,
  parseGssapiToken,
  signedGssapiData,
} from '../codec/gssapi.ts'
import type { Transport } from '../transport/transport.ts'

/** Asks the gate for the next step. */
export type TicketSource = (answer?: TargetGssapiRequest['answer']) => Promise<TargetGssapiAnswer>

/** Attempt for ssh2 (patches/); the messages after the request are the exchange's. */
export interface GssapiAttempt {
  type: typeof GSSAPI_METHOD
  username: string
  request: Buffer
  /** Called with a function that goes on to the next attempt. */
  begun: (giveUp: () => void) => void
}

export interface TargetGssapiOptions {
  username: string
  /** The token that shows the ticket. */
  token: Uint8Array
  source: TicketSource
  /** Called with a text for the user, if the sign-in fails. */
  note: (text: string) => void
}

export class TargetGssapi {
  readonly attempt: GssapiAttempt
  readonly #options: TargetGssapiOptions
  #awaits: 'choice' | 'token' | 'nothing' = 'choice'
  #giveUp: () => void = () => undefined

  constructor(options: TargetGssapiOptions) {
    const { username } = options
    this.#options = options
    this.attempt = {
      type: GSSAPI_METHOD,
      username,
      request: buildGssapiRequest(username),
      begun: (giveUp) => {
        this.#giveUp = giveUp
      },
    }
  }

  /** Handles a message of the target, and answers it. */
  async receive(payload: Buffer, transport: Pick<Transport, 'send' | 'sessionId'>): Promise<void> {
    const awaited = this.#awaits
    this.#awaits = 'nothing'
    try {
      switch (payload[0]) {
        case GSSAPI.error:
          this.#options.note(`the target says: ${wordsOf(parseGssapiError(payload))}`)
          return
        case GSSAPI.errorToken:
          return
        case GSSAPI.response:
          if (awaited !== 'choice' || !choosesKerberos(payload)) break
          this.#awaits = 'token'
          transport.send(buildGssapiToken(this.#options.token))
          return
        case GSSAPI.token:
          if (awaited !== 'token') break
          await this.#sign(parseGssapiToken(payload), transport)
          return
      }
      this.#fail('the target does not keep to gssapi-with-mic')
    } catch {
      this.#fail('the sign-in by your ticket has failed')
    }
  }

  async #sign(token: Uint8Array, transport: Pick<Transport, 'send' | 'sessionId'>): Promise<void> {
    const { source, username } = this.#options
    const answer = await source({ token, data: signedGssapiData(transport.sessionId, username) })
    if (answer.result === 'signed') transport.send(buildGssapiMic(answer.mic))
    else this.#fail(answer.result === 'unusable' ? answer.message : 'the sign-in by your ticket has failed')
  }

  #fail(text: string): void {
    this.#options.note(text)
    this.#giveUp()
  }
}
