/**
 * RA2 and RA2_256 (RealVNC's types 5 and 129): both sides show an RSA key, send each other a random number
 * under it, and continue in frames of AES-EAX (frames.ts), for the sign-in and everything after it. Community
 * specification, "RSA-AES Security Type".
 */
import { Buffer } from 'node:buffer'
import {
  constants,
  createHash,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  privateDecrypt,
  publicEncrypt,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { promisify } from 'node:util'
import { MalformedError } from '../../bytes/malformed.ts'
import {
  bounded,
  type Channel,
  type ClientChannel,
  readUint8,
  readUint16,
  readUint32,
  uint16,
  uint32,
} from './channel.ts'
import { textOf, type UserPassword } from './credentials.ts'
import { FrameOpener, FrameSealer } from './frames.ts'

/** Bytes of each side's random number. */
const RANDOM = 16
const MIN_BITS = 1024
const MAX_BITS = 8192
/** Bits of the bastion's own keys toward targets: each is used once. */
const OWN_BITS = 2048
/** Bytes of a field, whose length has one byte. */
const MAX_FIELD = 255

/** The credential that the client has to send. */
const ASKS = { USER_AND_PASSWORD: 1, PASSWORD: 2 } as const

/** The variant: its hash function, and how much of a hash is the key. */
export interface RsaAesKind {
  hash: 'sha1' | 'sha256'
  keyBytes: 16 | 32
}

export const RA2_KIND: RsaAesKind = { hash: 'sha1', keyBytes: 16 }
export const RA2_256_KIND: RsaAesKind = { hash: 'sha256', keyBytes: 32 }

/** The server's side; everything after it is in frames. `privateKey` is an RSA key. Throws MalformedError. */
export async function receiveRsaAes(
  channel: Channel,
  kind: RsaAesKind,
  privateKey: KeyObject,
): Promise<UserPassword> {
  const own = shownKey(createPublicKey(privateKey))
  channel.write(own)
  const theirs = await readKey(channel)
  const random = randomBytes(RANDOM)
  channel.write(sealedRandom(random, theirs.key))
  const theirRandom = await readRandom(channel, own, privateKey)
  channel.startFrames(
    new FrameSealer(sessionKey(kind, theirRandom, random)),
    new FrameOpener(sessionKey(kind, random, theirRandom)),
  )
  channel.write(hashOf(kind, own, theirs.shown))
  await checkHash(channel, hashOf(kind, theirs.shown, own))
  channel.write(Buffer.from([ASKS.USER_AND_PASSWORD]))
  const user = textOf(await channel.read(await readUint8(channel)))
  return { user, password: textOf(await channel.read(await readUint8(channel))) }
}

export interface RsaAesClientOptions {
  kind: RsaAesKind
  /** Rejects to refuse the server's key (SPKI, DER). */
  judge: (key: Uint8Array) => Promise<void>
  /** Returns the credential to send; throws if it is not the one that the server requests. */
  credential: (needs: { user: boolean }) => UserPassword
}

/** The client's side; everything after it is in frames. Throws MalformedError. */
export async function sendRsaAes(
  channel: ClientChannel,
  { kind, judge, credential }: RsaAesClientOptions,
): Promise<void> {
  const theirs = await readKey(channel)
  await judge(theirs.key.export({ type: 'spki', format: 'der' }))
  const { privateKey, publicKey } = await promisify(generateKeyPair)('rsa', { modulusLength: OWN_BITS })
  const own = shownKey(publicKey)
  const random = randomBytes(RANDOM)
  channel.write(Buffer.concat([own, sealedRandom(random, theirs.key)]))
  const theirRandom = await readRandom(channel, own, privateKey)
  channel.startFrames(
    new FrameSealer(sessionKey(kind, theirRandom, random)),
    new FrameOpener(sessionKey(kind, random, theirRandom)),
  )
  channel.write(hashOf(kind, own, theirs.shown))
  await checkHash(channel, hashOf(kind, theirs.shown, own))
  const asks = await readUint8(channel)
  if (asks !== ASKS.USER_AND_PASSWORD && asks !== ASKS.PASSWORD) {
    throw new MalformedError(`vnc: RA2's sub-type 1 or 2 was expected, found ${asks}`)
  }
  const { user, password } = credential({ user: asks === ASKS.USER_AND_PASSWORD })
  const fields = [asks === ASKS.PASSWORD ? '' : user, password].map((text) => {
    const bytes = Buffer.from(text, 'utf8')
    bounded(bytes.length, MAX_FIELD, 'a length of a field')
    return Buffer.concat([Buffer.from([bytes.length]), bytes])
  })
  channel.write(Buffer.concat(fields))
}

interface TheirKey {
  /** The wire form: bits, modulus, exponent. */
  shown: Buffer
  key: KeyObject
}

async function readKey(channel: Channel): Promise<TheirKey> {
  const bits = await readUint32(channel)
  if (bits < MIN_BITS || MAX_BITS < bits) {
    throw new MalformedError(`vnc: an RSA key of ${MIN_BITS} to ${MAX_BITS} bits was expected, found ${bits}`)
  }
  const size = Math.ceil(bits / 8)
  const [modulus, exponent] = [await channel.read(size), await channel.read(size)]
  const key = keyOf(modulus, exponent)
  const length = key?.asymmetricKeyDetails?.modulusLength
  if (!key || length === undefined || length < MIN_BITS || Math.ceil(length / 8) !== size) {
    throw new MalformedError(`vnc: an RSA key of ${bits} bits was expected, found numbers that are none`)
  }
  return { shown: Buffer.concat([uint32(bits), modulus, exponent]), key }
}

function keyOf(modulus: Buffer, exponent: Buffer): KeyObject | undefined {
  const [n, e] = [modulus.toString('base64url'), exponent.toString('base64url')]
  try {
    return createPublicKey({ key: { kty: 'RSA', n, e }, format: 'jwk' })
  } catch {
    return undefined
  }
}

/** Returns the wire form: bits, and modulus and exponent in fields of equal size. */
function shownKey(key: KeyObject): Buffer {
  const { n = '', e = '' } = key.export({ format: 'jwk' })
  const [modulus, exponent] = [Buffer.from(n, 'base64url'), Buffer.from(e, 'base64url')]
  const bits = key.asymmetricKeyDetails?.modulusLength ?? modulus.length * 8
  return Buffer.concat([uint32(bits), modulus, Buffer.alloc(modulus.length - exponent.length), exponent])
}

function sealedRandom(random: Buffer, key: KeyObject): Buffer {
  try {
    const sealed = publicEncrypt({ key, padding: constants.RSA_PKCS1_PADDING }, random)
    return Buffer.concat([uint16(sealed.length), sealed])
  } catch {
    throw new MalformedError('vnc: an RSA key was expected, found one that encrypts nothing')
  }
}

/** `own`: the wire form of the key that it was encrypted for. */
async function readRandom(channel: Channel, own: Buffer, privateKey: KeyObject): Promise<Buffer> {
  const size = (own.length - 4) / 2
  const length = await readUint16(channel)
  if (length !== size) {
    throw new MalformedError(`vnc: an encrypted number of ${size} bytes was expected, found ${length}`)
  }
  const sealed = await channel.read(size)
  try {
    return privateDecrypt({ key: privateKey, padding: constants.RSA_PKCS1_PADDING }, sealed)
  } catch {
    // An invalid ciphertext is not reported: the first frame fails instead.
    return randomBytes(RANDOM)
  }
}

function sessionKey({ hash, keyBytes }: RsaAesKind, first: Buffer, second: Buffer): Buffer {
  return createHash(hash).update(first).update(second).digest().subarray(0, keyBytes)
}

function hashOf({ hash }: RsaAesKind, first: Buffer, second: Buffer): Buffer {
  return createHash(hash).update(first).update(second).digest()
}

async function checkHash(channel: Channel, expected: Buffer): Promise<void> {
  if (!timingSafeEqual(await channel.read(expected.length), expected)) {
    throw new MalformedError('vnc: the hash of both RSA keys was expected, found another')
  }
}
