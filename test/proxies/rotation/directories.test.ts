/** Changes of passwords at real directories: slapd with a password policy, and Samba as Active Directory. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { activeDirectory } from '../../../proxies/rotation/active-directory.ts'
import { ldap } from '../../../proxies/rotation/ldap.ts'
import type { ChangeTarget } from '../../../src/contract/change.ts'
import {
  AD_ADMIN,
  type DomainController,
  LDAP_ADMIN,
  REALM,
  type Slapd,
  SUFFIX,
  startDomainController,
  startSlapd,
} from '../../peers/directory.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { type CertificateFiles, certificateFiles } from '../../peers/vnc/certificate.ts'
import { changeBy, errorOf, inTime, outcomeOf, ownChange, signInOf, targetAt } from './targets.ts'

let certificate: CertificateFiles
let stranger: CertificateFiles
beforeAll(async () => {
  certificate = await certificateFiles()
  stranger = await certificateFiles()
})
afterAll(() => {
  certificate.remove()
  stranger.remove()
})

describeWithPeers('slapd', ['slapd'], () => {
  let server: Slapd
  const people = { user_dn: `uid={login},ou=people,${SUFFIX}` }
  const at = (parameters: ChangeTarget['parameters'] = people, trusted = certificate) =>
    targetAt(
      parameters['start_tls'] || parameters['insecure'] ? server.ldap : server.ldaps,
      { ...people, ...parameters },
      { certificates: trusted.pem.cert },
    )
  const verify = (login: string, password: string, target = at()) =>
    outcomeOf(ldap.verify(target, signInOf(login, password), inTime()))

  beforeAll(async () => {
    server = await startSlapd(
      {
        alice: 'Alice-Pass1',
        bob: 'Bob-Pass-1',
        carol: 'Carol-Pass1',
        dave: 'Dave-Pass1',
        'o(d)d': 'Odd-Pass-1',
      },
      certificate,
    )
  })
  afterAll(() => server?.stop())

  test.each([
    ['LDAPS', {}],
    ['StartTLS', { start_tls: true }],
    ['clear text, if that is wanted', { insecure: true }],
  ])('an account changes its own password by %s', async (_name, parameters) => {
    const target = at(parameters)
    const next = `Neu "é" \\ ${JSON.stringify(parameters)}`
    await ldap.change(target, ownChange('alice', 'Alice-Pass1', next), inTime())
    expect(await verify('alice', next, target)).toBe('valid')
    expect(await verify('alice', 'Alice-Pass1', target)).toBe('invalid')
    await ldap.change(target, changeBy(LDAP_ADMIN, 'alice', 'Alice-Pass1'), inTime())
  })

  test('entries are found by a search, and a login is no part of its filter', async () => {
    const target = at({
      user_dn: '',
      search_base: SUFFIX,
      search_filter: '(&(objectClass=person)(uid={login}))',
    })
    await ldap.change(target, changeBy(LDAP_ADMIN, 'o(d)d', 'Odd-Pass-2'), inTime())
    expect(await verify('o(d)d', 'Odd-Pass-2', target)).toBe('valid')
    expect(await verify('*', 'Odd-Pass-2', target)).toBe('unsupported')
    expect(await verify(`uid=bob,ou=people,${SUFFIX}`, 'Bob-Pass-1', target)).toBe('valid')
  })

  test('an account that has to change its password does so', async () => {
    await ldap.change(at(), changeBy(LDAP_ADMIN, 'dave', 'Dave-Pass2'), inTime())
    expect(await verify('dave', 'Dave-Pass2')).toBe('valid')
    await ldap.change(at(), ownChange('dave', 'Dave-Pass2', 'Dave-Pass3'), inTime())
    expect(await verify('dave', 'Dave-Pass3')).toBe('valid')
  })

  test('the rules of the directory refuse a password that is short or was there before', async () => {
    const short = await errorOf(ldap.change(at(), ownChange('bob', 'Bob-Pass-1', 'short'), inTime()))
    expect(short).toMatchObject({ code: 'refused_password', message: expect.not.stringContaining('short') })
    await ldap.change(at(), ownChange('bob', 'Bob-Pass-1', 'Bob-Pass-2'), inTime())
    const again = ldap.change(at(), ownChange('bob', 'Bob-Pass-2', 'Bob-Pass-1'), inTime())
    expect(await outcomeOf(again)).toBe('refused_password')
    expect(await verify('bob', 'Bob-Pass-2')).toBe('valid')
  })

  test('refusals leave all as it was, and a locked account is no verdict', async () => {
    const bob = { login: 'bob', password: 'Bob-Pass-2' }
    const change = (by: typeof bob, login: string) =>
      outcomeOf(ldap.change(at(), changeBy(by, login, 'Other-Pass1'), inTime()))
    expect(await change(bob, 'carol')).toBe('not_permitted')
    expect(await change(LDAP_ADMIN, 'nobody')).toBe('not_permitted')
    expect(await change({ ...bob, password: 'wrong' }, 'carol')).toBe('refused_sign_in')
    expect(await verify('carol', '')).toBe('unsupported')
    for (let time = 0; time < 3; time++) expect(await verify('carol', 'wrong')).toBe('invalid')
    expect(await verify('carol', 'Carol-Pass1')).toBe('refused_sign_in')
  })

  test('a server without a trusted certificate gets nothing', async () => {
    for (const parameters of [{}, { start_tls: true }]) {
      expect(await verify('bob', 'Bob-Pass-2', at(parameters, stranger))).toBe('untrusted')
      expect(await verify('bob', 'Bob-Pass-2', at({ ...parameters, tls_name: 'other.test' }))).toBe(
        'untrusted',
      )
    }
    // LDAPS was asked for, and its port has clear text only.
    expect(await verify('bob', 'Bob-Pass-2', { ...at(), port: server.ldap })).toBe('unreachable')
  })
})

describeWithPeers('Active Directory', ['samba', 'samba-tool', 'samba-ad-dc', 'samba-dsdb-modules'], () => {
  let server: DomainController
  const at = (parameters: ChangeTarget['parameters'] = {}, trusted = certificate): ChangeTarget => ({
    host: server.host,
    port: server.port,
    parameters: { domain: REALM, tls_name: 'localhost', ...parameters },
    trust: { certificates: trusted.pem.cert },
  })
  const verify = (login: string, password: string, target = at()) =>
    outcomeOf(activeDirectory.verify(target, signInOf(login, password), inTime()))

  beforeAll(async () => {
    server = await startDomainController(certificate)
    const { tool } = server
    await tool('domain', 'passwordsettings', 'set', '--min-pwd-age=0', '--account-lockout-threshold=3')
    await tool('user', 'create', 'alice', 'Alice-Pass1!')
    await tool('user', 'create', 'late', 'Late-Pass1!', '--must-change-at-next-login')
  }, 300_000)
  afterAll(() => server?.stop())

  test('an account changes its own password, under each form of its name', async () => {
    let old = 'Alice-Pass1!'
    for (const [index, login] of ['alice', `alice@${REALM}`, 'LABAD\\alice'].entries()) {
      const next = `Neu-"é"-Pass${index}`
      await activeDirectory.change(at(), ownChange(login, old, next), inTime())
      expect(await verify(login, next)).toBe('valid')
      // A domain lets the password before it in for an hour, so that services can follow: the new one is tried first.
      expect(await verify('alice', old)).toBe('valid')
      old = next
    }
    expect(await verify('alice', 'Alice-Pass1!')).toBe('invalid')
  })

  test('an administrator resets a password that has to be changed', async () => {
    expect(await verify('late', 'Late-Pass1!')).toBe('valid')
    const own = activeDirectory.change(at(), ownChange('late', 'Late-Pass1!', 'Late-Pass2!'), inTime())
    expect(await errorOf(own)).toMatchObject({
      code: 'refused_sign_in',
      message: expect.stringContaining('it has to change its password'),
    })
    await activeDirectory.change(at(), changeBy(AD_ADMIN, 'late', 'Late-Pass3!'), inTime())
    expect(await verify('late', 'Late-Pass3!')).toBe('valid')
  })

  test('refusals leave all as it was, with the reason', async () => {
    const { change } = activeDirectory
    const late = { login: 'late', password: 'Late-Pass3!' }
    const set = (by: typeof late, login: string, password: string) =>
      outcomeOf(change(at(), changeBy(by, login, password), inTime()))
    expect(await set(AD_ADMIN, 'late', 'simple')).toBe('refused_password')
    expect(await set(late, 'alice', 'Any-Pass1!')).toBe('not_permitted')
    expect(await set(AD_ADMIN, 'no*body', 'Any-Pass1!')).toBe('not_permitted')
    expect(await set({ ...late, password: 'wrong' }, 'alice', 'Any-Pass1!')).toBe('refused_sign_in')
    expect(await outcomeOf(change(at(), ownChange('late', late.password, 'simple'), inTime()))).toBe(
      'refused_password',
    )
    expect(await verify('late', late.password)).toBe('valid')
    expect(await verify('nobody', 'Any-Pass1!')).toBe('invalid')
  })

  test('a locked account and a disabled one are no verdict', async () => {
    for (let time = 0; time < 3; time++) expect(await verify('late', 'wrong')).toBe('invalid')
    expect(await verify('late', 'Late-Pass3!')).toBe('refused_sign_in')
    await server.tool('user', 'disable', 'alice')
    const disabled = await errorOf(activeDirectory.verify(at(), signInOf('alice', 'Neu-"é"-Pass2'), inTime()))
    expect(disabled?.message).toContain('it is disabled')
  })

  test('a server without a trusted certificate gets nothing', async () => {
    expect(await verify('late', 'Late-Pass3!', at({}, stranger))).toBe('untrusted')
    expect(await verify('late', 'Late-Pass3!', at({ tls_name: '' }))).toBe('untrusted')
  })
})
