/** SPNEGO as a client (RFC 4178): offers mechanisms, and signs the list once one of them has completed. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import {
  buildInit,
  buildMechanismList,
  buildResponse,
  parseResponse,
  type ResponseToken,
  SPNEGO_OID,
  STATE,
} from '../../bytes/spnego.ts'
import { CredSspError } from '../gss/errors.ts'
import type { Initiator, SecurityContext } from '../gss/mechanism.ts'

export class SpnegoInitiator implements Initiator {
  readonly oid = SPNEGO_OID
  readonly #mechanisms: readonly [Initiator, ...Initiator[]]
  readonly #list: Buffer
  #chosen: Initiator
  #isAgreed = false
  #isListProved = false
  #isComplete = false

  /** `mechanisms`: in order of preference. */
  constructor(mechanisms: readonly [Initiator, ...Initiator[]]) {
    this.#mechanisms = mechanisms
    this.#list = buildMechanismList(mechanisms.map(({ oid }) => oid))
    this.#chosen = mechanisms[0]
  }

  get context(): SecurityContext | undefined {
    return this.#chosen.context
  }

  get isComplete(): boolean {
    return this.#isComplete || this.#isListProved
  }

  start(): Buffer {
    return buildInit(this.#list, this.#chosen.start())
  }

  step(token: Uint8Array): Buffer | undefined {
    if (this.#isComplete) throw new MalformedError('spnego: no further token was expected')
    const response = parseResponse(token)
    if (response.state === STATE.REJECT) {
      // The mechanism may say why.
      if (response.token && !this.context) this.#chosen.step(response.token)
      throw new CredSspError('other', 'the target refused every mechanism that was offered')
    }
    const begun = this.#agree(response.mechanism)
    if (begun) return buildResponse({ token: begun })
    return this.context ? this.#finish(this.context, response.signature) : this.#go(response)
  }

  #go({ state, token, signature }: ResponseToken): Buffer | undefined {
    if (!token) throw new MalformedError('spnego: a token of the mechanism was expected, found none')
    const answer = this.#chosen.step(token)
    const { context } = this
    if (context && signature) this.#prove(context, signature)
    // RFC 4178 5: a list whose first mechanism is used needs no signature.
    const isFirst = this.#chosen === this.#mechanisms[0]
    if (context && !answer && state === STATE.COMPLETED && (isFirst || this.#isListProved)) {
      this.#isComplete = true
      return undefined
    }
    return buildResponse({ token: answer, signature: context?.signMechanisms(this.#list) })
  }

  /** Returns the first token of the target's mechanism, or undefined if the target chose our first one. */
  #agree(mechanism: Uint8Array | undefined): Uint8Array | undefined {
    if (this.#isAgreed || mechanism === undefined) return undefined
    this.#isAgreed = true
    const chosen = this.#mechanisms.find(({ oid }) => Buffer.from(oid).equals(mechanism))
    if (!chosen) {
      throw new MalformedError(
        `spnego: a mechanism that was offered was expected, found ${Buffer.from(mechanism).toString('hex')}`,
      )
    }
    if (chosen === this.#chosen) return undefined
    this.#chosen = chosen
    return chosen.start()
  }

  #finish(context: SecurityContext, signature: Uint8Array | undefined): undefined {
    if (!this.#isListProved) this.#prove(context, signature)
    this.#isComplete = true
  }

  #prove(context: SecurityContext, signature: Uint8Array | undefined): void {
    if (!signature || !context.areMechanismsSigned(this.#list, signature)) {
      throw new CredSspError('altered', 'the list of mechanisms was altered on its way to the target')
    }
    this.#isListProved = true
  }
}
