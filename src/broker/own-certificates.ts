/** Certificates for the front's host keys, from files that an administrator maintains. */
import { readFileSync, statSync } from 'node:fs'
import { isSigned, MAX_CERTIFICATE_BYTES, parseCertificate } from '../identity/certificate.ts'
import { PublicKeyError } from '../identity/public-key.ts'

/** A certificate in base64, with its type and a comment. */
const MAX_FILE = 2 * MAX_CERTIFICATE_BYTES
/** Days before its end at which `sallyport check` begins to warn. */
export const WARNING_DAYS = 30
const DAY_MS = 86_400_000

export interface OwnCertificate {
  file: string
  blob: Buffer
  /** The blob of the certified key. */
  key: Buffer
  /** Milliseconds since the epoch; valid from `validAfter` until before `validBefore`. */
  validAfter: number
  validBefore: number
}

/**
 * Reads the files. Throws, with the file's name, if one cannot be read, is not a valid host certificate for
 * one of these keys (`TYPE BASE64 COMMENT`), or is the second one for its key.
 */
export function openHostCertificates(
  files: readonly string[],
  publicKeys: readonly string[],
): OwnCertificate[] {
  const own = publicKeys.map((line) => Buffer.from(line.split(' ')[1] ?? '', 'base64'))
  const certificates = files.map((file) => readCertificate(file, own))
  for (const [index, { file, key }] of certificates.entries()) {
    const first = certificates.findIndex((one) => one.key.equals(key))
    if (first !== index) throw new Error(`${file} is about the same key as ${certificates[first]!.file}`)
  }
  return certificates
}

function readCertificate(file: string, own: readonly Buffer[]): OwnCertificate {
  const { size } = statSync(file)
  if (MAX_FILE < size) throw new Error(`${file} has ${size} bytes: expected at most ${MAX_FILE}`)
  const base64 = readFileSync(file, 'latin1').trim().split(/\s+/)[1] ?? ''
  const blob = Buffer.from(base64, 'base64')
  try {
    const certificate = parseCertificate(blob)
    const { key, isOfHost, principals, criticalOptions, validAfter, validBefore } = certificate
    if (!isOfHost) throw new PublicKeyError('it is not one of a host (ssh-keygen -h)')
    if (!isSigned(certificate)) throw new PublicKeyError('its authority has not signed it, or with SHA-1')
    if (principals.length === 0) throw new PublicKeyError('it names no host (ssh-keygen -n)')
    if (criticalOptions.size > 0) throw new PublicKeyError('it has a critical option, which clients refuse')
    if (!own.some((one) => one.equals(key.blob))) {
      throw new PublicKeyError('it is about none of the host keys (data_dir/ssh/*.pub)')
    }
    return {
      file,
      blob,
      key: key.blob,
      validAfter: Number(validAfter) * 1000,
      validBefore: Number(validBefore) * 1000,
    }
  } catch (error) {
    if (!(error instanceof PublicKeyError)) throw error
    throw new Error(`${file} is no host certificate of this bastion: ${error.message}`)
  }
}

/**
 * Returns whether clients may be shown the certificate, and a warning if needed; `now` in milliseconds since
 * the epoch.
 */
export function validityOf(
  { file, validAfter, validBefore }: OwnCertificate,
  now: number,
): { isValid: boolean; warning?: string } {
  if (now < validAfter) {
    return { isValid: false, warning: `${file} is valid from ${day(validAfter)} on, so it is not shown` }
  }
  if (validBefore <= now) {
    return { isValid: false, warning: `${file} was valid until ${day(validBefore)}, so it is not shown` }
  }
  if (validBefore - now < WARNING_DAYS * DAY_MS) {
    return { isValid: true, warning: `${file} is valid until ${day(validBefore)}: renew it` }
  }
  return { isValid: true }
}

/** Formats a day; a certificate may name a time beyond all dates. */
function day(time: number): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? 'the end of time' : date.toISOString()
}
