/** Licensing by Remote Desktop Session Hosts: its keys by known values, and a server that issues licenses. */
import { createPublicKey, generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { generate } from 'selfsigned'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import {
  buildLicense,
  buildNoLicense,
  endsLicensing,
  LICENSE_MESSAGE,
  type LicenseMessage,
  parseLicense,
} from '../../../../proxies/rdp/codec/licensing.ts'
import { parseSecured } from '../../../../proxies/rdp/codec/security-header.ts'
import { licensingKey } from '../../../../proxies/rdp/licensing/certificate.ts'
import { LicenseClient } from '../../../../proxies/rdp/licensing/client.ts'
import { encryptSecret, LicensingKeys } from '../../../../proxies/rdp/licensing/keys.ts'
import {
  buildChallengeResponse,
  buildNewLicenseRequest,
  parseLicenseRequest,
  parsePlatformChallenge,
} from '../../../../proxies/rdp/licensing/messages.ts'
import { hex } from '../../stream-events.ts'
import {
  CHALLENGE,
  certificateChain,
  hardwareIdOf,
  LicenseServer,
  licenseRequest,
  proprietaryCertificate,
} from './server.ts'

const bytes = (text: string) => Buffer.from(text.replaceAll(/\s/g, ''), 'hex')
const message = (data: Uint8Array): LicenseMessage => parseLicense(parseSecured(data).body)

function createClient(): LicenseClient {
  return new LicenseClient({ userName: 'administrator', machineName: 'BASTION', random: randomBytes })
}

describe('keys', () => {
  const client = bytes('4b5b7b43638a08fed17abaf5918577fe3936f6d778ec6acc894a90412cac5a49')
  const server = bytes('5c81f011ebcfd10eb41fb3ba93a2d73909aa99e910d4d795ddad916905266b6a')
  const secret = bytes(
    '1428dafbb9ea38ab5ea2f904f7899c983d504577bf17811c3787c24813e8c9204ddff327bdb6987e64dafe1d312f62ca',
  )

  test('of a secret and the randoms of both sides', () => {
    const wanted = new LicensingKeys(
      bytes('f70375b95fdad0beb42af5c13d98857a'),
      bytes('fa44e878d82b3f1d4d00a0a655ce8ab7'),
    )
    const made = LicensingKeys.of(secret, { client, server })
    const data = Buffer.from('anything')
    expect([hex(made.cipher(data)), hex(made.mac(data))]).toEqual([
      hex(wanted.cipher(data)),
      hex(wanted.mac(data)),
    ])
  })

  test('a challenge is opened, and one that is not of who has the keys is not', () => {
    const keys = new LicensingKeys(
      bytes('015b9e5f06977158c3b88b8c6e772137'),
      bytes('e178e4a02ac5cab8a2d153b80723f3d2'),
    )
    const encrypted = bytes('26388877cbe8bfce2c51')
    const mac = bytes('514a272c7418ec8895ddac103e3f0a72')
    expect(keys.open(encrypted, mac)).toEqual(CHALLENGE)
    mac[0]! ^= 1
    expect(keys.open(encrypted, mac)).toBeUndefined()
  })
})

describe('messages', () => {
  test('a challenge, whatever type its blob says', () => {
    const challenge = bytes('00000000 beef 0a00 46378554 8ec59134 975d 3823625d 108b93c3 f1e4671f 4ab6000a')
    expect(parsePlatformChallenge(challenge)).toEqual({
      encrypted: bytes('463785548ec59134975d'),
      mac: bytes('3823625d108b93c3f1e4671f4ab6000a'),
    })
  })

  test('the answer to a challenge before it is encrypted', () => {
    expect(hex(buildChallengeResponse(CHALLENGE))).toBe('000100ff03000a0054004500530054000000')
  })

  test('a request for a license', () => {
    const request = buildNewLicenseRequest({
      clientRandom: Buffer.alloc(32, 0x11),
      encryptedSecret: Buffer.alloc(72, 0x22),
      userName: 'sample-user',
      machineName: 'sample-machine-name',
    })
    const names = [
      `0f000c00${hex(Buffer.from('sample-user\0'))}`,
      `10001400${hex(Buffer.from('sample-machine-name\0'))}`,
    ]
    expect(hex(request)).toBe(
      `800000001303a0000100000000000104${'11'.repeat(32)}02004800${'22'.repeat(72)}${names.join('')}`,
    )
  })
})

describe('certificates', () => {
  test('of Terminal Services’ own form, with a known modulus', () => {
    const modulus =
      'cb81feba6d61c35505d55f2e87f87194d6f1a5cbf15f0c3df8700296c4fb9bc8' +
      '3c2d55aee8ff3275ea6879e5a201fd31a0b11f55a61fc1f6d1838863265612bc'
    const head = '01000080 01000000 01000000 0600 5c00 52534131 48000000 00020000 3f000000 01000100'
    const certificate = bytes(`${head} ${modulus} ${'00'.repeat(8)}`)
    const key = licensingKey(certificate)
    expect(key.export({ format: 'jwk' })).toEqual({
      kty: 'RSA',
      n: bytes(modulus).reverse().toString('base64url'),
      e: 'AQAB',
    })
    expect(hex(encryptSecret(Buffer.alloc(48), key))).toBe('00'.repeat(72))
  })

  test('a chain: the last one is the server’s', async () => {
    const made = await Promise.all(
      ['root', 'server'].map((value) => generate([{ name: 'commonName', value }])),
    )
    const [root, server] = made.map(({ cert }) => new X509Certificate(cert))
    const key = licensingKey(certificateChain(root!.raw, server!.raw))
    expect(key.equals(server!.publicKey)).toBe(true)
  })

  test.each<[string, Uint8Array, string]>([
    ['another version', bytes('03000000'), 'version 0x1 or 0x2 was expected, found 0x3'],
    ['no certificates', bytes('0200000000000000'), '1 to 200 certificates were expected, found 0'],
    ['too many', bytes('02000000ffffffff'), '1 to 200 certificates were expected, found 4294967295'],
    ['a certificate that is none', certificateChain(Buffer.from('none')), 'certificate'],
    [
      'a key that is not RSA’s',
      certificateChain(bytes('3015300f a003020102 02 0101 3000 3000 3000 3000')),
      'certificate',
    ],
    [
      'a modulus that is too long to be encrypted with in time',
      bytes('01000000 01000000 01000000 0600 ffff 52534131 08800000 00000400 ffff0000 01000100'),
      'a modulus of 64 to 1024 bytes was expected, found 32768',
    ],
    [
      'one that is shorter than the secret',
      proprietaryCertificate(
        createPublicKey({
          key: { kty: 'RSA', n: Buffer.alloc(32, 0xff).toString('base64url'), e: 'AQAB' },
          format: 'jwk',
        }),
      ),
      'a modulus of 64 to 1024 bytes was expected, found 32',
    ],
  ])('%s: refused', (_, certificate, words) => {
    expect(() => licensingKey(certificate)).toThrow(MalformedError)
    expect(() => licensingKey(certificate)).toThrow(words)
  })

  test('a key that nothing can be encrypted with: refused', () => {
    const even = Buffer.alloc(64, 0xfe)
    const key = createPublicKey({
      key: { kty: 'RSA', n: even.toString('base64url'), e: 'AQAB' },
      format: 'jwk',
    })
    const request = message(licenseRequest(proprietaryCertificate(key)))
    expect(() => createClient().answer(request)).toThrow(MalformedError)
  })
})

describe('a client without a license', () => {
  test.each(['its own form', 'X.509'] as const)(
    'gets one of a server with a certificate of %s',
    async (form) => {
      let server = new LicenseServer()
      if (form === 'X.509') {
        const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
        const keys = {
          privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
          publicKey: createPublicKey(privateKey).export({ format: 'pem', type: 'spki' }) as string,
        }
        const { cert } = await generate([{ name: 'commonName', value: 'licensing' }], { keyPair: keys })
        server = new LicenseServer({
          privateKey,
          certificate: certificateChain(new X509Certificate(cert).raw),
        })
      }
      const client = createClient()
      const challenge = server.answer(client.answer(message(server.request))!)
      const license = message(server.answer(client.answer(message(challenge))!))
      expect(server.issued).toEqual({
        userName: 'administrator',
        machineName: 'BASTION',
        hardwareId: hardwareIdOf('BASTION'),
      })
      expect(endsLicensing(license)).toBe(true)
      expect(client.answer(license)).toBeUndefined()
    },
  )

  test('says that it has none where the server shows no key', () => {
    expect(createClient().answer(message(licenseRequest(Buffer.alloc(0))))).toEqual(buildNoLicense())
  })

  test('a challenge that comes first, or that another has made: refused', () => {
    const server = new LicenseServer()
    const first = createClient()
    const challenge = message(server.answer(first.answer(message(server.request))!))
    expect(() => createClient().answer(challenge)).toThrow('a request was expected before the challenge')
    const other = createClient()
    other.answer(message(server.request))
    expect(() => other.answer(challenge)).toThrow('its code does not fit what is in it')
  })

  test('anything else: an answer, none or the one error', () => {
    const server = new LicenseServer()
    const [{ body: request }, challenge] = [
      message(server.request),
      message(server.answer(createClient().answer(message(server.request))!)).body,
    ]
    const edits = (of: Uint8Array) =>
      fc
        .tuple(fc.nat(of.length - 1), fc.integer({ min: 1, max: 255 }), fc.nat(of.length))
        .map(([at, by, end]) => {
          const copy = Buffer.from(of)
          copy[at]! ^= by
          return copy.subarray(0, end)
        })
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array({ maxLength: 300 }), edits(request), edits(challenge)),
        fc.constantFrom(
          ...Object.values(LICENSE_MESSAGE).filter((type) => type !== LICENSE_MESSAGE.errorAlert),
        ),
        (body, type) => {
          const client = createClient()
          if (type !== LICENSE_MESSAGE.request) client.answer(message(server.request))
          try {
            client.answer(message(buildLicense(type, body)))
          } catch (error) {
            expect(error).toBeInstanceOf(MalformedError)
          }
        },
      ),
      { numRuns: 400 },
    )
    expect(() => parseLicenseRequest(request)).not.toThrow()
  })
})
