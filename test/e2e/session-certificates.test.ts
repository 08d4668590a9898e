/**
 * Sessions sign in at a real sshd by their own certificates, made by an authority whose key is in the vault.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openWorkshop, type Workshop } from '../identity/certificates.ts'
import { type Dropbear, startDropbear } from '../peers/dropbear.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { ALL_RIGHTS, type Bastion, startBastion } from './bastion.ts'

let authorization: string
const DOMAIN = '/devices/srv1/localdomains/local'

let shop: Workshop
let bastion: Bastion
const file = (name: string) => join(shop.folder, name)

beforeAll(async () => {
  shop = openWorkshop()
  execFileSync('chmod', ['755', shop.folder])
  for (const name of ['ca', 'other-ca']) shop.key(name)
  shop.key('ecdsa-ca', 'ecdsa', 384)
  shop.key('rsa-ca', 'rsa', 3072)
  const lines = ['ca', 'ecdsa-ca', 'rsa-ca'].map((name) => shop.line(name))
  writeFileSync(file('trusted'), `${lines.join('\n')}\n`, { mode: 0o644 })
  writeFileSync(file('revoked'), '', { mode: 0o644 })
  bastion = await startBastion({
    subprotocols: [...ALL_RIGHTS, 'SSH_DIRECT_TCPIP'],
    sshd: {
      extraConfig: [`TrustedUserCAKeys ${file('trusted')}`, `RevokedKeys ${file('revoked')}`],
    },
  })
  const [row] = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
  authorization = `/authorizations/${row!.id}`
  // No key and no password: a sign-in succeeds only by a certificate.
  await bastion.broker.must('PUT', await accountPath(), { credentials: [] })
})
beforeEach(async () => {
  writeFileSync(file('revoked'), '')
  await setAuthority('ca')
})
afterAll(async () => {
  await bastion?.stop()
  shop?.remove()
})

const accountPath = async () => `/accounts/${bastion.account.name}@local@srv1`

const setAuthority = (name: string) =>
  bastion.broker.must<{ ca_public_key: string }>('PUT', DOMAIN, {
    ca_private_key: readFileSync(file(name), 'utf8'),
  })

const run = (command: string) => ssh(bastion.home, bastion.login(), [command])

/** Returns sshd's log of the last certificate. */
const accepted = () =>
  [
    ...bastion.sshd
      .log()
      .matchAll(/Accepted certificate ID "([^"]*)" \(serial (\d+)\) signed by (\S+) CA (\S+)/g),
  ].at(-1)

describe('an account without credential, in a domain with an authority', () => {
  test.each([
    ['ca', 'ED25519'],
    ['ecdsa-ca', 'ECDSA'],
    ['rsa-ca', 'RSA'],
  ])('is signed in to by %s', async (name, type) => {
    const { ca_public_key } = await setAuthority(name)
    expect(ca_public_key).toBe(shop.line(name).split(' ').slice(0, 2).join(' '))
    expect((await run('exit 7')).code).toBe(7)
    const [, keyId, serial, signedBy, fingerprint] = accepted()!
    expect(signedBy).toBe(type)
    expect(shop.fingerprint(name)).toContain(fingerprint)
    const session = (await bastion.events('session.open')).at(-1)!
    expect(keyId).toBe(
      `sallyport session=${session['session']} user=ops1 account=${bastion.account.name}@local:srv1:ssh`,
    )
    expect(session).toMatchObject({ object_type: 'certificate', object: serial })
  })

  test('has another key and serial number each time', async () => {
    await run('true')
    const first = accepted()![2]
    await run('true')
    expect(accepted()![2]).not.toBe(first)
  })

  test('gets what its session may do, and no more', async () => {
    const terminal = sshTerminal(bastion.home, bastion.login(), ['tty'])
    await terminal.expect('/dev/pts/')
    await terminal.exit()
    await bastion.broker.must('PUT', authorization, {
      subprotocols: ['SFTP_SESSION'],
    })
    try {
      expect((await ssh(bastion.home, bastion.login(), ['sftp'], { flags: ['-s'], input: '' })).code).toBe(0)
    } finally {
      await bastion.broker.must('PUT', authorization, {
        subprotocols: [...ALL_RIGHTS, 'SSH_DIRECT_TCPIP'],
      })
    }
  })

  test('is not, by an authority that the target does not know; the user reads why', async () => {
    await setAuthority('other-ca')
    const done = await run('true')
    expect(done.code).toBe(255)
    expect(done.stderr).toContain(`refused the credential of ${bastion.account.name}`)
    expect(done.stderr).toContain('TrustedUserCAKeys')
  })

  test('is not, when the target has revoked the authority', async () => {
    writeFileSync(file('revoked'), shop.revoke([`key: ${shop.line('ca')}`]))
    expect((await run('true')).code).toBe(255)
    writeFileSync(file('revoked'), '')
    expect((await run('true')).code).toBe(0)
  })

  test('is not, once the domain has lost its authority; a session that runs goes on', async () => {
    const terminal = sshTerminal(bastion.home, bastion.login())
    terminal.send('echo re""ady\r')
    await terminal.expect('ready')
    await bastion.broker.must('PUT', DOMAIN, { ca_private_key: null })
    const done = await run('true')
    expect(done.code).toBe(255)
    expect(done.stderr).toContain('no credential is stored')
    terminal.send('exit 3\r')
    expect(await terminal.exit()).toBe(3)
  })
})

