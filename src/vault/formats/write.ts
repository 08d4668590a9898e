/** Files of private keys: OpenSSH's (PROTOCOL.key), PKCS#8 (RFC 5958), PuTTY's version 3. */
import { Buffer } from 'node:buffer'
import { argon2Sync, createCipheriv, createHmac, randomBytes } from 'node:crypto'
import bcrypt from 'bcrypt-pbkdf'
import { string, uint32 } from '../wire.ts'
import type { KeyParts } from './parts.ts'

export const KEY_FORMATS = ['openssh', 'pkcs8', 'putty'] as const
export type KeyFormat = (typeof KEY_FORMATS)[number]

/** As ssh-keygen has it. */
const BCRYPT_ROUNDS = 16
/** As puttygen has it; KiB. */
const ARGON2 = { memory: 8192, passes: 13, parallelism: 1 }
/** Of AES. */
const BLOCK = 16

/** Writes the key's file, encrypted with a passphrase if there is one. Deriving the cipher's key takes up to a second. */
export function writeKey(parts: KeyParts, format: KeyFormat, passphrase: string | undefined): string {
  switch (format) {
    case 'openssh':
      return openssh(parts, passphrase)
    case 'pkcs8':
      return String(
        parts.key.export({
          type: 'pkcs8',
          format: 'pem',
          ...(passphrase !== undefined && { cipher: 'aes-256-cbc', passphrase }),
        }),
      )
    case 'putty':
      return putty(parts, passphrase)
  }
}

function openssh({ type, blob, openssh: fields, comment }: KeyParts, passphrase: string | undefined): string {
  // Repeated, so that a reader can tell a wrong passphrase.
  const check = randomBytes(4)
  const plain = Buffer.concat([check, check, string(type), fields, string(comment)])
  const block = passphrase === undefined ? 8 : BLOCK
  const missing = -plain.length & (block - 1)
  const padded = Buffer.concat([
    plain,
    Buffer.of(...Array.from({ length: missing }, (_, index) => index + 1)),
  ])
  const { names, options, body } =
    passphrase === undefined
      ? { names: ['none', 'none'], options: Buffer.alloc(0), body: padded }
      : encryptedForOpenssh(padded, passphrase)
  const whole = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    ...names.map((name) => string(name)),
    string(options),
    uint32(1),
    string(blob),
    string(body),
  ])
  const lines = linesOf(whole, 70).join('\n')
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines}\n-----END OPENSSH PRIVATE KEY-----\n`
}

function encryptedForOpenssh(padded: Buffer, passphrase: string) {
  const salt = randomBytes(16)
  const words = Buffer.from(passphrase)
  const derived = Buffer.alloc(48)
  bcrypt.pbkdf(words, words.length, salt, salt.length, derived, derived.length, BCRYPT_ROUNDS)
  const cipher = createCipheriv('aes-256-ctr', derived.subarray(0, 32), derived.subarray(32))
  return {
    names: ['aes256-ctr', 'bcrypt'],
    options: Buffer.concat([string(salt), uint32(BCRYPT_ROUNDS)]),
    body: Buffer.concat([cipher.update(padded), cipher.final()]),
  }
}

function putty({ type, blob, putty: fields, comment }: KeyParts, passphrase: string | undefined): string {
  // The comment is a line of its own.
  const note = comment.replace(/[\p{Cc}]/gu, ' ')
  const encryption = passphrase === undefined ? 'none' : 'aes256-cbc'
  const padding = passphrase === undefined ? 0 : -fields.length & (BLOCK - 1)
  const plain = Buffer.concat([fields, randomBytes(padding)])
  const salt = randomBytes(16)
  const derived =
    passphrase === undefined
      ? Buffer.alloc(80)
      : argon2Sync('argon2id', { ...ARGON2, message: passphrase, nonce: salt, tagLength: 80 })
  const cipher = createCipheriv('aes-256-cbc', derived.subarray(0, 32), derived.subarray(32, 48))
  cipher.setAutoPadding(false)
  const body = passphrase === undefined ? plain : Buffer.concat([cipher.update(plain), cipher.final()])
  const macKey = passphrase === undefined ? Buffer.alloc(0) : derived.subarray(48)
  const mac = createHmac('sha256', macKey)
  for (const part of [type, encryption, note, blob, plain]) mac.update(string(part))
  const [shown, hidden] = [linesOf(blob, 64), linesOf(body, 64)]
  return `${[
    `PuTTY-User-Key-File-3: ${type}`,
    `Encryption: ${encryption}`,
    `Comment: ${note}`,
    `Public-Lines: ${shown.length}`,
    ...shown,
    ...(passphrase === undefined
      ? []
      : [
          'Key-Derivation: Argon2id',
          `Argon2-Memory: ${ARGON2.memory}`,
          `Argon2-Passes: ${ARGON2.passes}`,
          `Argon2-Parallelism: ${ARGON2.parallelism}`,
          `Argon2-Salt: ${salt.toString('hex')}`,
        ]),
    `Private-Lines: ${hidden.length}`,
    ...hidden,
    `Private-MAC: ${mac.digest('hex')}`,
  ].join('\n')}\n`
}

const linesOf = (bytes: Buffer, width: number): string[] =>
  bytes.toString('base64').match(new RegExp(`.{1,${width}}`, 'g')) ?? []
