import { execFileSync } from 'node:child_process'
import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ssh2 from 'ssh2'

export interface KeyPair {
  /** Line of the .pub file. */
  line: string
  blob: Buffer
  /** The private key's file as written by ssh-keygen. */
  file: string
  /** Returns the signature field by this algorithm (RFC 4253 6.6); `hash` if it is not the algorithm's. */
  sign(data: Uint8Array, algorithm: string, hash?: string): Buffer
}

const HASHES: Readonly<Record<string, string | null>> = {
  'ssh-ed25519': null,
  'ecdsa-sha2-nistp256': 'sha256',
  'ecdsa-sha2-nistp384': 'sha384',
  'ecdsa-sha2-nistp521': 'sha512',
  'ssh-rsa': 'sha1',
  'rsa-sha2-256': 'sha256',
  'rsa-sha2-512': 'sha512',
}

const signer =
  (key: KeyObject): KeyPair['sign'] =>
  (data, algorithm, hash) => {
    const signature = sign(hash ?? HASHES[algorithm], data, { key, dsaEncoding: 'ieee-p1363' })
    const isEcdsa = algorithm.startsWith('ecdsa-')
    return Buffer.concat([sshString(algorithm), sshString(isEcdsa ? ecdsaOf(signature) : signature)])
  }

/** Encodes two numbers side by side as `mpint r`, `mpint s` (RFC 5656 3.1.2). */
export function ecdsaOf(signature: Buffer): Buffer {
  const half = signature.length / 2
  return Buffer.concat([mpint(signature.subarray(0, half)), mpint(signature.subarray(half))])
}

export function mpint(number: Buffer): Buffer {
  const first = number.findIndex((byte) => byte !== 0)
  const digits = first === -1 ? Buffer.alloc(0) : number.subarray(first)
  return sshString((digits[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.of(0), digits]) : digits)
}

/** Makes a key pair with OpenSSH's ssh-keygen. */
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
    sign: signer(createPrivateKey(key.getPrivatePEM())),
  }
}

/** Makes an RSA key of a size that ssh-keygen refuses. */
export function rsaKey(bits: number): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  const blob = rsaBlob(publicKey)
  return {
    line: `ssh-rsa ${blob.toString('base64')} small`,
    blob,
    file: '',
    sign: signer(privateKey),
  }
}

function rsaBlob(key: KeyObject): Buffer {
  const { n = '', e = '' } = key.export({ format: 'jwk' })
  return Buffer.concat([
    sshString('ssh-rsa'),
    mpint(Buffer.from(e, 'base64url')),
    mpint(Buffer.from(n, 'base64url')),
  ])
}

/** A FIDO token simulated with node:crypto (PROTOCOL.u2f, CTAP 2). */
export interface Token extends Omit<KeyPair, 'sign'> {
  /** Flags: 1 for user present, 4 for user verified. */
  sign(data: Uint8Array, options: { flags: number; counter?: number; application?: string }): Buffer
  /** Signs the bytes themselves under this name, as a real token never would. */
  signPlainly(data: Uint8Array, algorithm: string): Buffer
}

export function fidoKey(type: string): Token {
  const isEd25519 = type.includes('ed25519')
  const { publicKey, privateKey } = isEd25519
    ? generateKeyPairSync('ed25519')
    : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const bytes = (text: string) => Buffer.from(text, 'base64url')
  const fields = isEd25519
    ? [sshString(bytes(x))]
    : [sshString('nistp256'), sshString(Buffer.concat([Buffer.of(4), bytes(x), bytes(y)]))]
  const blob = Buffer.concat([sshString(type), ...fields, sshString('ssh:')])
  const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest()
  const raw = (data: Uint8Array): Buffer => {
    const signature = sign(isEd25519 ? null : 'sha256', data, { key: privateKey, dsaEncoding: 'ieee-p1363' })
    return sshString(isEd25519 ? signature : ecdsaOf(signature))
  }
  return {
    line: `${type} ${blob.toString('base64')} token`,
    blob,
    file: '',
    sign: (data, { flags, counter = 1, application = 'ssh:' }) => {
      const suffix = Buffer.alloc(5)
      suffix[0] = flags
      suffix.writeUInt32BE(counter, 1)
      const signed = Buffer.concat([sha256(application), suffix, sha256(data)])
      return Buffer.concat([sshString(type), raw(signed), suffix])
    },
    signPlainly: (data, algorithm) => Buffer.concat([sshString(algorithm), raw(data)]),
  }
}

export function sshString(value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value as string)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** Returns the data that a client signs (RFC 4252 7). */
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
