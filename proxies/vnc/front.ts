/**
 * The server side toward viewers: the security types offered to each, and the sign-in at the
 * gate. A signed-in viewer is handed over before any desktop is announced to it.
 */
import type { KeyObject } from 'node:crypto'
import type { Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import type { AuthenticateRequest, Challenge, Gate, Identity, Source } from '../../src/contract/gate.ts'
import { isFrom } from '../../src/model/networks.ts'
import type { VncOfferedType } from '../../src/model/vnc-options.ts'
import { EndedError } from '../bytes/ended.ts'
import { MalformedError } from '../bytes/malformed.ts'
import { ByteStream } from '../net/byte-stream.ts'
import { Front } from '../net/front.ts'
import { INTERNAL } from '../wording/errors.ts'
import type { ServerChannel } from './security/channel.ts'
import { type Judgement, type Proof, welcome } from './security/server.ts'
import type { Version } from './security/version.ts'
import { type BegunViewer, REJECTED, VncSignIn } from './sign-in.ts'

/** Types after which the desktop is in clear text, as is the password of `plain`. */
const CLEAR: ReadonlySet<VncOfferedType> = new Set(['apple_dh', 'plain', 'vncauth'])

/** Part of the grace time for the answers, so that some is left to show the error. */
const GRACE_PART = 0.9
/** Milliseconds in which a viewer is shown that its user has not come back from a browser. */
const FAILURE_MS = 20_000

/** A user, or the login whose sign-in goes on with a question. */
type Accepted = { identity: Identity } | { login: string; challenge: Challenge }

export interface VncFrontSecurity {
  certificate: SecureContext
  anonymous: SecureContext
  /** The RSA key of RA2, by which viewers recognize the bastion. */
  rsaKey: KeyObject
  /** The offered types, in this order. */
  types: readonly VncOfferedType[]
  /** Networks that may connect in clear text; none if empty. */
  allowClear: readonly string[]
}

export interface VncFrontOptions {
  gate: Pick<Gate, 'authenticate' | 'leave'>
  loginGraceMs: number
  security: VncFrontSecurity
  /** The name that the bastion shows. */
  bastion: string
  /** Called when a user has signed in. Unless `begun` is set, ServerInit is not sent yet; the stream is paused. */
  onSignedIn: (viewer: SignedInViewer) => void
}

export interface SignedInViewer {
  identity: Identity
  source: Source
  stream: ByteStream
  version: Version
  security: VncOfferedType
  /** Set if the viewer shares the desktop with others. */
  isShared: boolean
  /** Set if the viewer has had to answer questions. */
  begun?: BegunViewer
}

export class VncFront extends Front<VncFrontSecurity> {
  readonly #options: VncFrontOptions

  constructor(options: VncFrontOptions) {
    super(options)
    this.#options = options
  }

  protected welcome(socket: Socket, source: Source): void {
    void this.#serve(socket, source)
  }

  async #serve(socket: Socket, source: Source): Promise<void> {
    const { security } = this
    // `isFrom` reads an empty list as all networks; here it means none.
    const mayBeClear = security.allowClear.length > 0 && isFrom(source.address, security.allowClear)
    const stream = new ByteStream(socket)
    const began = performance.now()
    /** The identity's token, or the challenge's id. */
    let held: string | undefined
    try {
      const welcomed = await welcome(channelOf(stream, security), {
        offers: security.types.filter((type) => mayBeClear || !CLEAR.has(type)),
        rsaKey: security.rsaKey,
        judge: async (proof) => {
          const judgement = await this.#judge(proof, source)
          if ('accepted' in judgement) {
            const { accepted } = judgement
            held = 'identity' in accepted ? accepted.identity.token : accepted.challenge.id
          }
          return judgement
        },
      })
      if (!welcomed) {
        stream.close()
        return
      }
      const { accepted, ...how } = welcomed
      if ('identity' in accepted) {
        this.signedIn(socket)
        this.#options.onSignedIn({ ...how, ...accepted, source, stream })
        return
      }
      const { gate, bastion, loginGraceMs } = this.#options
      const patienceMs = (loginGraceMs - (performance.now() - began)) * GRACE_PART
      const onWaiting = (milliseconds: number) => this.waits(socket, milliseconds + FAILURE_MS)
      const signIn = new VncSignIn({ gate, bastion, source, stream, patienceMs, onWaiting })
      const done = await signIn.run(accepted.login, accepted.challenge)
      if (!done) return
      const { identity, ...begun } = done
      this.signedIn(socket)
      this.#options.onSignedIn({ ...how, identity, begun, source, stream })
    } catch (error) {
      if (!(error instanceof EndedError || error instanceof MalformedError)) throw error
      stream.destroy()
      // If this fails, it ends with the broker.
      if (held !== undefined) this.#options.gate.leave({ identity: held }).catch(() => undefined)
    }
  }

  async #judge(proof: Proof, source: Source): Promise<Judgement<Accepted>> {
    const { gate } = this.#options
    const request = requestOf(proof)
    try {
      const answer = await gate.authenticate({ protocol: 'VNC', source, ...request })
      switch (answer.result) {
        case 'accepted':
          return { accepted: { identity: answer.identity } }
        case 'malformed':
        case 'unavailable':
          return { refused: answer.message }
        case 'challenge':
          return { accepted: { login: request.login, challenge: answer.challenge } }
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
