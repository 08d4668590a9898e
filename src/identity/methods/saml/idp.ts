/**
 * Metadata of an identity provider, as they are configured or read from its URL: read anew when they are old, or when a message
 * is signed by none of their certificates, and not more often than the pauses allow.
 */
import type { SamlOptions } from '../../../model/external-auths.ts'
import { certificatesOf } from './certificates.ts'
import { type IdpMetadata, readMetadata } from './metadata.ts'
import { decodeUtf8 } from './xml.ts'

/** Milliseconds after which metadata are read anew: a certificate that was withdrawn counts no longer. */
export const METADATA_FRESH_MS = 60 * 60_000
/** Milliseconds for which they stay in use while their URL cannot be read. */
export const METADATA_STALE_MS = 24 * 60 * 60_000
/** Milliseconds between two readings, so that messages by made-up keys cause no more. */
export const PAUSE_MS = 30_000

/** An identity provider whose metadata cannot be had. */
export class IdpError extends Error {
  override name = 'IdpError'
}

export interface IdpOptions {
  options: Pick<SamlOptions, 'idp' | 'binding' | 'metadataCertificates'>
  get: (url: URL) => Promise<Uint8Array>
  /** Milliseconds since the epoch. */
  now: () => number
  onFailure: (error: Error) => void
}

export class Idp {
  readonly #options: IdpOptions
  #known: { metadata: IdpMetadata; at: number } | undefined
  #reading: Promise<void> | undefined
  #nextReading = Number.NEGATIVE_INFINITY
  #failure = 'not asked yet'

  constructor(options: IdpOptions) {
    this.#options = options
  }

  /** `isWanted`: whether they are read anew, if the pause allows. @throws IdpError */
  async metadata(isWanted = false): Promise<IdpMetadata> {
    const { now } = this.#options
    const known = this.#known
    const isOld = !known || this.#age(known.at) >= METADATA_FRESH_MS
    const isPaused = now() < this.#nextReading && this.#nextReading <= now() + PAUSE_MS
    if ((isOld || isWanted) && (this.#reading || !isPaused)) {
      this.#reading ??= this.#read().finally(() => {
        this.#reading = undefined
      })
      await this.#reading
    }
    const kept = this.#known
    const isValid = kept && now() < (kept.metadata.validUntil ?? Number.POSITIVE_INFINITY)
    if (kept && isValid && this.#age(kept.at) < METADATA_STALE_MS) return kept.metadata
    throw new IdpError(kept && !isValid ? 'its metadata are not valid any more' : this.#failure)
  }

  /** A clock that was set back makes them old. */
  #age(at: number): number {
    const age = this.#options.now() - at
    return age < 0 ? Number.POSITIVE_INFINITY : age
  }

  async #read(): Promise<void> {
    const { now, onFailure } = this.#options
    this.#nextReading = now() + PAUSE_MS
    try {
      this.#known = { metadata: await this.#found(), at: now() }
    } catch (error) {
      this.#failure = (error as Error).message
      onFailure(error as Error)
    }
  }

  async #found(): Promise<IdpMetadata> {
    const { get, now, options } = this.#options
    const { binding, idp, metadataCertificates } = options
    if ('entityId' in idp) {
      const { entityId, ssoUrl, sloUrl, certificates } = idp
      return {
        entityId,
        certificates: certificatesOf(certificates),
        signIn: { binding, url: ssoUrl },
        ...(sloUrl !== undefined && { signOut: { binding: 'redirect', url: sloUrl } }),
      }
    }
    const text = 'metadata' in idp ? idp.metadata : decodeUtf8(await get(new URL(idp.metadataUrl)))
    const signers = metadataCertificates === undefined ? [] : certificatesOf(metadataCertificates)
    return await readMetadata(text, { binding, signers, now: now() })
  }
}
