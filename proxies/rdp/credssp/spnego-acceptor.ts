/**
 * SPNEGO as a server (RFC 4178, MS-SPNG): chooses a mechanism and checks the client's signature over the
 * list. Also accepts NTLM without SPNEGO around it, as Windows does.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { buildResponse, parseInit, parseResponse, SPNEGO_OID, STATE } from '../../bytes/spnego.ts'
import { CredSspError } from '../gss/errors.ts'
import type { Acceptor, AcceptorStep } from '../gss/mechanism.ts'
import { NTLM_OID } from '../gss/oids.ts'
import { isNtlm } from '../ntlm/messages.ts'

type State =
  | { kind: 'start' }
  | { kind: 'bare'; mechanism: Acceptor }
  | {
      kind: 'negotiated'
      mechanism: Acceptor
      list: Uint8Array
      /** The choice was sent, with the first token of this side. */
      isTold: boolean
      /** The client preferred another mechanism: a signature must prove that the list was not changed. */
      needsSignature: boolean
      /** mechListMIC of the token that is being judged. */
      signature: Uint8Array | undefined
    }

export class SpnegoAcceptor implements Acceptor {
  readonly oid = SPNEGO_OID
  readonly #mechanisms: readonly Acceptor[]
  #state: State = { kind: 'start' }

  constructor(mechanisms: readonly Acceptor[]) {
    this.#mechanisms = mechanisms
  }

  step(token: Uint8Array): AcceptorStep {
    const state = this.#state
    if (state.kind === 'start') return isNtlm(token) ? this.#bare(token) : this.#negotiate(token)
    if (state.kind === 'bare') return state.mechanism.step(token)
    const response = parseResponse(token)
    if (!response.token) throw new MalformedError('spnego: a token of the mechanism was expected, found none')
    state.signature = response.signature
    return this.#wrap(state.mechanism.step(response.token))
  }

  judged(key: Uint8Array | undefined): AcceptorStep {
    if (this.#state.kind === 'start') throw new Error('nothing is to be judged')
    return this.#wrap(this.#state.mechanism.judged(key))
  }

  #bare(token: Uint8Array): AcceptorStep {
    const mechanism = this.#find(NTLM_OID)
    if (!mechanism) throw new CredSspError('ntlm_off', 'the client signs in by NTLM, which is off')
    this.#state = { kind: 'bare', mechanism }
    return mechanism.step(token)
  }

  #negotiate(bytes: Uint8Array): AcceptorStep {
    const { mechanisms, mechanismList, token } = parseInit(bytes)
    const mechanism = mechanisms.map((oid) => this.#find(oid)).find((found) => found !== undefined)
    if (!mechanism) {
      throw new CredSspError(
        'other',
        `the client offers no mechanism that is spoken here (${mechanisms.map((oid) => Buffer.from(oid).toString('hex')).join(' ')})`,
      )
    }
    const isFirst = mechanism === this.#find(mechanisms[0]!)
    const state: State = {
      kind: 'negotiated',
      mechanism,
      list: Buffer.from(mechanismList),
      isTold: false,
      needsSignature: !isFirst,
      signature: undefined,
    }
    this.#state = state
    if (isFirst && token) return this.#wrap(mechanism.step(token))
    // The token is for another mechanism: the client starts again with the named one (5, c).
    state.isTold = true
    return {
      kind: 'token',
      token: buildResponse({
        state: isFirst ? STATE.INCOMPLETE : STATE.REQUEST_MIC,
        mechanism: mechanism.oid,
      }),
    }
  }

  #wrap(step: AcceptorStep): AcceptorStep {
    const state = this.#state
    if (state.kind !== 'negotiated') return step
    const mechanism = state.isTold ? undefined : state.mechanism.oid
    if (step.kind === 'token') {
      state.isTold = true
      return {
        kind: 'token',
        token: buildResponse({ state: STATE.INCOMPLETE, mechanism, token: step.token }),
      }
    }
    if (step.kind !== 'in') return step
    const { context, token } = step
    const { signature, needsSignature, list } = state
    if (signature ? !context.areMechanismsSigned(list, signature) : needsSignature) {
      throw new CredSspError('altered', "the client's list of mechanisms was altered on its way")
    }
    const ours = signature && context.signMechanisms(list)
    const done = buildResponse({ state: STATE.COMPLETED, mechanism, token, signature: ours })
    return { kind: 'in', context, token: done }
  }

  #find(oid: Uint8Array): Acceptor | undefined {
    return this.#mechanisms.find((mechanism) => Buffer.from(mechanism.oid).equals(oid))
  }
}
