/**
 * Announces the bastion's host keys to clients, and proves them (OpenSSH's PROTOCOL, 2.5:
 * hostkeys-00@openssh.com and hostkeys-prove-00@openssh.com), so that a client with UpdateHostKeys learns a
 * key before it is used.
 */
import { Buffer } from 'node:buffer'
import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import ssh2 from 'ssh2'
import { MalformedError } from '../../bytes/malformed.ts'
import { buildGlobalRequest, buildRequestFailure, buildRequestSuccess } from '../codec/build.ts'
import type { GlobalRequest } from '../codec/messages.ts'
import { Reader } from '../codec/reader.ts'
import { Writer } from '../codec/writer.ts'

const ANNOUNCE = 'hostkeys-00@openssh.com'
const PROVE = 'hostkeys-prove-00@openssh.com'

/** Signature algorithm → hash. */
const HASHES: Readonly<Record<string, string | null>> = {
  'ssh-ed25519': null,
  'ecdsa-sha2-nistp256': 'sha256',
  'ecdsa-sha2-nistp384': 'sha384',
  'ecdsa-sha2-nistp521': 'sha512',
  'rsa-sha2-256': 'sha256',
  'rsa-sha2-512': 'sha512',
}

export interface HostKey {
  type: string
  blob: Buffer
  key: KeyObject
}

/** Reads private keys in OpenSSH's PEM form. Throws if one cannot be read. */
export function readHostKeys(texts: readonly string[]): HostKey[] {
  return texts.map((text) => {
    const parsed = ssh2.utils.parseKey(text)
    if (parsed instanceof Error) throw new Error(`a host key cannot be read: ${parsed.message}`)
    return {
      type: parsed.type,
      blob: parsed.getPublicSSH(),
      key: createPrivateKey(parsed.getPrivatePEM()),
    }
  })
}

/** Builds the announcement for a client that has signed in. */
export function announcementOf(keys: readonly HostKey[]): Buffer {
  const writer = new Writer(1024)
  for (const { blob } of keys) writer.string(blob)
  return buildGlobalRequest({ name: ANNOUNCE, wantReply: false, data: writer.finish() })
}

/**
 * Returns the handler of one connection's request for proof. It returns undefined for other requests, and
 * serves only one, since each key costs a signature. `negotiated`: the host key algorithm of the key
 * exchange, which an RSA key keeps to.
 */
export function prover(
  keys: readonly HostKey[],
  connection: () => { sessionId: Buffer; negotiated: string },
): (request: GlobalRequest) => Buffer | undefined {
  let isProven = false
  return ({ name, data }) => {
    if (name !== PROVE) return undefined
    const wanted = isProven ? undefined : wantedKeys(keys, data)
    if (!wanted) return buildRequestFailure()
    isProven = true
    const { sessionId, negotiated } = connection()
    const writer = new Writer(1024)
    for (const key of wanted) {
      const signed = new Writer(1024).string(PROVE).string(sessionId).string(key.blob).finish()
      writer.string(signatureBy(key, signed, negotiated))
    }
    return buildRequestSuccess(writer.finish())
  }
}

/** Returns the keys that the client names, or undefined if it names an unknown key, one twice, or none. */
function wantedKeys(keys: readonly HostKey[], data: Uint8Array): HostKey[] | undefined {
  const left = new Set(keys)
  const wanted: HostKey[] = []
  try {
    const reader = new Reader(data, PROVE)
    while (reader.remaining > 0) {
      const blob = Buffer.from(reader.string())
      const key = [...left].find((candidate) => candidate.blob.equals(blob))
      if (!key) return undefined
      left.delete(key)
      wanted.push(key)
    }
  } catch (error) {
    if (error instanceof MalformedError) return undefined
    throw error
  }
  return wanted.length > 0 ? wanted : undefined
}

/** `string` algorithm, `string` signature (RFC 4253 6.6). */
function signatureBy({ type, key }: HostKey, data: Buffer, negotiated: string): Buffer {
  // a certificate's algorithm name has a suffix
  const [rsa = 'rsa-sha2-512'] = /^rsa-sha2-(?:256|512)/.exec(negotiated) ?? []
  const algorithm = type === 'ssh-rsa' ? rsa : type
  const plain = sign(HASHES[algorithm], data, { key, dsaEncoding: 'ieee-p1363' })
  const signature = type.startsWith('ecdsa-') ? pairOf(plain) : plain
  return new Writer(512).string(algorithm).string(signature).finish()
}

/** Encodes `mpint r`, `mpint s` (RFC 5656 3.1.2) of two concatenated numbers. */
function pairOf(plain: Buffer): Buffer {
  const half = plain.length / 2
  const writer = new Writer()
  for (const number of [plain.subarray(0, half), plain.subarray(half)]) {
    const digits = number.subarray(number.findIndex((byte) => byte !== 0))
    const isHigh = ((digits[0] ?? 0) & 0x80) !== 0
    writer.string(isHigh ? Buffer.concat([Buffer.of(0), digits]) : digits)
  }
  return writer.finish()
}
