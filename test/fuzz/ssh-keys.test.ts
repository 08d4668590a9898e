/** Keys, certificates, signatures and revocation lists: for any bytes a result or the one error. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { flawOfCertificate, parseOfferedKey } from '../../src/identity/certificate.ts'
import { flawOfHostCertificate } from '../../src/identity/host-certificate.ts'
import { PublicKeyError, parseAuthorizedKey, parsePublicKey } from '../../src/identity/public-key.ts'
import { parseRevocationList, RevocationListError } from '../../src/identity/revocation.ts'
import { verifySignature, verifySignedRequest } from '../../src/identity/signature.ts'
import { forger, openWorkshop, type Workshop } from '../identity/certificates.ts'
import { fidoKey, opensshKey, sshString } from '../identity/keys.ts'

const RUNS = { numRuns: 2_000 }

let shop: Workshop
let seeds: Buffer[]
let lists: Buffer[]
beforeAll(() => {
  shop = openWorkshop()
  for (const name of ['ca', 'user']) shop.key(name)
  shop.key('rsa', 'rsa', 2048)
  const made = ['-I', 'id', '-n', 'ops1', '-O', 'source-address=10.0.0.0/8', '-O', 'force-command=x']
  seeds = [
    shop.blob('user'),
    shop.blob('rsa'),
    opensshKey('ecdsa', 521).blob,
    fidoKey('sk-ecdsa-sha2-nistp256@openssh.com').blob,
    shop.certify('user', 'ca', made),
    shop.certify('rsa', 'ca', made),
    forger().certificate({}),
    forger().certificate({ type: 2 }),
  ]
  lists = [
    shop.revoke(['serial: 1', 'serial: 5-9', 'id: x', `sha256: ${shop.line('user')}`], 'ca'),
    Buffer.from(`${shop.line('user')}\n`),
  ]
})
afterAll(() => shop.remove())

/** One of the seeds with some bytes changed, removed or inserted. */
const spoilt = (of: () => Buffer[]) =>
  fc
    .tuple(
      fc.nat(),
      fc.array(fc.tuple(fc.nat(), fc.nat({ max: 8 }), fc.uint8Array({ maxLength: 8 })), { maxLength: 4 }),
    )
    .map(([seed, edits]) => {
      let bytes: Uint8Array = of()[seed % of().length]!
      for (const [place, removed, added] of edits) {
        const at = place % (bytes.length + 1)
        bytes = Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)])
      }
      return bytes
    })

function orError<T>(work: () => T, error: typeof PublicKeyError | typeof RevocationListError): T | undefined {
  try {
    return work()
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(error)
    return undefined
  }
}

const use = { authorities: [], user: 'ops1', source: '10.1.1.1', now: 0 }

test('what is offered as a key', () => {
  const blobs = fc.oneof(
    spoilt(() => seeds),
    fc.uint8Array({ maxLength: 200 }),
  )
  fc.assert(
    fc.property(blobs, (blob) => {
      const offered = orError(() => parseOfferedKey(blob), PublicKeyError)
      orError(() => parsePublicKey(blob), PublicKeyError)
      if (!offered?.certificate) return
      const { authority } = offered.certificate
      flawOfCertificate(offered.certificate, { ...use, authorities: [authority] })
      const host = { host: 'ops1', port: 22, now: 0 }
      flawOfHostCertificate(offered.certificate, { ...host, authorities: [authority] })
    }),
    RUNS,
  )
})

test('lines of authorized keys', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.base64String().map((text) => `ssh-rsa ${text}`),
      ),
      (line) => {
        orError(() => parseAuthorizedKey(line), PublicKeyError)
      },
    ),
    RUNS,
  )
})

test('signature fields and signed requests', () => {
  const names = fc.constantFrom(
    'ssh-ed25519',
    'rsa-sha2-512',
    'ecdsa-sha2-nistp521',
    'sk-ssh-ed25519@openssh.com',
  )
  const field = fc
    .tuple(names, fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 6 }))
    .map(([name, bytes, tail]) => Buffer.concat([sshString(name), sshString(bytes), tail]))
  const fields = fc.oneof(field, fc.uint8Array({ maxLength: 100 }))
  fc.assert(
    fc.property(fc.nat(), fields, fc.uint8Array({ maxLength: 300 }), (which, signature, data) => {
      const offered = seeds[which % seeds.length]!
      const { key } = parseOfferedKey(offered)
      expect(orError(() => verifySignature(key, data, signature), PublicKeyError)).toBeUndefined()
      expect(verifySignedRequest({ login: 'ops1', offered, key, data, signature })).toBeUndefined()
    }),
    RUNS,
  )
})

test('revocation lists', () => {
  const files = fc.oneof(
    spoilt(() => lists),
    fc.uint8Array({ maxLength: 200 }),
  )
  fc.assert(
    fc.property(files, fc.nat(), (file, which) => {
      const list = orError(() => parseRevocationList(file), RevocationListError)
      list?.revokes(parseOfferedKey(seeds[which % seeds.length]!))
    }),
    RUNS,
  )
})
