/**
 * A client's first message and the response, in clear text (MS-RDPBCGR 1.3.1.1, connection initiation): the
 * client's cookie, and the choice of TLS alone or CredSSP inside it. Refuses RDP's own security.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { Framer, TPKT_VERSION } from '../codec/framer.ts'
import { type Preconnection, parsePreconnection, preconnectionLength } from '../codec/preconnection.ts'
import {
  buildConnectionConfirm,
  type ConnectionRequest,
  NEGOTIATION_FAILURE,
  type NegotiationFailure,
  parseConnectionRequest,
  REQUEST_FLAG,
  RESPONSE_FLAG,
  SECURITY_PROTOCOL,
} from '../codec/x224.ts'

/** A connection request's length indicator is one byte. */
const REQUEST_LIMIT = 4 + 255

/** CredSSP (NLA) for clients: never, if the client supports it, or always. */
export type CredsspPolicy = 'off' | 'offered' | 'required'

export interface ClientHello {
  request: ConnectionRequest
  /** The client's request, for its server core data; 0 if the client does not negotiate. */
  requestedProtocols: number
  preconnection?: Preconnection
}

export type FrontNegotiated =
  /** TLS begins after the response, then CredSSP if that is the protocol. */
  | { result: 'agreed'; protocol: 'tls' | 'credssp'; answer: Buffer; hello: ClientHello }
  /** The connection ends after the response. */
  | { result: 'refused'; failure: NegotiationFailure; reason: string; answer: Buffer; hello: ClientHello }

export class FrontNegotiation {
  readonly #credsspFor: (hello: ClientHello) => CredsspPolicy
  readonly #framer = new Framer({ limit: REQUEST_LIMIT })
  #held: Buffer = Buffer.alloc(0)
  #preconnection: Preconnection | undefined

  constructor(credsspFor: (hello: ClientHello) => CredsspPolicy) {
    this.#credsspFor = credsspFor
  }

  /**
   * Returns undefined if more bytes are needed. Throws MalformedError, also if the client sends data before
   * the response: that would be clear text inside the stream that TLS must protect.
   */
  receive(chunk: Uint8Array): FrontNegotiated | undefined {
    const rest = this.#skipPreconnection(chunk)
    let request: ConnectionRequest | undefined
    const left = this.#framer.feed(rest, (pdu) => {
      request = parseConnectionRequest(pdu)
      return false
    })
    if (!request) return undefined
    if (left.length > 0) {
      throw new MalformedError(`rdp: nothing was expected before the answer, found ${left.length} more bytes`)
    }
    return this.#judge(request)
  }

  /** A preconnection PDU begins with its length, not with TPKT's version. */
  #skipPreconnection(chunk: Uint8Array): Uint8Array {
    if (this.#preconnection || this.#framer.pending > 0 || chunk.length === 0) return chunk
    if (this.#held.length === 0 && chunk[0] === TPKT_VERSION) return chunk
    this.#held = Buffer.concat([this.#held, chunk])
    const length = preconnectionLength(this.#held)
    if (length === undefined || this.#held.length < length) return new Uint8Array(0)
    this.#preconnection = parsePreconnection(this.#held.subarray(0, length))
    const rest = this.#held.subarray(length)
    this.#held = Buffer.alloc(0)
    return rest
  }

  #judge(request: ConnectionRequest): FrontNegotiated {
    const protocols = request.negotiation?.protocols ?? SECURITY_PROTOCOL.rdp
    const hello: ClientHello = { request, requestedProtocols: protocols }
    if (this.#preconnection) hello.preconnection = this.#preconnection
    const refused = (failure: NegotiationFailure, reason: string): FrontNegotiated => ({
      result: 'refused',
      failure,
      reason,
      answer: buildConnectionConfirm({ result: 'failure', code: failure }),
      hello,
    })
    const flags = request.negotiation?.flags ?? 0
    if (flags & (REQUEST_FLAG.restrictedAdmin | REQUEST_FLAG.redirectedAuthentication)) {
      return refused(
        NEGOTIATION_FAILURE.inconsistentFlags,
        'the client wants to delegate no password (restricted admin, remote guard)',
      )
    }
    const hasCredssp = (protocols & SECURITY_PROTOCOL.credssp) !== 0
    const credssp = this.#credsspFor(hello)
    if (credssp !== 'off' && hasCredssp) return agreed('credssp', SECURITY_PROTOCOL.credssp, hello)
    if (credssp === 'required') {
      return refused(
        NEGOTIATION_FAILURE.credsspRequired,
        'the client does not offer network level authentication',
      )
    }
    if ((protocols & SECURITY_PROTOCOL.tls) !== 0) return agreed('tls', SECURITY_PROTOCOL.tls, hello)
    return refused(NEGOTIATION_FAILURE.tlsRequired, 'the client does not offer TLS')
  }
}

function agreed(protocol: 'tls' | 'credssp', number: number, hello: ClientHello): FrontNegotiated {
  const answer = buildConnectionConfirm({
    result: 'selected',
    flags: RESPONSE_FLAG.extendedClientData,
    protocol: number,
  })
  return { result: 'agreed', protocol, answer, hello }
}
