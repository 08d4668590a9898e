/**
 * Security keys and passkeys (WebAuthn) as second factors in browsers. A challenge belongs to one round or one enrolment,
 * and counts for the configured host name only. No attestation is asked for: which make it is decides nothing.
 */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { verifyAuthenticationResponse, verifyRegistrationResponse } from '@simplewebauthn/server'
import type { Id, User } from '../../model/objects.ts'
import type { SecurityKey, Store } from '../../store/store.ts'
import type { KeyRequest } from '../round-form.ts'
import type { Refusal } from '../sign-in.ts'

/** Keys of one user. */
export const MAX_KEYS = 16
/** Bytes of a credential's id (WebAuthn 4), and of its public key. */
const MAX_CREDENTIAL_ID = 1023
const MAX_PUBLIC_KEY = 2048
/** Characters of what a browser sends for a key. */
export const MAX_KEY_ANSWER = 16 * 1024
const CHALLENGE_BYTES = 32
/** EdDSA, ES256, RS256 (COSE). */
const ALGORITHMS = [-8, -7, -257]
const TRANSPORT = /^[a-z-]{1,32}$/
const MAX_TRANSPORTS = 8

export interface SecurityKeysOptions {
  store: Pick<Store, 'securityKeys'>
  /** Origin of the pages: keys are made for its host. */
  site: string
  /** Milliseconds since the epoch. */
  now: () => number
}

/** A request to make a key (WebAuthn 5.4), binary values in base64url. */
export interface KeyCreation {
  challenge: string
  rpId: string
  userId: string
  userName: string
  algorithms: readonly number[]
  /** Ids of the keys that the user has. */
  known: readonly string[]
}

export class SecurityKeys {
  readonly #options: SecurityKeysOptions
  readonly #rpId: string

  constructor(options: SecurityKeysOptions) {
    this.#options = options
    this.#rpId = new URL(options.site).hostname
  }

  async list(userId: Id): Promise<SecurityKey[]> {
    return await this.#options.store.securityKeys.list(userId)
  }

  async remove(userId: Id, id: Id): Promise<boolean> {
    return await this.#options.store.securityKeys.remove(userId, id)
  }

  /** Returns a new request to one of the user's keys, or undefined if there is none. */
  async request(userId: Id): Promise<KeyRequest | undefined> {
    const keys = await this.list(userId)
    if (keys.length === 0) return undefined
    return {
      challenge: newChallenge(),
      rpId: this.#rpId,
      keys: keys.map(({ credentialId, transports }) => ({ id: base64url(credentialId), transports })),
    }
  }

  /** Judges the answer of a key to a request, which counts once. */
  async judge(userId: Id, { challenge }: KeyRequest, answer: string): Promise<Refusal | undefined> {
    const response = answerOf(answer)
    const id = response && Buffer.from(response.id, 'base64url')
    const key = (await this.list(userId)).find(({ credentialId }) => id?.equals(credentialId))
    if (!response || !key) return 'unknown_security_key'
    const { credentialId, publicKey } = key
    const verified = await verifyAuthenticationResponse({
      response: response as never,
      expectedChallenge: challenge,
      expectedOrigin: this.#options.site,
      expectedRPID: this.#rpId,
      // The password was the knowledge: a touch is possession. The count is judged below.
      requireUserVerification: false,
      credential: { id: base64url(credentialId), publicKey: new Uint8Array(publicKey), counter: 0 },
    }).catch(() => undefined)
    if (!verified?.verified) return 'wrong_security_key'
    const { newCounter } = verified.authenticationInfo
    const isUsed = await this.#options.store.securityKeys.use(key.id, newCounter, this.#options.now())
    // Another device signs with the same key (WebAuthn 6.1.1), or the key was removed meanwhile.
    return isUsed ? undefined : 'copied_security_key'
  }

  /** Returns what a browser needs to make a key for the user. */
  async creation({ id, userName }: Pick<User, 'id' | 'userName'>): Promise<KeyCreation> {
    const known = await this.list(id)
    return {
      challenge: newChallenge(),
      rpId: this.#rpId,
      userId: base64url(Buffer.from(id)),
      userName,
      algorithms: ALGORITHMS,
      known: known.map(({ credentialId }) => base64url(credentialId)),
    }
  }

  /**
   * Adds a key that answers to the challenge. `announce` is called before it counts. Returns `wrong` for an answer that
   * proves no new key.
   */
  async add(
    userId: Id,
    { challenge, name }: { challenge: string; name: string },
    answer: string,
    announce: () => Promise<void>,
  ): Promise<'added' | 'known' | 'too_many' | 'wrong'> {
    const response = answerOf(answer)
    if (!response) return 'wrong'
    const verified = await verifyRegistrationResponse({
      response: response as never,
      expectedChallenge: challenge,
      expectedOrigin: this.#options.site,
      expectedRPID: this.#rpId,
      requireUserVerification: false,
      supportedAlgorithmIDs: ALGORITHMS,
    }).catch(() => undefined)
    if (!verified?.verified) return 'wrong'
    const { credential } = verified.registrationInfo
    const credentialId = Buffer.from(credential.id, 'base64url')
    if (credentialId.length > MAX_CREDENTIAL_ID || credential.publicKey.length > MAX_PUBLIC_KEY)
      return 'wrong'
    const keys = await this.list(userId)
    if (keys.some((key) => credentialId.equals(key.credentialId))) return 'known'
    if (MAX_KEYS <= keys.length) return 'too_many'
    await announce()
    const { publicKey, counter: signCount } = credential
    const transports = transportsOf(response)
    const fresh = { name, credentialId, publicKey, signCount, transports, created: this.#options.now() }
    return await this.#options.store.securityKeys.add(userId, fresh, MAX_KEYS)
  }
}

const newChallenge = () => randomBytes(CHALLENGE_BYTES).toString('base64url')
const base64url = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')

/** Whether an answer is one of a key, not a code. */
export const isKeyAnswer = (text: string): boolean => text.startsWith('{')

interface KeyAnswer {
  id: string
  response: object
}

/** Reads what the script of the page sends; the package judges the rest of it. */
function answerOf(text: string): KeyAnswer | undefined {
  if (text.length > MAX_KEY_ANSWER) return undefined
  try {
    const answer = JSON.parse(text) as KeyAnswer | null
    const isAnswer =
      typeof answer?.id === 'string' && typeof answer.response === 'object' && answer.response !== null
    return isAnswer ? answer : undefined
  } catch {
    return undefined
  }
}

function transportsOf({ response }: KeyAnswer): string[] {
  const { transports } = response as { transports?: unknown }
  if (!Array.isArray(transports)) return []
  return transports
    .filter((one): one is string => typeof one === 'string' && TRANSPORT.test(one))
    .slice(0, MAX_TRANSPORTS)
}
