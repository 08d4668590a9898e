/**
 * The bastion's first message to a target, in clear text, and the target's response (MS-RDPBCGR 1.3.1.1,
 * connection initiation). Never offers RDP's own security.
 */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { TargetError } from '../../wording/errors.ts'
import { Framer } from '../codec/framer.ts'
import {
  buildConnectionRequest,
  type ConnectionConfirm,
  NEGOTIATION_FAILURE,
  parseConnectionConfirm,
  SECURITY_PROTOCOL,
} from '../codec/x224.ts'

const CONFIRM_LIMIT = 4 + 255
/** Windows cuts the name to this length too. */
const COOKIE_NAME = 9

/** Protocols that the policy allows a target to choose; `credssp` is CredSSP inside TLS. */
export type BackProtocol = 'tls' | 'credssp'

const NUMBERS = { tls: SECURITY_PROTOCOL.tls, credssp: SECURITY_PROTOCOL.credssp } as const

const REASONS: Readonly<Record<number, string>> = {
  [NEGOTIATION_FAILURE.tlsRequired]: 'it requires TLS, which the connection policy does not allow',
  [NEGOTIATION_FAILURE.tlsNotAllowed]:
    "it has RDP's own security only, which is broken: set it to TLS or network level authentication",
  [NEGOTIATION_FAILURE.noCertificate]: 'it has no certificate for TLS',
  [NEGOTIATION_FAILURE.inconsistentFlags]: 'it found the request inconsistent',
  [NEGOTIATION_FAILURE.credsspRequired]:
    'it requires network level authentication, which the connection policy does not allow',
  [NEGOTIATION_FAILURE.tlsWithUserCertificateRequired]:
    'it requires a certificate of the user, which is not supported',
}

export interface BackNegotiationOptions {
  /** At least one. */
  protocols: readonly BackProtocol[]
  /** The account's login; load balancers use its first characters. */
  login: string
  /** Replaces the cookie: the token of a redirection or a farm, without CR LF. */
  routingToken?: string
}

export class BackNegotiation {
  readonly #protocols: readonly BackProtocol[]
  readonly #framer = new Framer({ limit: CONFIRM_LIMIT })
  /** The first message to the target. */
  readonly request: Buffer

  constructor({ protocols, login, routingToken }: BackNegotiationOptions) {
    this.#protocols = protocols
    const name = login.replace(/[^\x21-\x7e]/g, '').slice(0, COOKIE_NAME)
    // CredSSP requires TLS, and Windows expects both bits.
    const numbers = protocols.reduce((bits, protocol) => bits | NUMBERS[protocol], 0)
    const isCredssp = (numbers & SECURITY_PROTOCOL.credssp) !== 0
    this.request = buildConnectionRequest({
      cookie: routingToken ?? `Cookie: mstshash=${name}`,
      negotiation: { flags: 0, protocols: isCredssp ? numbers | SECURITY_PROTOCOL.tls : numbers },
    })
  }

  /**
   * Returns the target's choice, or undefined if more bytes are needed. Throws TargetError if the target
   * refuses, and MalformedError, also if the target sends more data in clear text.
   */
  receive(chunk: Uint8Array): BackProtocol | undefined {
    let confirm: ConnectionConfirm | undefined
    const left = this.#framer.feed(chunk, (pdu) => {
      confirm = parseConnectionConfirm(pdu)
      return false
    })
    if (!confirm) return undefined
    if (left.length > 0) {
      throw new MalformedError(`rdp: nothing was expected before TLS, found ${left.length} more bytes`)
    }
    return this.#judge(confirm)
  }

  #judge(confirm: ConnectionConfirm): BackProtocol {
    if (confirm.result === 'failure') {
      const reason = REASONS[confirm.code] ?? `with code ${confirm.code}`
      throw new TargetError(`the target refuses the connection: ${reason}`)
    }
    const number = confirm.result === 'selected' ? confirm.protocol : SECURITY_PROTOCOL.rdp
    if (number === SECURITY_PROTOCOL.rdp) {
      throw new TargetError(
        `the target refuses the connection: ${REASONS[NEGOTIATION_FAILURE.tlsNotAllowed]}`,
      )
    }
    const chosen = this.#protocols.find((protocol) => NUMBERS[protocol] === number)
    if (chosen) return chosen
    if (number === SECURITY_PROTOCOL.tls) {
      throw new TargetError(
        'the target refuses network level authentication, and the connection policy does not allow TLS alone',
      )
    }
    throw new MalformedError(`rdp: a protocol that was offered was expected, found 0x${number.toString(16)}`)
  }
}
