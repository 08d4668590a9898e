/**
 * Who may certify users' keys, and what has been revoked: from files that an administrator keeps. The authorities are
 * read once; the revocation list whenever it has changed, because a revocation must not wait for anybody.
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
  /** Public keys of authorities, one a line. */
  userCa: readonly string[]
  revokedKeys?: string
}

export type AuthorityFlaw = CertificateFlaw | 'revoked' | 'revocation_list'

/** What can become of a key after somebody has signed in with it. */
export type LaterFlaw = 'revoked' | 'certificate_authority' | 'certificate_validity'

export class Authorities {
  readonly #keys: readonly PublicKey[]
  readonly #revokedKeys: RevocationFile | undefined

  constructor(keys: readonly PublicKey[] = [], revokedKeys?: RevocationFile) {
    this.#keys = keys
    this.#revokedKeys = revokedKeys
  }

  /** Why this key does not let this user in, as far as authorities have a say; undefined: they have none against it. */
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
   * Why who has signed in with this key may not go on; undefined: they may. A revocation list that cannot be read lets
   * nobody in, but ends nothing: the file may be in the middle of being written. `now`: milliseconds since the epoch.
   */
  flawSince(offered: OfferedKey, now: number): LaterFlaw | undefined {
    try {
      if (this.#revokedKeys?.current().revokes(offered)) return 'revoked'
    } catch (error) {
      if (!(error instanceof RevocationListError)) throw error
    }
    const { certificate } = offered
    if (!certificate) return undefined
    if (!this.#keys.some(({ blob }) => blob.equals(certificate.authority.blob)))
      return 'certificate_authority'
    return isValidAt(certificate, now) ? undefined : 'certificate_validity'
  }

  /** What the certificate asks of the signature itself. */
  flawOfSignature(certificate: Certificate, signature: Signature): CertificateFlaw | undefined {
    return mustVerifyUser(certificate) && !signature.userVerified ? 'certificate_option' : undefined
  }
}

/** Reads the files. Throws, with the file's name, when one cannot be read or holds something else. */
export function openAuthorities({ userCa, revokedKeys }: AuthorityFiles): Authorities {
  const list = revokedKeys === undefined ? undefined : new RevocationFile(revokedKeys)
  list?.current()
  return new Authorities(userCa.flatMap(readAuthorities), list)
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

/** A revocation list in a file, read anew when the file is another than before. */
export class RevocationFile {
  readonly #file: string
  #stamp = ''
  #list: RevocationList | undefined
  /** Why there is none in the file of this stamp: anybody who offers a key would have it read again. */
  #fault: RevocationListError | undefined

  constructor(file: string) {
    this.#file = file
  }

  /** @throws RevocationListError when the file cannot be read, or is no list */
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
