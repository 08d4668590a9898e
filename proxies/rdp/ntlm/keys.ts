/** What NTLMv2 computes from a password (MS-NLMP 3.3.2 and 3.4.5), and the check of a client's proof. */
import { Buffer } from 'node:buffer'
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { utf16Bytes } from '../codec/utf16.ts'
import { md4 } from './md4.ts'
import { windowsUpperCase } from './upper-case.ts'

/** Bytes of a proof; what it is made over follows it in a client's response. */
export const PROOF_LENGTH = 16

/** What a client has sent to prove that it knows a password, and all that takes to judge it. */
export interface NtlmProof {
  /** As the client wrote them; the proof is made over them. */
  user: string
  domain: string
  /** Eight bytes of ours. */
  serverChallenge: Uint8Array
  /** The proof, and what it was made over. */
  response: Uint8Array
}

export function hmacMd5(key: Uint8Array, ...parts: Uint8Array[]): Buffer {
  const hmac = createHmac('md5', key)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

function md5(...parts: Uint8Array[]): Buffer {
  const hash = createHash('md5')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** The NT hash of a password, 16 bytes: who has it can log in with it, so it is as secret as the password. */
export function ntHash(password: string): Buffer {
  const bytes = utf16Bytes(password)
  const hash = md4(bytes)
  bytes.fill(0)
  return hash
}

/** NTOWFv2: the key of a user's proofs. */
export function responseKey(hash: Uint8Array, user: string, domain: string): Buffer {
  return hmacMd5(hash, utf16Bytes(windowsUpperCase(user) + domain))
}

/** Makes a proof over `temp` (the client's challenge), and the session's base key that comes of it. */
export function prove(
  key: Uint8Array,
  serverChallenge: Uint8Array,
  temp: Uint8Array,
): { response: Buffer; sessionBaseKey: Buffer } {
  const proof = hmacMd5(key, serverChallenge, temp)
  return { response: Buffer.concat([proof, temp]), sessionBaseKey: hmacMd5(key, proof) }
}

/** Whoever keeps the NT hash judges by this: the session's base key, or undefined for a wrong proof. */
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

export type Direction = 'client-to-server' | 'server-to-client'

/** SIGNKEY and SEALKEY of one direction (3.4.5.2, 3.4.5.3), for 128 bits. */
export function directionKeys(sessionKey: Uint8Array, direction: Direction): { sign: Buffer; seal: Buffer } {
  const key = (purpose: string): Buffer =>
    md5(sessionKey, Buffer.from(`session key to ${direction} ${purpose} key magic constant\0`, 'latin1'))
  return { sign: key('signing'), seal: key('sealing') }
}

/**
 * MD5 of the channel bindings (3.1.1.2): a gss_channel_bindings_struct (RFC 2744 3.11) without addresses around
 * `tls-server-end-point:` and the certificate's hash (RFC 5929 4).
 */
export function channelBindingsHash(certificateHash: Uint8Array): Buffer {
  const data = Buffer.concat([Buffer.from('tls-server-end-point:', 'latin1'), certificateHash])
  const head = Buffer.alloc(20)
  head.writeUInt32LE(data.length, 16)
  return md5(head, data)
}

const EPOCH_MS = 11_644_473_600_000n
const TICKS_PER_MS = 10_000n

/** FILETIME: 100 ns since 1601, of milliseconds since 1970. */
export function fileTime(milliseconds: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE((BigInt(Math.trunc(milliseconds)) + EPOCH_MS) * TICKS_PER_MS)
  return bytes
}
