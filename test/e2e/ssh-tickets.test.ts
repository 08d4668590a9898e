/** Persons sign in over SSH by tickets of MIT's KDC, which OpenSSH and PuTTY show. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type MitKdc, REALM, startKdc } from '../peers/kerberos.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Bastion, startBastion } from './bastion.ts'

const HOST = 'host/127.0.0.1'
const KDC_PROGRAMS = ['krb5kdc', 'kdb5_util', 'kadmin.local', 'kinit'] as const

describeWithPeers('tickets over SSH', [...KDC_PROGRAMS, 'sshd'], () => {
  let bastion: Bastion
  let kdc: MitKdc
  let tickets: NodeJS.ProcessEnv

  beforeAll(async () => {
    ;[bastion, kdc] = await Promise.all([startBastion(), startKdc()])
    const { KRB5_CONFIG, KRB5CCNAME } = kdc.env
    tickets = { KRB5_CONFIG, KRB5CCNAME }
    for (const name of ['alice', 'bob']) await kdc.admin(`addprinc -pw Person-Pass1 ${name}`)
    for (const name of [HOST, 'HTTP/127.0.0.1']) await kdc.admin(`addprinc -randkey ${name}`)
    const { broker } = bastion
    await broker.must('POST', '/externalauths', {
      authentication_name: 'realm',
      type: 'KERBEROS',
      host: '127.0.0.1',
      port: kdc.port,
      kerberos: { realm: REALM, service_principal: HOST },
      keytab: await kdc.keytab(HOST),
    })
    await broker.must('POST', '/authdomains', {
      domain_name: 'CORP',
      type: 'KERBEROS',
      external_auths: ['realm'],
    })
    await broker.must('POST', '/authdomains/CORP/mappings', {
      user_group: 'ops1-srv1-users',
      external_group: '*',
    })
    await kdc.ticketOf('alice', 'Person-Pass1')
  }, 60_000)
  afterAll(async () => {
    await Promise.all([bastion?.stop(), kdc?.stop()])
  })

  const shows = (user: string, options: string[] = []) => ({
    ...bastion.login({ user: `${user}:${bastion.account.name}@srv1` }),
    method: 'gssapi-with-mic',
    options: ['GSSAPIAuthentication=yes', ...options],
  })
  const open = (user: string) =>
    ssh(bastion.home, shows(user), ['id', '-un'], { env: tickets })

  test('open a session under the name of the ticket, in each form of the login string', async () => {
    for (const user of ['alice@CORP', 'CORP\\alice', 'alice']) {
      const run = await open(user)
      expect([user, run.stdout, run.code]).toEqual([user, `${bastion.account.name}\n`, 0])
    }
    expect((await bastion.closedSessions(3)).map(({ user }) => user)).toEqual(Array(3).fill('alice@CORP'))
    expect((await bastion.events('auth.success')).map(({ user, method }) => [user, method])).toContainEqual([
      'alice@CORP',
      'gssapi-with-mic',
    ])
  })
})
