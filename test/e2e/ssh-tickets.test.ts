/** Persons sign in over SSH by tickets of MIT's KDC, and at a real sshd by those that they forward. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type MitKdc, REALM, startKdc } from '../peers/kerberos.ts'
import { scp, sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { freePort, run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { plink } from '../peers/putty.ts'
import { pythonClient } from '../peers/python.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'

const BASTION = 'host/127.0.0.1'
const TARGET = 'host/localhost'
const PASSWORD = 'Person-Pass1'
const PROGRAMS = [
  'krb5kdc',
  'kdb5_util',
  'kadmin.local',
  'kinit',
  'sshd',
  'plink',
  'python3-paramiko',
  'python3-gssapi',
  'python3-pyasn1',
] as const

describeWithPeers('tickets over SSH', [...PROGRAMS], () => {
  let bastion: Bastion
  let kdc: MitKdc
  let target: Sshd
  let tickets: NodeJS.ProcessEnv
  let account: string
  /** The bastion's. */
  let keytab: string

  beforeAll(async () => {
    ;[bastion, kdc] = await Promise.all([startBastion(), startKdc()])
    account = bastion.account.name
    const { KRB5_CONFIG, KRB5CCNAME } = kdc.env
    tickets = { KRB5_CONFIG, KRB5CCNAME }
    for (const name of ['alice', 'bob', 'ops1']) await kdc.admin(`addprinc -pw ${PASSWORD} ${name}`)
    for (const name of [BASTION, TARGET]) await kdc.admin(`addprinc -randkey ${name}`)
    const file = join(bastion.home.folder, 'target.keytab')
    writeFileSync(file, Buffer.from(await kdc.keytab(TARGET), 'base64'), { mode: 0o600 })
    // Only by a ticket.
    target = await startSshd({
      users: [{ name: account }],
      passwordAuthentication: false,
      keyboardInteractive: false,
      publicKey: false,
      extraConfig: ['GSSAPIAuthentication yes', 'GSSAPIStrictAcceptorCheck no'],
      env: { KRB5_KTNAME: file, KRB5_CONFIG },
    })
    writeFileSync(join(bastion.account.home, '.k5login'), `alice@${REALM}\n`)
    await run('chown', [account, join(bastion.account.home, '.k5login')])
    const { broker } = bastion
    await broker.must('POST', '/connectionpolicies', {
      policy_name: 'forwarded',
      protocol: 'SSH',
      authentication_methods: ['KERBEROS_FORWARDING', 'PUBKEY_VAULT'],
    })
    await broker.must('POST', '/devices', { device_name: 'srv2', host: 'localhost' })
    await broker.must('POST', '/devices/srv2/services', {
      service_name: 'ssh',
      protocol: 'SSH',
      port: target.port,
      connection_policy: 'forwarded',
    })
    await broker.must('POST', '/accounts', {
      account_name: account,
      device: 'srv2',
      domain: 'local',
      credentials: [],
    })
    await broker.must('PUT', '/targetgroups/ops1-srv1-targets', {
      session: { accounts: [`${account}@local:srv1:ssh`, `${account}@local:srv2:ssh`] },
    })
  }, 300_000)
  afterAll(async () => {
    await Promise.all([bastion?.stop(), kdc?.stop(), target?.stop()])
  })
  beforeEach(() => kdc.ticketOf('alice', PASSWORD))

  const login = (user: string, device = 'srv1', options: string[] = []) => ({
    port: bastion.broker.ports.ssh,
    user: `${user}:${account}@${device}`,
    method: 'gssapi-with-mic' as const,
    options: ['GSSAPIAuthentication=yes', ...options],
  })
  const idAt = (...where: Parameters<typeof login>) =>
    ssh(bastion.home, login(...where), ['id', '-un'], { env: tickets })
  const FORWARDS = ['GSSAPIDelegateCredentials=yes']

  test('are not offered before a domain has a key for them', async () => {
    const { stderr } = await ssh(bastion.home, { ...login('alice'), options: ['LogLevel=VERBOSE'] }, ['true'])
    expect(stderr).toContain('(publickey,keyboard-interactive,password)')
    const { broker } = bastion
    keytab = await kdc.keytab(BASTION)
    await broker.must('POST', '/externalauths', {
      authentication_name: 'realm',
      type: 'KERBEROS',
      host: '127.0.0.1',
      port: kdc.port,
      timeout: 2,
      kerberos: { realm: REALM, service_principal: BASTION },
      keytab,
    })
    const domain = { domain_name: 'CORP', type: 'KERBEROS', external_auths: ['realm'] }
    await broker.must('POST', '/authdomains', domain)
    const mapping = { user_group: 'ops1-srv1-users', external_group: '*' }
    await broker.must('POST', '/authdomains/CORP/mappings', mapping)
    await until('tickets to be offered', async () => (await idAt('alice')).code === 0 || undefined)
  })

  test('open a session under the name of the ticket, in each form of the login string', async () => {
    for (const user of ['alice@CORP', 'CORP\\alice', 'alice']) {
      const { stdout, stderr } = await idAt(user)
      expect([user, stdout, stderr]).toEqual([user, `${account}\n`, ''])
    }
    expect((await bastion.closedSessions(4)).map(({ user }) => user)).toEqual(Array(4).fill('alice@CORP'))
    expect((await bastion.events('auth.success', 4)).at(-1)).toMatchObject({
      user: 'alice@CORP',
      method: 'gssapi-with-mic',
      object: 'realm',
    })
  })

  test('serve SFTP, scp and a terminal, and the clients of PuTTY and Python', async () => {
    const local = join(bastion.home.folder, 'file')
    writeFileSync(local, 'by ticket')
    const shown = login('alice@CORP')
    const [put, copied] = [join(bastion.account.home, 'put'), join(bastion.account.home, 'copied')]
    expect((await sftp(bastion.home, shown, [`put ${local} ${put}`], { env: tickets })).code).toBe(0)
    expect((await scp(bastion.home, shown, local, { remote: copied }, [], { env: tickets })).code).toBe(0)
    expect([readFileSync(put, 'utf8'), readFileSync(copied, 'utf8')]).toEqual(['by ticket', 'by ticket'])
    const terminal = sshTerminal(bastion.home, shown, [], { env: tickets })
    await terminal.expect(bastion.account.prompt)
    await terminal.close()
    const scan = await run(findProgram('ssh-keyscan'), [
      '-t',
      'ed25519',
      '-p',
      String(shown.port),
      '127.0.0.1',
    ])
    const key = await run(findProgram('ssh-keygen'), ['-l', '-f', '-'], { input: scan.stdout })
    const hostFingerprint = /SHA256:\S+/.exec(key.stdout)![0]
    const putty = await plink(bastion.home, { ...shown, hostFingerprint }, 'id -un', { env: tickets })
    expect([putty.stdout, putty.code]).toEqual([`${account}\n`, 0])
    const [python] = await pythonClient(
      'paramiko',
      bastion.home,
      shown,
      [{ exec: 'id -un' }],
      undefined,
      tickets,
    )
    expect(python).toMatchObject({ stdout: `${account}\n`, code: 0 })
  })

  test('of another person, for a local user or for nobody get one answer', async () => {
    const before = (await bastion.events('auth.failure')).length
    await kdc.ticketOf('ops1', PASSWORD)
    const texts: string[] = []
    // A ticket of the local user's name is not the local user's.
    for (const user of ['alice@CORP', 'ops1', 'nobody@CORP', 'nobody', 'ops1@OTHER']) {
      const { stderr, code } = await idAt(user)
      expect(code).toBe(255)
      texts.push(stderr.replaceAll(/\S+@127\.0\.0\.1/g, 'YOU'))
    }
    expect(new Set(texts).size).toBe(1)
    expect(texts[0]).toContain('(publickey,gssapi-with-mic,keyboard-interactive,password)')
    const failures = (await bastion.events('auth.failure', before + 5)).slice(before)
    expect(failures.map(({ reason }) => reason)).toEqual(Array(5).fill('other_name'))
    expect((await idAt('ops1@CORP')).stdout).toBe(`${account}\n`)
  })

  test('are followed by the second factor, in a round of keyboard-interactive', async () => {
    await bastion.broker.must('PUT', '/usergroups/ops1-srv1-users', { second_factor: 'required' })
    try {
      const shown = {
        ...login('alice@CORP'),
        options: [
          'GSSAPIAuthentication=yes',
          'PreferredAuthentications=gssapi-with-mic,keyboard-interactive',
        ],
      }
      const terminal = sshTerminal(bastion.home, shown, [], { typed: true, env: tickets })
      await terminal.expect('First code: ')
      await terminal.close()
      expect((await idAt('alice@CORP')).code).toBe(255)
    } finally {
      await bastion.broker.must('PUT', '/usergroups/ops1-srv1-users', { second_factor: 'none' })
    }
  })

  test('that are forwarded open a target whose policy wants it, by OpenSSH and by Python', async () => {
    const { stdout, stderr } = await idAt('alice@CORP', 'srv2', FORWARDS)
    expect([stdout, stderr]).toEqual([`${account}\n`, ''])
    const shown = login('alice@CORP', 'srv2')
    const [python] = await pythonClient(
      'paramiko',
      bastion.home,
      shown,
      [{ exec: 'id -un' }],
      undefined,
      tickets,
    )
    expect(python).toMatchObject({ stdout: `${account}\n`, code: 0 })
    expect(target.log().match(/Accepted gssapi-with-mic/g)).toHaveLength(2)
  })

  test('that are not forwarded, not allowed there or without a KDC are said in words, and open nothing', async () => {
    const without = await idAt('alice@CORP', 'srv2')
    expect(without.stderr).toContain('your client has forwarded no ticket of Kerberos that can be used')
    // The next method of the policy.
    await bastion.broker.must('PUT', '/devices/srv1/services/ssh', { connection_policy: 'forwarded' })
    const byKey = await idAt('alice@CORP', 'srv1', FORWARDS)
    expect([byKey.stdout, byKey.stderr]).toEqual([`${account}\n`, ''])
    await kdc.ticketOf('bob', PASSWORD)
    const other = await idAt('bob@CORP', 'srv2', FORWARDS)
    expect(other.stderr).toContain('it did not take your ticket')
    await kdc.admin(`modprinc -allow_tix ${TARGET}`)
    await kdc.ticketOf('alice', PASSWORD)
    const locked = await idAt('alice@CORP', 'srv2', FORWARDS)
    expect(locked.stderr).toContain('the KDC of your ticket knows no service host/localhost')
    await bastion.broker.must('PUT', '/externalauths/realm', { port: await freePort(), keytab })
    const away = await idAt('alice@CORP', 'srv2', FORWARDS)
    expect(away.stderr).toContain('no KDC of your ticket answers')
    expect([without, other, locked, away].map(({ code }) => code)).not.toContain(0)
  })
})
