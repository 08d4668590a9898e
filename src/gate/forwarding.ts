/**
 * The sign-in at a session's target by the ticket that its user has forwarded (RFC 4462 3). The proxy gets a token and one
 * signature for its own connection to the target, and no key: with these nothing else can be opened.
 */
import type { TargetGssapiAnswer, TargetGssapiRequest } from '../contract/gate.ts'
import { ForwardingError, type TargetContext } from '../identity/forwarded-ticket.ts'
import { Denial } from './denial.ts'
import type { HandOut } from './hand-out.ts'
import type { KeptSecrets } from './signed-in.ts'

const NONE =
  'your client has forwarded no ticket of Kerberos that can be used: connect with GSSAPIDelegateCredentials=yes, after kinit -f'
const OVER = 'the sign-in by your ticket is over'

export interface ForwardingOptions {
  /** Secrets of the user's sign-in. */
  kept: KeptSecrets
  handOut: HandOut
  /** Address of the target, which names its service. */
  host: string
}

export class Forwarding {
  readonly #options: ForwardingOptions
  #state: 'new' | 'begun' | 'over' = 'new'
  #context: TargetContext | undefined

  constructor(options: ForwardingOptions) {
    this.#options = options
  }

  /** Begins, once; with `answer`, the target's, ends it by a signature. */
  async step({ answer }: Pick<TargetGssapiRequest, 'answer'>): Promise<TargetGssapiAnswer> {
    try {
      return answer ? this.#sign(answer) : await this.#begin()
    } catch (error) {
      this.close()
      if (error instanceof ForwardingError || error instanceof Denial)
        return { result: 'unusable', message: error.message }
      throw error
    }
  }

  /** Wipes the keys of the context. */
  close(): void {
    this.#state = 'over'
    this.#context?.close()
    this.#context = undefined
  }

  /** @throws ForwardingError, Denial */
  async #begin(): Promise<TargetGssapiAnswer> {
    const { kept, handOut, host } = this.#options
    if (this.#state !== 'new') throw new ForwardingError(OVER)
    this.#state = 'begun'
    const { forwarded } = kept
    if (!forwarded) throw new ForwardingError(NONE)
    handOut.claimTicket()
    const context = await forwarded.contextAt(host)
    if (this.#isOver) {
      context.close()
      throw new ForwardingError(OVER)
    }
    this.#context = context
    return { result: 'token', token: context.token }
  }

  get #isOver(): boolean {
    return this.#state === 'over'
  }

  /** @throws ForwardingError */
  #sign({ token, data }: NonNullable<TargetGssapiRequest['answer']>): TargetGssapiAnswer {
    if (!this.#context) throw new ForwardingError(OVER)
    const mic = this.#context.sign(token, data)
    this.close()
    return { result: 'signed', mic }
  }
}
