/**
 * The server side for clients: each connection up to its Client Info. With NLA the client
 * has signed in by then; with TLS alone it may have sent a password that is not checked yet.
 */
import type { Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import type { Gate, Identity, Source } from '../../../src/contract/gate.ts'
import type { NtlmProof } from '../../../src/model/ntlm-auth.ts'
import { type NlaMode, RDP_TICKET_TOKEN } from '../../../src/model/rdp-ticket.ts'
import { EndedError } from '../../bytes/ended.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { ByteStream } from '../../net/byte-stream.ts'
import { Front } from '../../net/front.ts'
import { SECURITY_PROTOCOL } from '../codec/x224.ts'
import {
  type ClientHello,
  type CredsspPolicy,
  type FrontNegotiated,
  FrontNegotiation,
} from '../connection/front-negotiation.ts'
import { RdpClient } from './client.ts'
import { serveNla } from './nla.ts'

export interface RdpFrontSecurity {
  tls: SecureContext
  /** Certificate of `tls` in DER; NLA is bound to it. */
  certificate: Uint8Array
  nla: NlaMode
}

export interface RdpFrontOptions {
  gate: Pick<Gate, 'authenticate' | 'leave'>
  /** The bastion's name. */
  bastion: string
  loginGraceMs: number
  security: RdpFrontSecurity
  /** The Client Info was received. The connection is destroyed if `signedIn` is not called in time. */
  onClient: (arrival: RdpArrival) => void
}

export interface RdpArrival {
  client: RdpClient
  source: Source
  /** The identity proven by NLA. Undefined before the sign-in. */
  identity: Identity | undefined
  /** Milliseconds left for the sign-in. */
  graceMs: number
  /** Ends the time limit: a user has signed in on the connection. */
  signedIn: () => void
  /** Lets the connection stay that many milliseconds from now without a sign-in. */
  waits: (milliseconds: number) => void
}

export class RdpFront extends Front<RdpFrontSecurity> {
  readonly #options: RdpFrontOptions

  constructor(options: RdpFrontOptions) {
    super(options)
    this.#options = options
  }

  protected welcome(socket: Socket, source: Source): void {
    void this.#serve(socket, source)
  }

  async #serve(socket: Socket, source: Source): Promise<void> {
    const { security } = this
    const stream = new ByteStream(socket)
    const until = performance.now() + this.#options.loginGraceMs
    const nla = new NlaSignIn(this.#options, security, source)
    try {
      const negotiated = await negotiate(stream, security.nla)
      stream.write(negotiated.answer)
      if (negotiated.result === 'refused') {
        stream.close()
        return
      }
      await stream.acceptTls(security.tls)
      if (negotiated.protocol === 'credssp' && !(await nla.run(stream))) {
        stream.close()
        return
      }
      const { requestedProtocols } = negotiated.hello
      const client = await RdpClient.receive({ stream, requestedProtocols })
      const { identity } = nla
      const signedIn = (): void => this.signedIn(socket)
      const waits = (milliseconds: number): void => this.waits(socket, milliseconds)
      const graceMs = Math.max(0, until - performance.now())
      this.#options.onClient({ client, source, identity, graceMs, signedIn, waits })
    } catch (error) {
      stream.destroy()
      nla.signOut()
      if (!(error instanceof EndedError || error instanceof MalformedError)) throw error
    }
  }
}

/** Reads the client's negotiation, which is in clear text. Rejects with EndedError and MalformedError. */
function negotiate(stream: ByteStream, nla: NlaMode): Promise<FrontNegotiated> {
  const negotiation = new FrontNegotiation((hello) => credsspFor(hello, nla))
  return new Promise((resolve, reject) => {
    stream.onClosed = () => reject(new EndedError('the client closed the connection'))
    stream.onData = (chunk) => {
      try {
        const negotiated = negotiation.receive(chunk)
        if (!negotiated) return
        stream.onData = undefined
        stream.onClosed = undefined
        stream.paused = true
        resolve(negotiated)
      } catch (error) {
        reject(error)
      }
    }
    stream.paused = false
  })
}

/**
 * NLA requires a secret that the bastion has in clear text, which is only a ticket's; most clients are better
 * served without NLA. A ticket's `.rdp` file makes the client announce it in its first message.
 */
function credsspFor({ requestedProtocols, request }: ClientHello, nla: NlaMode): CredsspPolicy {
  if (nla !== 'tickets') return nla
  const hasTls = (requestedProtocols & SECURITY_PROTOCOL.tls) !== 0
  // The token may end in a blank, since some clients accept only tokens of an even length.
  const hasTicket = request.cookie?.trimEnd() === RDP_TICKET_TOKEN
  return hasTls && !hasTicket ? 'off' : 'offered'
}

/** The sign-in of one client by NLA. */
class NlaSignIn {
  readonly #options: Pick<RdpFrontOptions, 'gate' | 'bastion'>
  readonly #security: RdpFrontSecurity
  readonly #source: Source
  #identity: Identity | undefined

  constructor(
    options: Pick<RdpFrontOptions, 'gate' | 'bastion'>,
    security: RdpFrontSecurity,
    source: Source,
  ) {
    this.#options = options
    this.#security = security
    this.#source = source
  }

  /** The identity that has signed in. */
  get identity(): Identity | undefined {
    return this.#identity
  }

  /** Returns false if the client was refused. Rejects with EndedError and MalformedError. */
  async run(stream: ByteStream): Promise<boolean> {
    const isIn = await serveNla(stream, {
      name: this.#options.bastion,
      certificate: this.#security.certificate,
      judge: (proof) => this.#judge(proof),
    })
    if (!isIn) this.signOut()
    return isIn
  }

  /** Releases the identity if the connection does not continue. */
  signOut(): void {
    const identity = this.#identity
    this.#identity = undefined
    // Ignores errors: a broker that is gone has forgotten the identity.
    if (identity) this.#options.gate.leave({ identity: identity.token }).catch(() => undefined)
  }

  async #judge(proof: NtlmProof): Promise<Uint8Array | 'unavailable' | undefined> {
    const { gate } = this.#options
    try {
      const answer = await gate.authenticate({
        protocol: 'RDP',
        source: this.#source,
        login: proof.user,
        proof: { method: 'ntlm', proof },
      })
      if (answer.result === 'accepted') {
        this.#identity = answer.identity
        return answer.key
      }
      if (answer.result === 'challenge') await gate.leave({ identity: answer.challenge.id })
      if (answer.result === 'unavailable') return 'unavailable'
    } catch {
      // Refuses: without the gate no client can sign in.
    }
    return undefined
  }
}
