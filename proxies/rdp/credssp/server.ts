/**
 * CredSSP as a server (MS-CSSP 3.1.5), inside TLS. The caller judges the client's proof with the stored
 * secret. No socket, no clock.
 */
import type { Buffer } from 'node:buffer'
import type { NtlmProof } from '../../../src/model/ntlm-auth.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { CredSspError, type RefusalReason } from '../gss/errors.ts'
import type { Acceptor, AcceptorStep, SecurityContext } from '../gss/mechanism.ts'
import { type Binding, bindingOf, HASHED_VERSION, isBinding } from './binding.ts'
import { parseCredentials, type TsCredentials } from './credentials.ts'
import { STATUS } from './status.ts'
import { buildTsRequest, NONCE_LENGTH, parseTsRequest, type TsRequest, VERSION } from './ts-request.ts'

/** Most messages of a client: mstsc sends four. */
export const CLIENT_ROUND_LIMIT = 10

export interface CredSspServerOptions {
  acceptor: Acceptor
  /** Public key of the bastion's certificate (`subjectPublicKey`). */
  publicKey: Uint8Array
  /** Default 5: older versions are open to a man in the middle (CVE-2018-0886). */
  minimumVersion?: number
}

export type ServerStep =
  /** Read the next message. */
  | { kind: 'more'; send?: Buffer }
  /** Call `judged` before anything else. */
  | { kind: 'judge'; proof: NtlmProof }
  /** CredSSP has succeeded; RDP follows. */
  | { kind: 'done'; credentials: TsCredentials }
  /** Send the reason, if the client's version supports it, and end the connection. */
  | { kind: 'refused'; error: CredSspError; send?: Buffer }

type Stage = 'proving' | 'judging' | 'binding' | 'credentials' | 'over'

const NO_BYTES = new Uint8Array(0)

export class CredSspServer {
  readonly #options: CredSspServerOptions
  #stage: Stage = 'proving'
  #version = 0
  #rounds = 0
  #nonce: Uint8Array = NO_BYTES
  /** pubKeyAuth received with a token that is being judged. */
  #pubKeyAuth: Uint8Array | undefined
  #context: SecurityContext | undefined

  constructor(options: CredSspServerOptions) {
    this.#options = options
  }

  /** Receives a whole TSRequest from the client. Throws MalformedError. */
  receive(bytes: Uint8Array): ServerStep {
    const request = parseTsRequest(bytes)
    this.#rounds += 1
    if (CLIENT_ROUND_LIMIT < this.#rounds) {
      throw new MalformedError(
        `credssp: an end within ${CLIENT_ROUND_LIMIT} messages was expected, found more`,
      )
    }
    return this.#refusing(() => this.#take(request))
  }

  /**
   * Continues with the session base key of a correct proof (`judgeProof`), or undefined for a wrong one.
   * Throws as `receive` does.
   */
  judged(key: Uint8Array | undefined): ServerStep {
    if (this.#stage !== 'judging') throw new Error('nothing is to be judged')
    return this.#refusing(() => this.#go(this.#options.acceptor.judged(key)))
  }

  /** Refuses a proof that cannot be judged at the moment. */
  unjudged(): ServerStep {
    if (this.#stage !== 'judging') throw new Error('nothing is to be judged')
    return this.#refusing(() => {
      throw new CredSspError('no_authority', 'nobody can sign in at the moment')
    })
  }

