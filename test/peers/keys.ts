/** SSH keys of ssh-keygen, so that the formats are OpenSSH's own. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './process.ts'
import { findProgram } from './program.ts'

export type KeyType = 'ed25519' | 'ecdsa' | 'rsa'

export interface SshKey {
  /** The private key's file, mode 0600; the public one is beside it with the suffix `.pub`. */
  path: string
  /** The private key's text, in OpenSSH's format unless `format` is set. */
  privateKey: string
  /** `ssh-ed25519 AAAA… comment` */
  publicKey: string
  /** `SHA256:` and base64 without padding. */
  fingerprint: string
}

export interface KeyOptions {
  type?: KeyType
  passphrase?: string
  comment?: string
  /** `PEM` or `PKCS8` instead of OpenSSH's own format. */
  format?: 'PEM' | 'PKCS8'
}

/** Makes a key pair in `folder` under a unique name. */
export async function generateKey(folder: string, options: KeyOptions = {}): Promise<SshKey> {
  const type = options.type ?? 'ed25519'
  const path = join(folder, `id_${type}_${randomBytes(4).toString('hex')}`)
  const args = ['-q', '-t', type, '-N', options.passphrase ?? '', '-C', options.comment ?? 'peer', '-f', path]
  if (type === 'rsa') args.push('-b', '2048')
  if (options.format) args.push('-m', options.format)
  const keygen = findProgram('ssh-keygen')
  const made = await run(keygen, args)
  if (made.code !== 0) throw new Error(`ssh-keygen: ${made.stderr}`)
  const shown = await run(keygen, ['-l', '-E', 'sha256', '-f', `${path}.pub`])
  return {
    path,
    privateKey: readFileSync(path, 'utf8'),
    publicKey: readFileSync(`${path}.pub`, 'utf8').trim(),
    fingerprint: shown.stdout.split(' ')[1] ?? '',
  }
}
