/**
 * The discovery document of an issuer (OpenID Connect Discovery 1.0 section 4) and the keys that it names: read anew when they
 * are old, or when a token names one that is not among them, and not more often than the pauses allow.
 */
import { type CompactVerifyGetKey, createLocalJWKSet, type JSONWebKeySet, type JWK } from 'jose'

const MAX_KEYS = 64
/** Milliseconds after which keys are read anew: a key that was withdrawn counts no longer. */
export const KEYS_FRESH_MS = 10 * 60_000
/** Milliseconds for which keys stay in use while the issuer cannot be reached. */
export const KEYS_STALE_MS = 60 * 60_000
/** Milliseconds between two readings, so that tokens with made-up key ids cause no more. */
export const PAUSE_MS = 30_000
/** The same after a failure. */
export const PAUSE_AFTER_FAILURE_MS = 15_000

/** An issuer that does not answer, or not as it should. */
export class IssuerError extends Error {
  override name = 'IssuerError'
}

export interface IssuerOptions {
  issuer: string
  get: (url: URL) => Promise<Readonly<Record<string, unknown>>>
  /** Milliseconds of a clock that never goes back. */
  now: () => number
  onFailure: (error: Error) => void
}

/** An issuer's discovery document, whose `issuer` is the right one. */
export type Discovered = Readonly<Record<string, unknown>> & { issuer: string }

interface Keys {
  document: Discovered
  ids: ReadonlySet<string>
  find: CompactVerifyGetKey
  /** When they were read. */
  at: number
}

export class Issuer {
  readonly #options: IssuerOptions
  #keys: Keys | undefined
  #reading: Promise<void> | undefined
  #nextReading = Number.NEGATIVE_INFINITY
  #failure = 'not asked yet'

  constructor(options: IssuerOptions) {
    this.#options = options
  }

  /** Finds the key that a token's header names. @throws IssuerError, JOSEError if there is no such key */
  readonly key: CompactVerifyGetKey = async (header, token) => {
    const keys = await this.#current(header.kid ?? '')
    return await keys.find(header, token)
  }

  /** Returns the discovery document. @throws IssuerError */
  async discovered(): Promise<Discovered> {
    return (await this.#current()).document
  }

  /** `kid`: the key that is wanted, if one is. */
  async #current(kid?: string): Promise<Keys> {
    const { now } = this.#options
    const known = this.#keys
    const isKnown = known && (kid === undefined || known.ids.has(kid))
    const isWanted = !isKnown || KEYS_FRESH_MS <= now() - known.at
    if (isWanted && (this.#reading || this.#nextReading <= now())) {
      this.#reading ??= this.#read().finally(() => {
        this.#reading = undefined
      })
      await this.#reading
    }
    const keys = this.#keys
    if (keys && now() - keys.at < KEYS_STALE_MS) return keys
    throw new IssuerError(this.#failure)
  }

  async #read(): Promise<void> {
    const { issuer, get, now, onFailure } = this.#options
    try {
      const found = await get(new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`))
      if (found['issuer'] !== issuer)
        throw new Error(`the discovery document is that of ${JSON.stringify(found['issuer'])?.slice(0, 200)}`)
      const place = URL.parse(String(found['jwks_uri']))
      if (place?.protocol !== 'https:') throw new Error('expected jwks_uri to be an https URL')
      const keys = signingKeys(await get(place))
      const ids = new Set(keys.flatMap(({ kid }) => (kid === undefined ? [] : [kid])))
      this.#keys = { document: { ...found, issuer }, ids, find: createLocalJWKSet({ keys }), at: now() }
      this.#nextReading = now() + PAUSE_MS
    } catch (error) {
      this.#failure = (error as Error).message
      this.#nextReading = now() + PAUSE_AFTER_FAILURE_MS
      onFailure(error as Error)
    }
  }
}

/** Returns the public keys for signatures; others are left out. @throws Error */
function signingKeys(set: Readonly<Record<string, unknown>>): JWK[] {
  const { keys } = set as Partial<JSONWebKeySet>
  if (!Array.isArray(keys)) throw new Error('expected a set of keys (JWKS)')
  if (MAX_KEYS < keys.length) throw new Error(`expected at most ${MAX_KEYS} keys, got ${keys.length}`)
  return keys.filter(
    (key: unknown): key is JWK =>
      typeof key === 'object' &&
      key !== null &&
      ['RSA', 'EC', 'OKP'].includes(String((key as JWK).kty)) &&
      ((key as JWK).use ?? 'sig') === 'sig',
  )
}
