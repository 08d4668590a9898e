import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ssh2 from 'ssh2'

export interface KeyPair {
  /** The line of the .pub file. */
  line: string
  blob: Buffer
  /** The private key's file, as ssh-keygen wrote it. */
  file: string
  /** Signs as an SSH library hands it on: without the algorithm's name, ECDSA in DER. */
  sign(data: Uint8Array, hash: string | null): Uint8Array
}

/** A key pair made by OpenSSH's ssh-keygen. */
export function opensshKey(type: string, bits?: number, passphrase = ''): KeyPair {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-key-'))
  const path = join(folder, 'key')
  const size = bits === undefined ? [] : ['-b', String(bits)]
  execFileSync('ssh-keygen', ['-q', '-t', type, ...size, '-N', passphrase, '-C', 'test key', '-f', path])
  const file = readFileSync(path, 'utf8')
  const line = readFileSync(`${path}.pub`, 'utf8').trim()
  rmSync(folder, { recursive: true })
  const key = ssh2.utils.parseKey(file, passphrase)
  if (key instanceof Error) throw key
  return {
    line,
    blob: Buffer.from(line.split(' ')[1]!, 'base64'),
    file,
    sign: (data, hash) => sign(hash, data, key.getPrivatePEM()),
  }
}

/** An RSA key of a size that ssh-keygen refuses to make. */
export function rsaKey(bits: number): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  const blob = rsaBlob(publicKey)
  return {
    line: `ssh-rsa ${blob.toString('base64')} small`,
    blob,
    file: '',
    sign: (data, hash) => sign(hash, data, privateKey),
  }
}

function rsaBlob(key: KeyObject): Buffer {
  const { n = '', e = '' } = key.export({ format: 'jwk' })
  const mpint = (text: string) => Buffer.concat([Buffer.of(0), Buffer.from(text, 'base64url')])
  return Buffer.concat([sshString('ssh-rsa'), sshString(Buffer.from(e, 'base64url')), sshString(mpint(n))])
}

export function sshString(value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value as string)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** What a client signs: RFC 4252 7. */
export function signedData(
  login: string,
  algorithm: string,
  blob: Uint8Array,
  more: { method?: string; flag?: number } = {},
): Buffer {
  return Buffer.concat([
    sshString(randomBytes(32)),
    Buffer.of(50),
    sshString(login),
    sshString('ssh-connection'),
    sshString(more.method ?? 'publickey'),
    Buffer.of(more.flag ?? 1),
    sshString(algorithm),
    sshString(blob),
  ])
}
