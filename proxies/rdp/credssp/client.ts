/**
 * CredSSP as a client (MS-CSSP 3.1.5), inside TLS: authenticates the account, checks that the target owns the
 * key seen in TLS, and only then sends the password. No socket, no clock.
 */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { CredSspError } from '../gss/errors.ts'
import type { Initiator, SecurityContext } from '../gss/mechanism.ts'
import { type Binding, bindingOf, HASHED_VERSION, isBinding } from './binding.ts'
import { buildCredentials, type TsCredentials } from './credentials.ts'
import { refusalOf } from './status.ts'
import { buildTsRequest, NONCE_LENGTH, parseTsRequest, type TsRequest, VERSION } from './ts-request.ts'

/** Most messages of a target: NTLM needs two, Kerberos with SPNEGO four. */
export const ROUND_LIMIT = 10

export interface CredSspClientOptions {
  mechanism: Initiator
  /** Public key of the TLS certificate (`subjectPublicKey`). */
  publicKey: Uint8Array
  credentials: TsCredentials
  /** Default 5: older versions are open to a man in the middle (CVE-2018-0886). */
  minimumVersion?: number
  random(length: number): Uint8Array
}

export interface ClientStep {
  /** A message for the target. */
  send?: Buffer
  /** `send` holds the credentials; RDP follows, or a last TSRequest with the reason of a refusal. */
  isDone: boolean
}

type Stage = 'proving' | 'binding' | 'done'

const BROKEN_OFF: Readonly<Record<Stage, string>> = {
  proving: 'the target closed the connection when it was asked for NLA',
  binding:
    'the target closed the connection instead of letting the account in, and gave no reason: most likely the user name or the password is wrong',
  done: 'the target took the password and closed the connection: most likely the account has no right to log in by remote desktop',
}

export class CredSspClient {
  readonly #options: CredSspClientOptions
  readonly #nonce: Uint8Array
  #stage: Stage = 'proving'
  #version = 0
  #rounds = 0

  constructor(options: CredSspClientOptions) {
    this.#options = options
    this.#nonce = options.random(NONCE_LENGTH)
  }

  /** Returns the first message. */
  start(): Buffer {
    return buildTsRequest({ version: VERSION, negoToken: this.#options.mechanism.start() })
  }

  /** Receives a whole TSRequest. Throws MalformedError, and CredSspError if the sign-in has failed. */
  receive(bytes: Uint8Array): ClientStep {
    const request = parseTsRequest(bytes)
    if (request.errorCode) throw refusalOf(request.errorCode)
    this.#count()
    this.#agree(request.version)
    switch (this.#stage) {
      case 'proving':
        return this.#prove(request)
      case 'binding':
        return this.#bind(request)
      case 'done':
        throw new MalformedError('credssp: no TSRequest was expected after the credentials')
    }
  }

  /** The target has not proved itself yet, and no credentials were sent. */
  get isProving(): boolean {
    return this.#stage === 'proving'
  }

  /** Returns the error for a target that closes the connection at this stage. */
  get brokenOff(): CredSspError {
    // In the first stage, the target does not know the account yet.
    return new CredSspError(this.#stage === 'proving' ? 'other' : 'ended', BROKEN_OFF[this.#stage])
  }

  #count(): void {
    this.#rounds += 1
    if (ROUND_LIMIT < this.#rounds) {
      throw new MalformedError(`credssp: an end within ${ROUND_LIMIT} messages was expected, found more`)
    }
  }

  #agree(version: number): void {
    const minimum = this.#options.minimumVersion ?? HASHED_VERSION
    const agreed = Math.min(version, VERSION)
    if (agreed < minimum) {
      throw new CredSspError(
        'weak',
        `the target speaks version ${version} of CredSSP, and version ${minimum} is the oldest that is allowed`,
      )
    }
    if (this.#version !== 0 && agreed !== this.#version) {
      throw new MalformedError(`credssp: version ${this.#version} was expected as before, found ${version}`)
    }
    this.#version = agreed
  }

  #prove({ negoToken }: TsRequest): ClientStep {
    if (!negoToken) throw new MalformedError('credssp: a token was expected from the target, found none')
    const { mechanism } = this.#options
    const answer = mechanism.step(negoToken)
    const request: TsRequest = { version: VERSION, negoToken: answer }
    const { context } = mechanism
    if (context) {
      this.#stage = 'binding'
      request.pubKeyAuth = context.wrap(bindingOf('client', this.#binding))
      if (HASHED_VERSION <= this.#version) request.clientNonce = this.#nonce
    }
    return { send: buildTsRequest(request), isDone: false }
  }

  #bind({ negoToken, pubKeyAuth }: TsRequest): ClientStep {
    const { mechanism } = this.#options
    if (negoToken) mechanism.step(negoToken)
    if (!pubKeyAuth) {
      if (negoToken) return { isDone: false }
      throw new MalformedError('credssp: the proof of the public key was expected, found none')
    }
    const { context } = mechanism
    if (!context || !mechanism.isComplete) {
      throw new MalformedError(
        'credssp: a last token of the target was expected before the public key, found none',
      )
    }
    const found = context.unwrap(pubKeyAuth)
    if (!found || !isBinding('server', this.#binding, found)) {
      throw new CredSspError(
        'altered',
        'the target does not have the key of its TLS certificate: there may be a man in the middle, or it does not know the password',
      )
    }
    this.#stage = 'done'
    return { send: this.#handOver(context), isDone: true }
  }

  #handOver(context: SecurityContext): Buffer {
    const plain = buildCredentials(this.#options.credentials)
    const authInfo = context.wrap(plain)
    plain.fill(0)
    return buildTsRequest({ version: VERSION, authInfo })
  }

  get #binding(): Binding {
    return { version: this.#version, publicKey: this.#options.publicKey, nonce: this.#nonce }
  }
}