test('AuthorizedPrincipalsFile decides by the login of the account', async () => {
  writeFileSync(file('principals'), 'somebody-else\n', { mode: 0o644 })
  const strict = await startBastion({
    sshd: {
      extraConfig: [`TrustedUserCAKeys ${file('trusted')}`, `AuthorizedPrincipalsFile ${file('principals')}`],
    },
  })
  try {
    await strict.broker.must('PUT', `/accounts/${strict.account.name}@local@srv1`, { credentials: [] })
    await strict.broker.must('PUT', DOMAIN, { ca_private_key: readFileSync(file('ca'), 'utf8') })
    expect((await ssh(strict.home, strict.login(), ['true'])).code).toBe(255)
    writeFileSync(file('principals'), `${strict.account.name}\n`)
    expect((await ssh(strict.home, strict.login(), ['true'])).code).toBe(0)
  } finally {
    await strict.stop()
  }
})

test('an account of a global domain, by the authority of that domain', async () => {
  const { name } = bastion.account
  await bastion.broker.must('POST', '/domains', {
    domain_name: 'corp',
    ca_private_key: readFileSync(file('ecdsa-ca'), 'utf8'),
  })
  await bastion.broker.must('POST', '/domains/corp/accounts', { account_name: 'svc', account_login: name })
  await bastion.broker.must('PUT', '/targetgroups/ops1-srv1-targets', {
    session: { accounts: [`${name}@local:srv1:ssh`, 'svc@corp:srv1:ssh'] },
  })
  const login = bastion.login({ user: 'ops1+svc@corp@srv1' })
  expect((await ssh(bastion.home, login, ['id -un'])).stdout).toBe(`${name}\n`)
  expect(accepted()![3]).toBe('ECDSA')
  await bastion.broker.must('PUT', '/accounts/svc@corp', { account_login: `${name},root` })
  const refused = await ssh(bastion.home, login, ['id -un'])
  expect(refused.code).toBe(255)
  expect(refused.stderr).toContain('cannot be the principal of a certificate')
})

describe('where a certificate is not enough', () => {
  let dropbear: Dropbear
  beforeAll(async () => {
    dropbear = await startDropbear({ user: bastion.account })
    await bastion.broker.must('POST', '/devices/srv1/services', {
      service_name: 'small',
      protocol: 'SSH',
      port: dropbear.port,
    })
    await bastion.broker.must('PUT', '/targetgroups/ops1-srv1-targets', {
      session: {
        accounts: [`${bastion.account.name}@local:srv1:ssh`, `${bastion.account.name}@local:srv1:small`],
      },
    })
  })
  afterAll(() => dropbear?.stop())

  const small = () => bastion.login({ user: `ops1+${bastion.account.name}@local@srv1+small` })

  test('dropbear refuses it, and the user reads that it knows none', async () => {
    const done = await ssh(bastion.home, small(), ['true'])
    expect(done.code).toBe(255)
    expect(done.stderr).toContain('dropbear')
  })

  test("the account's own credential is tried after it", async () => {
    await bastion.broker.must('PUT', await accountPath(), {
      credentials: [{ type: 'password', password: bastion.account.password }],
    })
    try {
      expect((await ssh(bastion.home, small(), ['exit 4'])).code).toBe(4)
    } finally {
      await bastion.broker.must('PUT', await accountPath(), { credentials: [] })
    }
  })
})
