/** Pairs of ssh2's ciphers with random keys, as a key exchange makes them. */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import type { Ssh2Cipher, Ssh2Decipher } from '../../../../proxies/ssh/transport/ssh2.ts'

const require = createRequire(import.meta.url)

interface CipherInfo {
  keyLen: number
  ivLen: number
}

const crypto = require('ssh2/lib/protocol/crypto.js') as {
  CIPHER_INFO: Record<string, CipherInfo>
  MAC_INFO: Record<string, { len: number }>
  createCipher(config: object): Ssh2Cipher & Theirs
  createDecipher(config: object): Ssh2Decipher & { decrypt(data: Buffer, at: number, end: number): unknown }
}

interface Theirs {
  allocPacket(payload: number): Buffer
  encrypt(packet: Buffer): void
}

/** A cipher, and its MAC unless the cipher has a tag of its own. */
export type Suite = readonly [cipher: string, mac?: string]

export const SUITES: readonly Suite[] = [
  ['aes128-gcm@openssh.com'],
  ['aes256-gcm@openssh.com'],
  ['chacha20-poly1305@openssh.com'],
  ['aes128-ctr', 'hmac-sha2-256'],
  ['aes192-ctr', 'hmac-sha2-512'],
  ['aes256-ctr', 'hmac-sha2-256-etm@openssh.com'],
  ['aes128-ctr', 'hmac-sha2-512-etm@openssh.com'],
  ['aes128-ctr', 'hmac-sha1'],
  ['aes256-ctr', 'hmac-sha1-96'],
]
/** Its length is in a whole block, which ssh2 has to decrypt. */
export const BLOCKS: Suite = ['aes128-cbc', 'hmac-sha1']

export interface Pair {
  cipher: Ssh2Cipher
  decipher: Ssh2Decipher
  /** Encrypts by ssh2 itself. */
  seal(payload: Uint8Array): Buffer
  /** Decrypts whole packets by ssh2 itself. */
  open(bytes: Uint8Array): Buffer[]
}

/** `sequence`: the number of the first packet. */
export function pairOf([cipherName, macName]: Suite, sequence = 0): Pair {
  const info = crypto.CIPHER_INFO[cipherName]!
  const macInfo = macName === undefined ? undefined : crypto.MAC_INFO[macName]!
  const key = randomBytes(info.keyLen)
  const iv = randomBytes(info.ivLen)
  const macKey = macInfo && randomBytes(macInfo.len)
  let sent: Buffer[] = []
  let received: Buffer[] = []
  const cipher = crypto.createCipher({
    outbound: {
      onWrite: (bytes: Uint8Array) => sent.push(Buffer.from(bytes)),
      seqno: sequence,
      cipherInfo: info,
      cipherKey: Buffer.from(key),
      cipherIV: Buffer.from(iv),
      macInfo,
      macKey,
    },
  })
  const decipher = crypto.createDecipher({
    inbound: {
      onPayload: (payload: Buffer) => void received.push(Buffer.from(payload)),
      seqno: sequence,
      decipherInfo: info,
      decipherKey: Buffer.from(key),
      decipherIV: Buffer.from(iv),
      macInfo,
      macKey,
    },
  })
  return {
    cipher,
    decipher,
    seal(payload) {
      sent = []
      const packet = cipher.allocPacket(payload.length)
      packet.set(payload, 5)
      cipher.encrypt(packet)
      return Buffer.concat(sent)
    },
    open(bytes) {
      received = []
      const copy = Buffer.from(bytes)
      decipher.decrypt(copy, 0, copy.length)
      return received
    },
  }
}
