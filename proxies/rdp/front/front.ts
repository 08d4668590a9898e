/**
 * The server side toward clients: the listener, and the way of each as far as its Client Info. By NLA it has signed in
 * then; by TLS alone it may have brought a password, which nobody has judged yet.
 */
import type { Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import type { Gate, Identity, Source } from '../../../src/contract/gate.ts'
import { plainAddress } from '../../../src/model/networks.ts'
import type { NtlmProof } from '../../../src/model/ntlm-auth.ts'
import { type NlaMode, RDP_TICKET_TOKEN } from '../../../src/model/rdp-ticket.ts'
import { EndedError } from '../../bytes/ended.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { ByteStream } from '../../net/byte-stream.ts'
import { Listener } from '../../net/listener.ts'
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
  /** What `tls` shows, in DER: NLA is bound to it. */
  certificate: Uint8Array
  nla: NlaMode
}

export interface RdpFrontOptions {
  gate: Pick<Gate, 'authenticate' | 'leave'>
  /** What the bastion calls itself. */
  bastion: string
  loginGraceMs: number
  security: RdpFrontSecurity
  /** Its Client Info is there. Until `signedIn` it is cut when its grace is over. */
  onClient: (arrival: RdpArrival) => void
}

export interface RdpArrival {
  client: RdpClient
  source: Source
  /** By NLA; undefined: the sign-in is still to come. */
  identity: Identity | undefined
  /** Milliseconds that are left for the sign-in. */
  graceMs: number
  /** Somebody has signed in on the connection: it has no grace any more. */
  signedIn: () => void
}

export class RdpFront {
  readonly #options: RdpFrontOptions
  readonly #listener: Listener
  /** For connections from now on. */
  security: RdpFrontSecurity

  constructor(options: RdpFrontOptions) {
    this.#options = options
    this.security = options.security
    this.#listener = new Listener({
      graceMs: options.loginGraceMs,
      onSocket: (socket) => void this.#welcome(socket),
    })
  }

  /** Resolves when the port is bound; rejects with the system's error. */
  listen(host: string, port: number): Promise<{ address: string; port: number }> {
    return this.#listener.listen(host, port)
  }

  /** Takes no more connections, and drops those that have not signed in. */
  close(): void {
    this.#listener.close()
  }

  /** Drops every connection that is left. */
  destroy(): void {
    this.#listener.destroy()
  }

  async #welcome(socket: Socket): Promise<void> {
    const { security } = this
    const { remoteAddress = '', remotePort = 0 } = socket
    const source = { address: plainAddress(remoteAddress), port: remotePort }
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
      const signedIn = (): void => this.#listener.signedIn(socket)
      const graceMs = Math.max(0, until - performance.now())
      this.#options.onClient({ client, source, identity, graceMs, signedIn })
    } catch (error) {
      stream.destroy()
      nla.signOut()
      if (!(error instanceof EndedError || error instanceof MalformedError)) throw error
    }
  }
}

/** What the client says in clear text, and what it is answered. Rejects with EndedError and MalformedError. */
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
 * NLA takes a secret that the bastion has in clear, which is a ticket's only: so most clients are better served without
 * it. A ticket's `.rdp` file has the client say in its first message that it comes with one.
 */
function credsspFor({ requestedProtocols, request }: ClientHello, nla: NlaMode): CredsspPolicy {
  if (nla !== 'tickets') return nla
  const hasTls = (requestedProtocols & SECURITY_PROTOCOL.tls) !== 0
  // Some clients take tokens of an even length only, so it may have a blank after it.
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

  /** Who has signed in. */
  get identity(): Identity | undefined {
    return this.#identity
  }

  /** False: the client was refused. Rejects with EndedError and MalformedError. */
  async run(stream: ByteStream): Promise<boolean> {
    const isIn = await serveNla(stream, {
      name: this.#options.bastion,
      certificate: this.#security.certificate,
      judge: (proof) => this.#judge(proof),
    })
    if (!isIn) this.signOut()
    return isIn
  }

  /** Whoever has signed in does not go on. */
  signOut(): void {
    const identity = this.#identity
    this.#identity = undefined
    // What cannot be told is forgotten with the broker.
    if (identity) this.#options.gate.leave({ identity: identity.token }).catch(() => undefined)
  }

  async #judge(proof: NtlmProof): Promise<Uint8Array | undefined> {
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
    } catch {
      // Nobody can be let in without the gate.
    }
    return undefined
  }
}
