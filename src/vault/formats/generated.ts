/** A private key that was generated, as OpenSSH's files have it. */
import type { KeyObject } from 'node:crypto'
import { partsOf, partsOfKey } from './parts.ts'
import { writeKey } from './write.ts'

/** Returns the file of the private key, and the line of authorized_keys. */
export function generatedKey(key: KeyObject, comment: string): { privateKey: string; publicKey: string } {
  const parts = partsOfKey(key, comment)
  return {
    privateKey: writeKey(parts, 'openssh', undefined),
    publicKey: `${parts.type} ${parts.blob.toString('base64')} ${comment}`,
  }
}

/** Returns the line of authorized_keys for a private key in OpenSSH or PEM form. @throws Error if it is none */
export function publicLine(file: string, passphrase: string | undefined): string {
  const { type, blob, comment } = partsOf(file, passphrase)
  return `${type} ${blob.toString('base64')} ${comment.replaceAll(/[^!-~]/g, '') || 'sallyport'}`
}
