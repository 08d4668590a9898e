/**
 * The server side toward viewers: the listener, what is offered to whom, and the sign-in through the gate. A viewer that
 * has signed in is handed over before it has been told of any desktop.
 */
import type { KeyObject } from 'node:crypto'
import type { Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import type { AuthenticateRequest, Gate, Identity, Source } from '../../src/contract/gate.ts'
import { isFrom, plainAddress } from '../../src/model/networks.ts'
import type { VncOfferedType } from '../../src/model/vnc-options.ts'
import { EndedError } from '../bytes/ended.ts'
import { MalformedError } from '../bytes/malformed.ts'
import { ByteStream } from '../net/byte-stream.ts'
import { Listener } from '../net/listener.ts'
import { INTERNAL } from '../wording/errors.ts'
import type { ServerChannel } from './security/channel.ts'
import { type Judgement, type Proof, welcome } from './security/server.ts'
import type { Version } from './security/version.ts'

/** The desktop goes in clear text, and the password of `plain` too. */
const CLEAR: ReadonlySet<VncOfferedType> = new Set(['apple_dh', 'plain', 'vncauth'])

const REJECTED = 'wrong user name, password or ticket'
const UNASKED = 'this sign-in asks for more than a VNC viewer can: use SSH'

export interface VncFrontSecurity {
  certificate: SecureContext
  anonymous: SecureContext
  /** Of RSA: what viewers know the bastion by in RA2. */
  rsaKey: KeyObject
  /** What is offered, in this order. */
  types: readonly VncOfferedType[]
  /** Networks from which a connection may go on in clear text; empty: none. */
  allowClear: readonly string[]
}

export interface VncFrontOptions {
  gate: Pick<Gate, 'authenticate' | 'leave'>
  loginGraceMs: number
  security: VncFrontSecurity
  /** A person has signed in. ServerInit is not sent yet; the stream is paused. */
  onSignedIn: (viewer: SignedInViewer) => void
}

export interface SignedInViewer {
  identity: Identity
  source: Source
  stream: ByteStream
  version: Version
  security: VncOfferedType
  /** The viewer would share the desktop with others. */
  isShared: boolean
}

export class VncFront {
  readonly #options: VncFrontOptions
  readonly #listener: Listener
  /** For connections from now on. */
  security: VncFrontSecurity

  constructor(options: VncFrontOptions) {
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
    // A list of networks that is empty stands for all elsewhere.
    const mayBeClear = security.allowClear.length > 0 && isFrom(source.address, security.allowClear)
    const stream = new ByteStream(socket)
    let identity: Identity | undefined
    try {
      const welcomed = await welcome(channelOf(stream, security), {
        offers: security.types.filter((type) => mayBeClear || !CLEAR.has(type)),
        rsaKey: security.rsaKey,
        judge: async (proof) => {
          const judgement = await this.#judge(proof, source)
          if ('accepted' in judgement) identity = judgement.accepted
          return judgement
        },
      })
      if (welcomed) {
        const { accepted, ...how } = welcomed
        this.#listener.signedIn(socket)
        this.#options.onSignedIn({ ...how, identity: accepted, source, stream })
      } else stream.close()
    } catch (error) {
      if (!(error instanceof EndedError || error instanceof MalformedError)) throw error
      stream.destroy()
      // What cannot be told is forgotten with the broker.
      if (identity) this.#options.gate.leave({ identity: identity.token }).catch(() => undefined)
    }
  }

  async #judge(proof: Proof, source: Source): Promise<Judgement<Identity>> {
    const { gate } = this.#options
    try {
      const answer = await gate.authenticate({ protocol: 'VNC', source, ...requestOf(proof) })
      switch (answer.result) {
        case 'accepted':
          return { accepted: answer.identity }
        case 'malformed':
          return { refused: answer.message }
        case 'challenge':
          await gate.leave({ identity: answer.challenge.id })
          return { refused: UNASKED }
        default:
          return { refused: REJECTED }
      }
    } catch {
      return { refused: INTERNAL }
    }
  }
}

function channelOf(stream: ByteStream, security: VncFrontSecurity): ServerChannel {
  return {
    read: (bytes) => stream.read(bytes),
    write: (bytes) => stream.write(bytes),
    startFrames: (sealer, opener) => stream.startFrames(sealer, opener),
    startTls: (identity) => stream.acceptTls(security[identity]),
  }
}

function requestOf(proof: Proof): Pick<AuthenticateRequest, 'login' | 'proof'> {
  if ('challenge' in proof) return { login: '', proof: { method: 'ticket', ...proof } }
  return { login: proof.user, proof: { method: 'password', password: proof.password } }
}
