/** The arithmetic of NTLMv2 (MS-NLMP 3.3.2): a proof that the client knows a password, and its check. */
import { Buffer } from 'node:buffer'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { md4 } from './md4.ts'
import { windowsUpperCase } from './upper-case.ts'

/** Bytes of a proof. In a client's response the proven data follows it. */
export const PROOF_LENGTH = 16

/** A client's proof that it knows a password, and the data to check it. */
export interface NtlmProof {
  /** As the client wrote them: the proof covers them. */
  user: string
  domain: string
  /** Eight bytes that the server chose. */
  serverChallenge: Uint8Array
  /** The proof, and the data that it covers. */
  response: Uint8Array
}

export function hmacMd5(key: Uint8Array, ...parts: Uint8Array[]): Buffer {
  const hmac = createHmac('md5', key)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/**
 * Returns the NT hash of a password, 16 bytes. It is enough to log in, so it is as secret as the password.
 */
export function ntHash(password: string): Buffer {
  const bytes = Buffer.from(password, 'utf16le')
  const hash = md4(bytes)
  bytes.fill(0)
  return hash
}

/** NTOWFv2: returns the key of a user's proofs. */
export function responseKey(hash: Uint8Array, user: string, domain: string): Buffer {
  return hmacMd5(hash, Buffer.from(windowsUpperCase(user) + domain, 'utf16le'))
}

/** Makes a proof over `temp` (the client's challenge), and returns it with the session's base key. */
export function prove(
  key: Uint8Array,
  serverChallenge: Uint8Array,
  temp: Uint8Array,
): { response: Buffer; sessionBaseKey: Buffer } {
  const proof = hmacMd5(key, serverChallenge, temp)
  return { response: Buffer.concat([proof, temp]), sessionBaseKey: hmacMd5(key, proof) }
}

/** Checks a proof with the NT hash. Returns the session's base key, or undefined for a wrong proof. */
export function judgeProof(hash: Uint8Array, proof: NtlmProof): Buffer | undefined {
  if (proof.response.length < PROOF_LENGTH) return undefined
  const key = responseKey(hash, proof.user, proof.domain)
  const made = prove(key, proof.serverChallenge, proof.response.subarray(PROOF_LENGTH))
  key.fill(0)
  const isRight = timingSafeEqual(
    made.response.subarray(0, PROOF_LENGTH),
    proof.response.subarray(0, PROOF_LENGTH),
  )
  return isRight ? made.sessionBaseKey : undefined
}
