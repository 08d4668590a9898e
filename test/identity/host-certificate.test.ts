import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseCertificate } from '../../src/identity/certificate.ts'
import { flawOfHostCertificate } from '../../src/identity/host-certificate.ts'
import { PublicKeyError, parseAuthorizedKey } from '../../src/identity/public-key.ts'
import { forger, openWorkshop, type Workshop } from './certificates.ts'
import { sshString } from './keys.ts'

const NOW = Date.UTC(2030, 0, 15, 12)

let shop: Workshop
beforeAll(() => {
  shop = openWorkshop()
  for (const name of ['ca', 'other-ca', 'host']) shop.key(name)
})
afterAll(() => shop.remove())

const use = () => ({
  authorities: [parseAuthorizedKey(shop.line('ca'))],
  host: 'srv1.example.com',
  port: 2222,
  now: NOW,
})
const HOST = ['-h', '-I', 'id', '-n', 'srv1.example.com']

function flaw(args: string[], more: Partial<ReturnType<typeof use>> = {}, ca = 'ca') {
  return flawOfHostCertificate(parseCertificate(shop.certify('host', ca, args)), { ...use(), ...more })
}

describe('a host certificate of ssh-keygen', () => {
  test('vouches for the host that it names', () => {
    expect(flaw(HOST)).toBeUndefined()
    expect(flaw(['-h', '-I', 'id', '-n', 'a,192.0.2.7'], { host: '192.0.2.7' })).toBeUndefined()
    expect(flaw(['-h', '-I', 'id', '-n', '2001:db8::7'], { host: '2001:DB8::7' })).toBeUndefined()
    expect(flaw(['-h', '-I', 'id', '-n', 'SRV1.Example.com'], { host: 'srv1.EXAMPLE.com' })).toBeUndefined()
    expect(flaw(['-h', '-I', 'id', '-n', '[srv1.example.com]:2222'])).toBeUndefined()
  })

  test.each([
    'srv1',
    'srv2.example.com',
    '*.example.com',
    'srv1.example.com.evil.example',
    '[srv1.example.com]:22',
    'srv1.example.com:2222',
    ' srv1.example.com',
  ])('does not for the name %j', (name) => {
    expect(flaw(['-h', '-I', 'id', '-n', name])).toBe('certificate_principal')
  })

  test('does not without a name, of a user, or by another', () => {
    expect(flaw(['-h', '-I', 'id'])).toBe('certificate_principal')
    expect(flaw(HOST.slice(1))).toBe('certificate_type')
    expect(flaw(HOST, {}, 'other-ca')).toBe('certificate_authority')
    expect(flaw(HOST, { authorities: [] })).toBe('certificate_authority')
  })

  test('holds from its first second to before its last', () => {
    const args = [...HOST, '-V', '20300115115900Z:20300115120100Z']
    expect([-60_001, -60_000, 59_999, 60_000].map((ms) => flaw(args, { now: NOW + ms }))).toEqual([
      'certificate_validity',
      undefined,
      undefined,
      'certificate_validity',
    ])
  })

  test('has no conditions', () => {
    expect(flaw([...HOST, '-O', 'critical:odd@example.com=1'])).toBe('certificate_option')
    expect(flaw([...HOST, '-O', 'extension:odd@example.com=1'])).toBeUndefined()
  })

  test('counts for nothing once a bit of it is changed', () => {
    const blob = shop.certify('host', 'ca', HOST)
    for (let at = 0; at < blob.length; at++) {
      const changed = Buffer.from(blob)
      changed[at]! ^= 1
      let refused: unknown
      try {
        refused = flawOfHostCertificate(parseCertificate(changed), use())
      } catch (error) {
        refused = error instanceof PublicKeyError
      }
      expect(refused, `bit of byte ${at}`).toBeTruthy()
    }
  })
})

describe('a host certificate that ssh-keygen would not make', () => {
  const forged = (more: Parameters<ReturnType<typeof forger>['certificate']>[0]) => {
    const smith = forger()
    const certificate = parseCertificate(
      smith.certificate({ principals: sshString('srv1.example.com'), ...more }),
    )
    return flawOfHostCertificate(certificate, { ...use(), authorities: [parseAuthorizedKey(smith.line)] })
  }

  test('is of no kind but a host', () => {
    expect(forged({ type: 2 })).toBeUndefined()
    for (const type of [0, 1, 3, 0xffffffff]) expect(forged({ type })).toBe('certificate_type')
  })

  test('is not signed by a certificate', () => {
    const authority = shop.certify('other-ca', 'ca', HOST)
    expect(() => forged({ type: 2, authority })).toThrow(PublicKeyError)
  })

  test('names another authority than the one that signed', () => {
    const authority = parseAuthorizedKey(shop.line('ca')).blob
    const certificate = parseCertificate(
      forger().certificate({ type: 2, principals: sshString('srv1.example.com'), authority }),
    )
    expect(flawOfHostCertificate(certificate, use())).toBe('certificate_signature')
  })
})