  #take(request: TsRequest): ServerStep {
    this.#agree(request)
    switch (this.#stage) {
      case 'proving': {
        if (!request.negoToken)
          throw new MalformedError('credssp: a token was expected from the client, found none')
        this.#pubKeyAuth = request.pubKeyAuth
        return this.#go(this.#options.acceptor.step(request.negoToken))
      }
      case 'binding':
        return { kind: 'more', send: this.#bind(request.pubKeyAuth, undefined) }
      case 'credentials':
        return { kind: 'done', credentials: this.#open(request.authInfo) }
      default:
        throw new MalformedError('credssp: no TSRequest was expected now')
    }
  }

  #agree({ version, clientNonce }: TsRequest): void {
    const minimum = this.#options.minimumVersion ?? HASHED_VERSION
    const agreed = Math.min(version, VERSION)
    if (this.#version !== 0 && agreed !== this.#version) {
      throw new MalformedError(`credssp: version ${this.#version} was expected as before, found ${version}`)
    }
    this.#version = agreed
    if (agreed < minimum) {
      throw new CredSspError(
        'weak',
        `the client speaks version ${version} of CredSSP, and version ${minimum} is the oldest that is allowed`,
      )
    }
    if (!clientNonce || this.#nonce.length > 0) return
    if (clientNonce.length !== NONCE_LENGTH) {
      throw new MalformedError(
        `credssp: a nonce of ${NONCE_LENGTH} bytes was expected, found ${clientNonce.length}`,
      )
    }
    this.#nonce = clientNonce
  }

  #go(step: AcceptorStep): ServerStep {
    switch (step.kind) {
      case 'token':
        return { kind: 'more', send: buildTsRequest({ version: VERSION, negoToken: step.token }) }
      case 'judge':
        this.#stage = 'judging'
        return { kind: 'judge', proof: step.proof }
      case 'refused':
        throw new CredSspError('password', 'the user name or the password is wrong')
      case 'in': {
        this.#context = step.context
        if (this.#pubKeyAuth) return { kind: 'more', send: this.#bind(this.#pubKeyAuth, step.token) }
        this.#stage = 'binding'
        if (!step.token) return { kind: 'more' }
        return { kind: 'more', send: buildTsRequest({ version: VERSION, negoToken: step.token }) }
      }
    }
  }

  #bind(pubKeyAuth: Uint8Array | undefined, token: Uint8Array | undefined): Buffer {
    if (!pubKeyAuth) throw new MalformedError('credssp: the proof of the public key was expected, found none')
    if (HASHED_VERSION <= this.#version && this.#nonce.length === 0) {
      throw new MalformedError('credssp: a nonce was expected with the proof of the public key, found none')
    }
    const binding: Binding = {
      version: this.#version,
      publicKey: this.#options.publicKey,
      nonce: this.#nonce,
    }
    const found = this.#context!.unwrap(pubKeyAuth)
    if (!found || !isBinding('client', binding, found)) {
      throw new CredSspError(
        'altered',
        'the client sees a different public key: there may be a man in the middle',
      )
    }
    this.#stage = 'credentials'
    const answer = this.#context!.wrap(bindingOf('server', binding))
    return buildTsRequest({ version: VERSION, negoToken: token, pubKeyAuth: answer })
  }

  #open(authInfo: Uint8Array | undefined): TsCredentials {
    if (!authInfo) throw new MalformedError('credssp: credentials were expected, found none')
    const plain = this.#context!.unwrap(authInfo)
    if (!plain) throw new CredSspError('altered', "the client's credentials were altered on their way")
    this.#stage = 'over'
    const credentials = parseCredentials(plain)
    plain.fill(0)
    return credentials
  }

  /** Turns a CredSspError into the last message. */
  #refusing(work: () => ServerStep): ServerStep {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof CredSspError)) throw error
      this.#stage = 'over'
      // 2.2.1: versions 2 and 5 have no error code.
      if (this.#version < 3 || this.#version === 5) return { kind: 'refused', error }
      const errorCode = statusOf(error.reason)
      return { kind: 'refused', error, send: buildTsRequest({ version: VERSION, errorCode }) }
    }
  }
}

function statusOf(reason: RefusalReason): number {
  if (reason === 'altered') return STATUS.MESSAGE_ALTERED
  if (reason === 'no_authority') return STATUS.NO_LOGON_SERVERS
  return reason === 'password' ? STATUS.LOGON_FAILURE : STATUS.UNSUPPORTED_FUNCTION
}
