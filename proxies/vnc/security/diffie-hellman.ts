/**
 * User name and password under a Diffie-Hellman key: Apple's type 30 (128-bit AES in ECB under the MD5 of the
 * secret), and UltraVNC's MSLogonII (DES under a secret of 64 bits, which any eavesdropper can compute). In
 * both, everything after the sign-in is in clear text.
 */
import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, createHash, getDiffieHellman, randomBytes } from 'node:crypto'
import { vncDesKey } from '../../../src/model/vnc-auth.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { type Channel, readUint16, uint16 } from './channel.ts'
import { fieldOf, textOfField, type UserPassword } from './credentials.ts'

/** Bytes of each of Apple's two fields. */
const APPLE_FIELD = 64
/** Bytes of a target's prime: below 1024 bits it protects nothing, above 4096 it takes long. */
const MIN_PRIME = 128
const MAX_PRIME = 512
/** Bytes of the bastion's exponent: twice the strength of any of these groups. */
const EXPONENT = 64
/** MSLogonII: bytes of its numbers, of the user name and of the password. */
const MS_NUMBER = 8
const MS_USER = 256
const MS_PASSWORD = 64

/** 2048 bits (RFC 3526), whose generator is 2. */
const GROUP = 'modp14'

/** Apple's type, the server's side. Throws MalformedError. */
export async function receiveAppleDh(channel: Channel): Promise<UserPassword> {
  const own = getDiffieHellman(GROUP)
  const publicKey = own.generateKeys()
  const prime = own.getPrime()
  const generator = uint16(own.getGenerator().readUIntBE(0, own.getGenerator().length))
  channel.write(Buffer.concat([generator, uint16(prime.length), prime, padded(publicKey, prime.length)]))
  const encrypted = await channel.read(2 * APPLE_FIELD)
  const theirs = await channel.read(prime.length)
  if (!hides(numberOf(theirs), numberOf(prime))) {
    throw new MalformedError('vnc: a public number was expected, found one that hides nothing')
  }
  const key = appleKey(padded(own.computeSecret(theirs), prime.length))
  const decipher = createDecipheriv('aes-128-ecb', key, null).setAutoPadding(false)
  const fields = decipher.update(encrypted)
  return {
    user: textOfField(fields.subarray(0, APPLE_FIELD)),
    password: textOfField(fields.subarray(APPLE_FIELD)),
  }
}

/** Apple's type, the client's side. Throws MalformedError. */
export async function sendAppleDh(channel: Channel, { user, password }: UserPassword): Promise<void> {
  const generator = BigInt(await readUint16(channel))
  const size = await readUint16(channel)
  if (size < MIN_PRIME || MAX_PRIME < size) {
    throw new MalformedError(
      `vnc: a Diffie-Hellman prime of ${MIN_PRIME} to ${MAX_PRIME} bytes was expected, found ${size}`,
    )
  }
  const prime = numberOf(await channel.read(size))
  const theirs = numberOf(await channel.read(size))
  const { publicKey, secret } = exchanged({ generator, prime, theirs }, EXPONENT)
  const cipher = createCipheriv('aes-128-ecb', appleKey(bytesOf(secret, size)), null).setAutoPadding(false)
  const fields = Buffer.concat([
    fieldOf(user, randomBytes(APPLE_FIELD)),
    fieldOf(password, randomBytes(APPLE_FIELD)),
  ])
  channel.write(Buffer.concat([cipher.update(fields), bytesOf(publicKey, size)]))
}

/** MSLogonII, the client's side. Throws MalformedError. */
export async function sendMsLogon(channel: Channel, { user, password }: UserPassword): Promise<void> {
  const [generator, prime, theirs] = [
    numberOf(await channel.read(MS_NUMBER)),
    numberOf(await channel.read(MS_NUMBER)),
    numberOf(await channel.read(MS_NUMBER)),
  ]
  const { publicKey, secret } = exchanged({ generator, prime, theirs }, MS_NUMBER)
  const key = bytesOf(secret, MS_NUMBER)
  const encrypt = (field: Buffer): Buffer =>
    createCipheriv('des-ede3-cbc', vncDesKey(key), key).setAutoPadding(false).update(field)
  channel.write(
    Buffer.concat([
      bytesOf(publicKey, MS_NUMBER),
      encrypt(fieldOf(user, randomBytes(MS_USER))),
      encrypt(fieldOf(password, randomBytes(MS_PASSWORD))),
    ]),
  )
}

/**
 * Returns a public key for this connection, from an exponent of so many bytes, and the shared secret. Node's
 * own function would spend half a second on a primality test. That is not needed here: the secret protects
 * only data for the peer itself. Throws MalformedError.
 */
function exchanged(
  { generator, prime, theirs }: { generator: bigint; prime: bigint; theirs: bigint },
  bytes: number,
): { publicKey: bigint; secret: bigint } {
  if (prime % 2n === 0n || !hides(generator, prime) || !hides(theirs, prime)) {
    throw new MalformedError('vnc: Diffie-Hellman parameters were expected, found numbers that hide nothing')
  }
  const exponent = numberOf(randomBytes(bytes))
  return { publicKey: power(generator, exponent, prime), secret: power(theirs, exponent, prime) }
}

/** Returns false if the power is known for every exponent. */
function hides(number: bigint, prime: bigint): boolean {
  return 1n < number && number < prime - 1n
}

function appleKey(secret: Uint8Array): Buffer {
  return createHash('md5').update(secret).digest()
}

function padded(number: Buffer, size: number): Buffer {
  return Buffer.concat([Buffer.alloc(size - number.length), number])
}

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
}

function bytesOf(number: bigint, size: number): Buffer {
  return Buffer.from(number.toString(16).padStart(2 * size, '0'), 'hex')
}

/** Computes a power by square and multiply. */
function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let result = 1n
  let square = base % modulus
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % modulus
    square = (square * square) % modulus
  }
  return result
}
