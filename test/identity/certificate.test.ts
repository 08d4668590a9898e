import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { flawOfCertificate, parseCertificate, parseOfferedKey } from '../../src/identity/certificate.ts'
import { limitsOf } from '../../src/identity/certificate-options.ts'
import { PublicKeyError, parseAuthorizedKey } from '../../src/identity/public-key.ts'
import { forger, openWorkshop, type Workshop } from './certificates.ts'
import { sshString } from './keys.ts'

const NOW = Date.UTC(2030, 0, 15, 12)
const use = { user: 'ops1', source: '192.0.2.7', now: NOW }

let shop: Workshop
beforeAll(() => {
  shop = openWorkshop()
  shop.key('ca')
  shop.key('ca-ecdsa', 'ecdsa', 384)
  shop.key('ca-rsa', 'rsa', 2048)
  shop.key('other-ca')
  shop.key('user')
  shop.key('user-ecdsa', 'ecdsa', 256)
  shop.key('user-rsa', 'rsa', 2048)
})
afterAll(() => shop.remove())

const lineOf = (name: string) => shop.line(name)
const authority = (...names: string[]) => names.map((name) => parseAuthorizedKey(lineOf(name)))
const PLAIN = ['-I', 'id', '-n', 'other,ops1', '-z', '7']

function flaw(args: string[], more: Partial<typeof use> = {}, ca = 'ca') {
  const certificate = parseCertificate(shop.certify('user', ca, args))
  return flawOfCertificate(certificate, { ...use, authorities: authority('ca'), ...more })
}

describe('a certificate of ssh-keygen', () => {
  it.each(['ca', 'ca-ecdsa', 'ca-rsa'])('by %s, for each type of key', (ca) => {
    for (const name of ['user', 'user-ecdsa', 'user-rsa']) {
      const { key, certificate } = parseOfferedKey(shop.certify(name, ca, PLAIN))
      expect(key.blob).toEqual(shop.blob(name))
      expect(certificate).toMatchObject({ serial: 7n, isOfUser: true, principals: ['other', 'ops1'] })
      expect(certificate!.keyId.toString()).toBe('id')
      expect(
        flawOfCertificate(certificate!, { ...use, authorities: authority('other-ca', ca) }),
      ).toBeUndefined()
    }
  })

  it('is refused when a bit of it is changed', () => {
    const blob = shop.certify('user', 'ca', PLAIN)
    const authorities = authority('ca')
    for (let at = 0; at < blob.length; at++) {
      const changed = Buffer.from(blob)
      changed[at]! ^= 1
      let refused: unknown
      try {
        refused = flawOfCertificate(parseCertificate(changed), { ...use, authorities })
      } catch (error) {
        refused = error instanceof PublicKeyError
      }
      expect(refused, `bit of byte ${at}`).toBeTruthy()
    }
  })

  it('of another authority, or of a host', () => {
    expect(flaw(PLAIN, {}, 'other-ca')).toBe('certificate_authority')
    expect(flaw(['-h', ...PLAIN])).toBe('certificate_type')
  })

  it('is for the principals that it names, letter for letter', () => {
    expect(flaw(['-I', 'id'])).toBe('certificate_principal')
    for (const names of ['root', 'Ops1', 'ops', 'ops12', 'ops1 '])
      expect(flaw(['-I', 'id', '-n', names])).toBe('certificate_principal')
    expect(flaw(PLAIN, { user: 'root' })).toBe('certificate_principal')
  })

  it('holds from its first second to before its last', () => {
    const period = ['-V', '20300115115900Z:20300115120100Z']
    expect(flaw([...PLAIN, ...period])).toBeUndefined()
    expect(flaw([...PLAIN, ...period], { now: NOW - 60_001 })).toBe('certificate_validity')
    expect(flaw([...PLAIN, ...period], { now: NOW - 60_000 })).toBeUndefined()
    expect(flaw([...PLAIN, ...period], { now: NOW + 59_999 })).toBeUndefined()
    expect(flaw([...PLAIN, ...period], { now: NOW + 60_000 })).toBe('certificate_validity')
  })

  it('is for the addresses that it names', () => {
    const from = (list: string) => flaw([...PLAIN, '-O', `source-address=${list}`])
    expect(from('192.0.2.0/24')).toBeUndefined()
    expect(from('10.0.0.0/8,192.0.2.7')).toBeUndefined()
    expect(from('10.0.0.0/8,2001:db8::/32')).toBe('certificate_source')
  })

  it('with an option that is not known is refused; with such an extension it is not', () => {
    expect(flaw([...PLAIN, '-O', 'critical:new@example.com=x'])).toBe('certificate_option')
    expect(flaw([...PLAIN, '-O', 'clear', '-O', 'extension:new@example.com=x'])).toBeUndefined()
  })
})

