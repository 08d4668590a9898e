/**
 * Authorities for users' certificates, and revoked keys, from files that an administrator maintains.
 * Authorities are read once; the revocation list is read again whenever its file changes, because a
 * revocation must take effect at once.
 */
import { readFileSync, statSync } from 'node:fs'
import { flawOfCertificate, isValidAt, type OfferedKey } from './certificate.ts'
import { mustVerifyUser } from './certificate-options.ts'
import type { Certificate, CertificateFlaw } from './certificate-parts.ts'
import { type PublicKey, PublicKeyError, parseAuthorizedKey } from './public-key.ts'
import {
  MAX_LIST_BYTES,
  parseRevocationList,
  type RevocationList,
  RevocationListError,
} from './revocation.ts'
import type { Signature } from './signature.ts'

const MAX_AUTHORITIES = 256
const MAX_FILE = 1024 * 1024

export interface AuthorityFiles {
  /** Public keys of authorities, one per line. */
  userCa: readonly string[]
  revokedKeys?: string
}

export type AuthorityFlaw = CertificateFlaw | 'revoked' | 'revocation_list'

/** Reasons for which a key may become invalid after a sign-in. */
export type LaterFlaw = 'revoked' | 'certificate_authority' | 'certificate_validity'

export class Authorities {
  readonly #keys: readonly PublicKey[]
  readonly #revokedKeys: RevocationFile | undefined
  readonly #own: PublicKey | undefined

  /** `own`: the bastion's own authority, whose certificates are worth nothing without their rows in the store. */
  constructor(keys: readonly PublicKey[] = [], revokedKeys?: RevocationFile, own?: PublicKey) {
    this.#keys = own ? [...keys, own] : keys
    this.#revokedKeys = revokedKeys
    this.#own = own
  }

  /** Whether the certificate names the bastion's own authority; `flawOf` checks its signature. */
  isOwn({ authority }: Pick<Certificate, 'authority'>): boolean {
    return this.#own?.blob.equals(authority.blob) === true
  }

  /**
   * Returns why this key is refused for this user, or undefined if neither the authorities nor the list
   * object.
   */
  flawOf(offered: OfferedKey, use: { user: string; source: string; now: number }): AuthorityFlaw | undefined {
    try {
      if (this.#revokedKeys?.current().revokes(offered)) return 'revoked'
    } catch (error) {
      if (!(error instanceof RevocationListError)) throw error
      return 'revocation_list'
    }
    const { certificate } = offered
    return certificate && flawOfCertificate(certificate, { ...use, authorities: this.#keys })
  }

  /**
   * Returns why a sign-in with this key may not continue, or undefined if it may. An unreadable revocation
   * list refuses new sign-ins but ends none: the file may be in the middle of a write. `now`: milliseconds
   * since the epoch.
   */
  flawSince(offered: OfferedKey, now: number): LaterFlaw | undefined {
    if (this.revoked?.revokes(offered)) return 'revoked'
    const { certificate } = offered
    if (!certificate) return undefined
    if (!this.#keys.some(({ blob }) => blob.equals(certificate.authority.blob)))
      return 'certificate_authority'
    return isValidAt(certificate, now) ? undefined : 'certificate_validity'
  }

  /**
   * Returns the revocation list in force: another object after each change of its file. Undefined if there is none,
   * or the file cannot be used now.
   */
  get revoked(): RevocationList | undefined {
    try {
      return this.#revokedKeys?.current()
    } catch (error) {
      if (!(error instanceof RevocationListError)) throw error
      return undefined
    }
  }

  /** Checks what the certificate requires of the signature itself. */
  flawOfSignature(certificate: Certificate, signature: Signature): CertificateFlaw | undefined {
    return mustVerifyUser(certificate) && !signature.userVerified ? 'certificate_option' : undefined
  }
}

/** Reads the files. @throws Error with the file's name if one is unreadable or malformed */
export function openAuthorities({ userCa, revokedKeys }: AuthorityFiles, own?: PublicKey): Authorities {
  const list = revokedKeys === undefined ? undefined : new RevocationFile(revokedKeys)
  list?.current()
  return new Authorities(userCa.flatMap(readAuthorities), list, own)
}

function readAuthorities(file: string): PublicKey[] {
  const lines = readBounded(file, MAX_FILE)
    .toString('utf8')
    .split(/\r?\n/)
    .filter((line) => !/^\s*(#|$)/.test(line))
  if (lines.length === 0 || MAX_AUTHORITIES < lines.length) {
    throw new Error(
      `${file} holds ${lines.length} keys: expected 1 to ${MAX_AUTHORITIES} public keys, one a line`,
    )
  }
  return lines.map((line) => {
    try {
      return parseAuthorizedKey(line)
    } catch (error) {
      if (!(error instanceof PublicKeyError)) throw error
      throw new Error(`${file} holds a line that is no public key: ${error.message}`)
    }
  })
}

function readBounded(file: string, limit: number): Buffer {
  const { size } = statSync(file)
  if (limit < size) throw new Error(`${file} has ${size} bytes: expected at most ${limit}`)
  return readFileSync(file)
}

/** A revocation list in a file, read again if the file has changed. */
export class RevocationFile {
  readonly #file: string
  #stamp = ''
  #list: RevocationList | undefined
  /** Error for the file of this stamp, kept so that not every offered key causes another read. */
  #fault: RevocationListError | undefined

  constructor(file: string) {
    this.#file = file
  }

  /** @throws RevocationListError if the file is unreadable or no list */
  current(): RevocationList {
    try {
      const { mtimeNs, size, ino } = statSync(this.#file, { bigint: true })
      const stamp = `${ino} ${size} ${mtimeNs}`
      if (stamp === this.#stamp) {
        if (this.#list) return this.#list
        if (this.#fault) throw this.#fault
      }
      this.#list = undefined
      this.#fault = undefined
      const bytes = readBounded(this.#file, MAX_LIST_BYTES)
      this.#stamp = stamp
      this.#list = this.#parsed(bytes)
      return this.#list
    } catch (error) {
      if (error === this.#fault) throw error
      throw new RevocationListError(`${this.#file}: ${(error as Error).message}`)
    }
  }

  #parsed(bytes: Buffer): RevocationList {
    try {
      return parseRevocationList(bytes)
    } catch (error) {
      this.#fault = new RevocationListError(`${this.#file}: ${(error as Error).message}`)
      throw this.#fault
    }
  }
}
