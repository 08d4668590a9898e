/**
 * Checks and times the signatures, which come from another process: the recording process holds no signing
 * key.
 */
import { verify } from 'node:crypto'
import type { Header } from './format/header.ts'
import { publicKeyOf } from './format/signature.ts'

/** Returns the Ed25519 signature over the statement. */
export type Sign = (statement: Uint8Array) => Promise<Uint8Array>

/** Time limit for a signature. */
export const SIGN_MILLISECONDS = 5000

/**
 * Returns a signer that checks each signature against the header's key, so that no recording is left unsigned
 * unnoticed.
 */
export function proving(header: Header, sign: Sign): Sign {
  return async (statement) => {
    const signature = await sign(statement)
    if (verify(null, statement, publicKeyOf(header.publicKey), signature)) return signature
    throw new Error(`the signature is not by the key ${header.signingKey} that the recording's header names`)
  }
}

/** Returns a signer that fails after SIGN_MILLISECONDS. */
export function inTime(sign: Sign): Sign {
  return async (statement) => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      const error = new Error(`no signature for the recording's checkpoint within ${SIGN_MILLISECONDS} ms`)
      timer = setTimeout(() => reject(error), SIGN_MILLISECONDS)
    })
    try {
      return await Promise.race([sign(statement), late])
    } finally {
      clearTimeout(timer)
    }
  }
}