describe('what a certificate holds its sessions to', () => {
  const limits = (...options: string[]) =>
    limitsOf(parseCertificate(shop.certify('user', 'ca', [...PLAIN, ...options])))
  const FORWARDING = ['SSH_DIRECT_TCPIP', 'SSH_REVERSE_TCPIP', 'SSH_DIRECT_UNIXSOCK', 'SSH_REVERSE_UNIXSOCK']

  it('is nothing as ssh-keygen makes one unless told otherwise', () => {
    expect(limits()).toEqual({ noTerminal: false, withheld: [] })
  })

  it('is what it has no extension for', () => {
    expect(limits('-O', 'no-pty')).toEqual({ noTerminal: true, withheld: [] })
    expect(limits('-O', 'no-port-forwarding')).toEqual({ noTerminal: false, withheld: FORWARDING })
    expect(limits('-O', 'no-agent-forwarding').withheld).toEqual(['SSH_AUTH_AGENT'])
    expect(limits('-O', 'no-x11-forwarding').withheld).toEqual(['SSH_X11'])
    const all = ['SSH_X11', 'SSH_AUTH_AGENT', ...FORWARDING]
    expect(limits('-O', 'clear')).toEqual({ noTerminal: true, withheld: all })
  })

  it('is its forced command, byte for byte', () => {
    const { forcedCommand } = limits('-O', 'force-command=echo "ä"; true')
    expect(Buffer.from(forcedCommand!).toString()).toBe('echo "ä"; true')
    expect(flaw([...PLAIN, '-O', 'force-command=true'])).toBeUndefined()
  })
})

describe('a certificate as ssh-keygen makes none', () => {
  const { line, certificate } = forger()
  const judge = (more: Parameters<typeof certificate>[0]) =>
    flawOfCertificate(parseCertificate(certificate(more)), {
      ...use,
      authorities: [parseAuthorizedKey(line)],
    })

  it('is one when nothing is wrong', () => {
    expect(judge({})).toBeUndefined()
  })

  it.each([
    ['no principals', {}, Buffer.alloc(0)],
    ['an empty principal', {}, sshString('')],
    ['a principal with a comma', {}, sshString('root,ops1')],
    ['a principal with a NUL behind it', {}, sshString('ops1\0')],
    ['a wildcard', {}, sshString('*')],
  ])('%s: is nobody', (_, more, principals) => {
    expect(judge({ ...more, principals })).toBe('certificate_principal')
  })

  it.each([
    ['is empty', ''],
    ['has an empty entry', '192.0.2.7,'],
    ['has a blank', '192.0.2.7, 10.0.0.1'],
    ['has a name', 'localhost,192.0.2.7'],
    ['has a wildcard', '*'],
    ['has too long a prefix', '192.0.2.7/33'],
  ])('a list of addresses that %s lists nobody', (_, list) => {
    expect(judge({ options: [['source-address', sshString(list)]] })).toBe('certificate_source')
  })

  it.each([
    ['that is none', sshString('')],
    ['with a NUL', sshString('true\0id')],
    ['cut short', Buffer.from([0, 0, 0, 9, 0x69])],
    ['with more behind it', Buffer.concat([sshString('id'), sshString('id')])],
  ])('a forced command %s', (_, data) => {
    expect(judge({ options: [['force-command', data]] })).toBe('certificate_force_command')
  })

  it('an option whose data is cut short', () => {
    expect(judge({ options: [['source-address', Buffer.from([0, 0])]] })).toBe('certificate_source')
  })

  it('of a type between user and host', () => {
    for (const type of [0, 3, 0xffffffff]) expect(judge({ type })).toBe('certificate_type')
  })

  it.each([
    [
      'an option twice',
      {
        options: [
          ['a', sshString('')],
          ['a', sshString('')],
        ] as [string, Buffer][],
      },
      'twice',
    ],
    ['a certificate for its authority', { authority: certificate({}) }, 'not accepted'],
    ['more behind it', { tail: Buffer.of(0) }, 'longer than'],
    ['too many principals', { principals: Buffer.concat(Array(300).fill(sshString('x'))) }, 'more than 256'],
    ['more bytes than there may be', { tail: Buffer.alloc(20_000) }, 'at most 16384'],
  ])('%s: cannot be read', (_, more, message) => {
    expect(() => parseCertificate(certificate(more))).toThrow(PublicKeyError)
    expect(() => parseCertificate(certificate(more))).toThrow(message)
  })
})
