/** A provider, here curl, provisions persons of a real directory at a whole bastion: their sessions end when it says so. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LDAP_ADMIN, type Slapd, SUFFIX, startSlapd } from '../peers/directory.ts'
import { sshTerminal } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { type CertificateFiles, certificateFiles } from '../peers/vnc/certificate.ts'
import { type Bastion, startBastion } from './bastion.ts'

const PASSWORD = 'Pass-of-alice'
const SCHEMAS = 'urn:ietf:params:scim:schemas:core:2.0'
const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

interface Resource {
  id: string
  active?: boolean
}

describeWithPeers('provisioning by SCIM', ['slapd', 'sshd', 'curl'], () => {
  let certificate: CertificateFiles
  let slapd: Slapd
  let bastion: Bastion
  let token: string

  beforeAll(async () => {
    certificate = await certificateFiles()
    slapd = await startSlapd({ alice: PASSWORD, bob: PASSWORD, carol: PASSWORD }, certificate)
    bastion = await startBastion()
    const { broker } = bastion
    await broker.must('POST', '/externalauths', {
      authentication_name: 'directory',
      type: 'LDAP',
      host: '127.0.0.1',
      port: slapd.ldaps,
      bind_password: LDAP_ADMIN.password,
      ldap: { base_dn: SUFFIX, bind_dn: LDAP_ADMIN.login, ca_certificates: certificate.pem.cert },
    })
    await broker.must('POST', '/authdomains', {
      domain_name: 'corp',
      type: 'LDAP',
      external_auths: ['directory'],
      scim_identifier: 'user_name',
    })
    await broker.must('POST', '/authdomains/corp/mappings', {
      user_group: 'ops1-srv1-users',
      external_group: 'Operators',
    })
    const made = await broker.must<{ token: string }>('POST', '/authdomains/corp/scimtokens', {
      token_name: 'idp',
    })
    token = made.token
  })
  afterAll(async () => {
    await bastion.stop()
    await slapd.stop()
    certificate.remove()
  })

  async function scim(method: string, path: string, body?: object): Promise<Resource> {
    const { stdout, stderr } = await run(findProgram('curl'), [
      ...['-sS', '--fail-with-body', '--insecure', '-X', method],
      ...['-H', `Authorization: Bearer ${token}`, '-H', 'Content-Type: application/scim+json'],
      ...(body ? ['-d', JSON.stringify(body)] : []),
      `https://127.0.0.1:${bastion.broker.ports.https}/scim/v2${path}`,
    ])
    expect([stderr, stdout]).toEqual(['', stdout])
    return stdout === '' ? { id: '' } : (JSON.parse(stdout) as Resource)
  }

  const open = async (name: string) => {
    const user = `${name}@corp+${bastion.account.name}@srv1`
    const login = bastion.login({
      ...{ user, password: PASSWORD, method: 'keyboard-interactive' },
      options: ['NumberOfPasswordPrompts=1'],
    })
    const terminal = sshTerminal(bastion.home, login, [], { typed: true })
    await terminal.expect('assword: ')
    terminal.send(`${PASSWORD}\r`)
    return terminal
  }

  test('ends running sessions of a user that is made inactive, removed, or taken out of the group', async () => {
    expect(await (await open('alice')).exit()).toBe(255)
    const made = await Promise.all(
      ['alice', 'bob', 'carol'].map((userName) =>
        scim('POST', '/Users', { schemas: [`${SCHEMAS}:User`], userName }),
      ),
    )
    const [alice, bob, carol] = made.map(({ id }) => id)
    const members = made.map(({ id }) => ({ value: id }))
    const group = { schemas: [`${SCHEMAS}:Group`], displayName: 'Operators', members }
    const { id: operators } = await scim('POST', '/Groups', group)
    const ways: [string, () => Promise<Resource>][] = [
      [
        'alice',
        () =>
          scim('PATCH', `/Users/${alice}`, {
            schemas: [PATCH],
            Operations: [{ op: 'Replace', path: 'active', value: 'False' }],
          }),
      ],
      ['bob', () => scim('DELETE', `/Users/${bob}`)],
      [
        'carol',
        () =>
          scim('PATCH', `/Groups/${operators}`, {
            schemas: [PATCH],
            Operations: [{ op: 'remove', path: `members[value eq "${carol}"]` }],
          }),
      ],
    ]
    const terminals = []
    for (const [name] of ways) {
      const terminal = await open(name)
      await terminal.expect(bastion.account.prompt)
      terminals.push(terminal)
    }
    for (const [at, [name, end]] of ways.entries()) {
      await end()
      // In the audit log before the answer: the change ends the session, and not a later look at what runs.
      const { must } = bastion.broker
      const kills = await must<{ session: string }[]>('GET', '/events?event=session.kill')
      expect(kills).toHaveLength(at + 1)
      const users = kills.map(({ session }) => must<{ user: string }>('GET', `/sessions/${session}`))
      expect(await Promise.all(users)).toContainEqual(expect.objectContaining({ user: `${name}@corp` }))
      await terminals[at]!.exit()
      expect(await (await open(name)).exit()).toBe(255)
    }
    await scim('PATCH', `/Users/${alice}`, {
      schemas: [PATCH],
      Operations: [{ op: 'replace', value: { active: true } }],
    })
    const back = await open('alice')
    await back.expect(bastion.account.prompt)
    await back.close()
  })
})
