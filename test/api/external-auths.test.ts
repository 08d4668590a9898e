/** Servers of sign-in, authentication domains and mappings, over the API. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { keytabOf } from '../kerberos/keytab.ts'
import { certificateFiles } from '../peers/vnc/certificate.ts'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
let pem: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  const files = await certificateFiles()
  pem = files.pem.cert
  files.remove()
  await must('POST', '/usergroups', { group_name: 'dba' })
})
afterAll(() => h.close())

const call = (method: string, path: string, body?: object, as = cookie) =>
  h.call(method, path, { cookie: as, ...(body && { body }) })
async function must(method: string, path: string, body?: object) {
  const answer = await call(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
  return answer.body
}
const ldap = { base_dn: 'dc=lab' }
const server = { type: 'LDAP', host: 'ldap1.lab', ldap }

test('a server has its defaults, and its secrets never come back', async () => {
  const made = await must('POST', '/externalauths', {
    ...server,
    authentication_name: 'first',
    ldap: { ...ldap, bind_dn: 'cn=svc', ca_certificates: pem },
    bind_password: 'canary-5d1e',
  })
  expect(made).toMatchObject({
    host: 'ldap1.lab',
    port: null,
    backup_servers: [],
    timeout: 5,
    secrets: ['bind_password'],
    ldap: {
      security: 'ldaps',
      directory: 'generic',
      login_attribute: 'uid',
      nested_groups: false,
      server_name: null,
      user_filter: null,
    },
  })
  const changed = await must('PUT', '/externalauths/first', { timeout: 10, ldap: { nested_groups: true } })
  expect(changed).toMatchObject({ timeout: 10, secrets: ['bind_password'], ldap: { bind_dn: 'cn=svc' } })
  expect(JSON.stringify([made, changed])).not.toContain('canary')
  expect(JSON.stringify(await must('GET', '/externalauths'))).not.toContain('canary')
  expect((await must('PUT', '/externalauths/first', { bind_password: null })).secrets).toEqual([])
  const auth = (await h.store.externalAuths.find('first'))!
  expect((await h.store.externalAuths.sealedSecrets(auth.id)).size).toBe(0)
})

test.each([
  ['host', { host: 'not a host' }],
  ['backup_servers/0/host', { backup_servers: [{ host: 'a/b' }] }],
  ['ldap/user_filter', { ldap: { ...ldap, user_filter: '(uid=*' } }],
  ['ldap/user_filter', { ldap: { ...ldap, user_filter: 'uid=*' } }],
  ['ldap/user_filter', { ldap: { ...ldap, user_filter: `${'(&'.repeat(70)}(a=b)${')'.repeat(70)}` } }],
  ['ldap/base_dn', { ldap: {} }],
  ['ldap/ca_certificates', { ldap: { ...ldap, ca_certificates: 'none' } }],
  [
    'ldap/client_certificate',
    { ldap: { ...ldap, client_certificate: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' } },
  ],
  ['ldap/server_name', { ldap: { ...ldap, server_name: 'a b' } }],
  ['ldap/login_attribute', { ldap: { ...ldap, login_attribute: 'uid)(a=*' } }],
  ['timeout', { timeout: 61 }],
  ['type', { type: 'NIS' }],
])('is refused with a bad %s', async (field, change) => {
  const answer = await call('POST', '/externalauths', { ...server, authentication_name: 'bad', ...change })
  expect([answer.status, answer.body.details?.[0]?.field]).toEqual([400, field])
  expect(await h.store.externalAuths.find('bad')).toBeUndefined()
})

test('a stored secret does not go to another server, or by a weaker way, unseen', async () => {
  const path = '/externalauths/moved'
  const own = { ...server, authentication_name: 'moved', bind_password: 'canary' }
  await must('POST', '/externalauths', own)
  for (const change of [
    { host: 'evil.lab' },
    { port: 6636 },
    { backup_servers: [{ host: 'evil.lab' }] },
    { backup_servers: [{ host: server.host, port: 6636 }] },
    { ldap: { security: 'none' } },
  ]) {
    const answer = await call('PUT', path, change)
    expect([answer.status, answer.body.details[0].field]).toEqual([400, 'bind_password'])
  }
  expect(await must('PUT', path, { host: 'new.lab', bind_password: 'again' })).toMatchObject({
    host: 'new.lab',
  })
  expect(await must('PUT', path, { host: 'newer.lab', bind_password: null })).toMatchObject({ secrets: [] })
})

test('a domain names its servers, and its mappings say what their groups give', async () => {
  await must('POST', '/externalauths', { ...server, authentication_name: 'one' })
  await must('POST', '/externalauths', { ...server, authentication_name: 'two' })
  const made = await must('POST', '/authdomains', {
    domain_name: 'corp',
    type: 'LDAP',
    external_auths: ['two', 'one'],
    is_default: true,
    public_key_attribute: 'sshPublicKey',
  })
  expect(made).toMatchObject({
    external_auths: ['two', 'one'],
    secondary_auth: [],
    default_language: 'en',
    public_key_attribute: 'sshPublicKey',
    mail_attribute: null,
  })
  expect(
    await must('PUT', '/authdomains/corp', { external_auths: ['one'], public_key_attribute: null }),
  ).toMatchObject({
    external_auths: ['one'],
    public_key_attribute: null,
  })
  expect((await call('DELETE', '/externalauths/one')).body.error).toBe('in_use')
  const mapping = await must('POST', '/authdomains/corp/mappings', {
    user_group: 'dba',
    external_group: 'cn=dba,dc=lab',
  })
  expect(mapping).toMatchObject({ auth_domain: 'corp', user_group: 'dba', profile: 'user' })
  const again = { user_group: 'dba', external_group: 'CN=DBA, DC=lab' }
  expect((await call('POST', '/authdomains/corp/mappings', again)).status).toBe(409)
  expect((await call('DELETE', '/usergroups/dba')).body.error).toBe('in_use')
  const path = `/authdomains/corp/mappings/${mapping.id}`
  expect(await must('PUT', path, { profile: 'auditor' })).toMatchObject({ profile: 'auditor' })
  expect((await call('GET', `/authdomains/${made.id}/mappings/${mapping.id}`)).status).toBe(200)
  await must('POST', '/authdomains', { domain_name: 'other', type: 'LDAP' })
  expect((await call('GET', `/authdomains/other/mappings/${mapping.id}`)).status).toBe(404)
  await must('DELETE', path)
})

test.each([
  ['external_auths/0', { external_auths: ['nowhere'] }, 'unknown_reference'],
  ['secondary_auth/0', { secondary_auth: ['nowhere'] }, 'unknown_reference'],
  ['mail_attribute', { mail_attribute: 'a)(b=*' }, 'invalid_field'],
  ['default_language', { default_language: 'tlh' }, 'invalid_field'],
])('a domain with a bad %s is refused', async (field, change, error) => {
  const answer = await call('POST', '/authdomains', { domain_name: 'bad', type: 'LDAP', ...change })
  expect(answer.body).toMatchObject({ error, details: [{ field }] })
})

test('a profile beyond the own one is given to no external group, and its servers are not changed', async () => {
  await must('POST', '/profiles', {
    profile_name: 'gatekeeper',
    rights: { profiles: 'modify', user_groups: 'view' },
  })
  await h.addUser('gate', 'gatekeeper' as 'user')
  const gate = await h.signIn('gate')
  await must('POST', '/externalauths', { ...server, authentication_name: 'theirs' })
  await must('POST', '/authdomains', { domain_name: 'theirs', type: 'LDAP', external_auths: ['theirs'] })
  const all = { user_group: 'dba', external_group: '*', profile: 'product_administrator' }
  const beyond = await call('POST', '/authdomains/theirs/mappings', all, gate)
  expect([beyond.status, beyond.body.error]).toEqual([403, 'profile_exceeds_own'])
  expect((await call('PUT', '/externalauths/theirs', { host: 'evil.lab' }, gate)).status).toBe(200)
  const { id } = await must('POST', '/authdomains/theirs/mappings', all)
  for (const [method, path, body] of [
    ['PUT', '/externalauths/theirs', { host: 'evil2.lab' }],
    ['PUT', '/authdomains/theirs', { external_auths: ['one'] }],
    ['DELETE', '/authdomains/theirs', undefined],
    ['PUT', `/authdomains/theirs/mappings/${id}`, { external_group: 'cn=evil' }],
  ] as const) {
    const answer = await call(method, path, body, gate)
    expect([path, answer.status, answer.body.error]).toEqual([path, 403, 'profile_exceeds_own'])
  }
})

const refused = async (method: string, path: string, body: object | undefined, as: string) => {
  const { status, body: error } = await call(method, path, body, as)
  return `${status} ${error?.error}`
}

/** Signs in a user who may set up sign-in, with these further rights. */
async function keeper(name: string, rights: object): Promise<string> {
  const own = { targets: 'view', checkout: 'execute', approvals: 'modify', profiles: 'modify' }
  await must('POST', '/profiles', { profile_name: name, rights: { ...own, ...rights } })
  await h.addUser(name, name as 'user')
  return await h.signIn(name)
}

test('a younger mapping with more rights does not come to count by what a lesser administrator does', async () => {
  const lesser = await keeper('lesser', { user_groups: 'modify' })
  await must('POST', '/externalauths', { ...server, authentication_name: 'lift' })
  await must('POST', '/authdomains', { domain_name: 'lift', type: 'LDAP', external_auths: ['lift'] })
  const [path, domain] = ['/authdomains/lift/mappings', (await h.store.authDomains.find('lift'))!]
  const older = await must('POST', path, { user_group: 'dba', external_group: 'staff' })
  await must('POST', path, { user_group: 'dba', external_group: 'heads', profile: 'product_administrator' })
  const person = { userName: 'mallory', groups: ['staff', 'heads'] }
  expect((await h.store.persons.signedIn(domain.id, person))!.profile).toBe('user')
  const beyond = '403 profile_exceeds_own'
  expect(await refused('DELETE', `${path}/${older.id}`, undefined, lesser)).toBe(beyond)
  expect(await refused('PUT', `${path}/${older.id}`, { external_group: 'x' }, lesser)).toBe(beyond)
  expect((await h.store.users.find('mallory@lift'))!.profile).toBe('user')
  await must('DELETE', '/authdomains/lift')
})

test('groups are given by mappings, and by their servers, only with the right to change groups', async () => {
  const [without, lesser] = [await keeper('without', { user_groups: 'view' }), await h.signIn('lesser')]
  await must('POST', '/externalauths', { ...server, authentication_name: 'groups' })
  await must('POST', '/authdomains', { domain_name: 'groups', type: 'LDAP', external_auths: ['groups'] })
  const path = '/authdomains/groups/mappings'
  const all = { user_group: 'dba', external_group: '*' }
  expect(await refused('POST', path, all, without)).toBe('403 forbidden')
  const made = await call('POST', path, all, lesser)
  expect(made.status).toBe(201)
  for (const [method, at, body] of [
    ['PUT', `${path}/${made.body.id}`, { user_group: 'dba' }],
    ['DELETE', `${path}/${made.body.id}`, undefined],
    ['PUT', '/externalauths/groups', { host: 'evil.lab' }],
    ['PUT', '/authdomains/groups', { external_auths: [] }],
    ['DELETE', '/authdomains/groups', undefined],
  ] as const)
    expect([at, await refused(method, at, body, without)]).toEqual([at, '403 forbidden'])
  expect((await call('PUT', '/externalauths/groups', { host: 'new.lab' }, lesser)).status).toBe(200)
  expect((await call('DELETE', '/authdomains/groups', undefined, lesser)).status).toBe(204)
})

test('a server by which a user with more rights signs in is not moved', async () => {
  const lesser = await h.signIn('lesser')
  const users = await keeper('users', { users: 'modify' })
  await must('POST', '/externalauths', { ...server, authentication_name: 'judge' })
  const user = { user_name: 'root', profile: 'product_administrator', user_auths: ['judge'] }
  await must('POST', '/users', user)
  expect(await refused('PUT', '/externalauths/judge', { host: 'evil.lab' }, users)).toBe(
    '403 profile_exceeds_own',
  )
  await must('PUT', '/users/root', { profile: 'user' })
  expect(await refused('PUT', '/externalauths/judge', { host: 'evil.lab' }, lesser)).toBe('403 forbidden')
  expect((await call('PUT', '/externalauths/judge', { host: 'new.lab' }, users)).status).toBe(200)
})

test('bare names are not led to other servers by one with less rights than their persons', async () => {
  const lesser = await h.signIn('lesser')
  await must('POST', '/authdomains', { domain_name: 'bare', type: 'LDAP', is_default: true })
  const heads = { user_group: 'dba', external_group: 'heads', profile: 'product_administrator' }
  const { id } = await must('POST', '/authdomains/bare/mappings', heads)
  const own = { domain_name: 'own', type: 'LDAP' }
  const beyond = '403 profile_exceeds_own'
  expect(await refused('POST', '/authdomains', { ...own, is_default: true }, lesser)).toBe(beyond)
  expect((await call('POST', '/authdomains', own, lesser)).status).toBe(201)
  expect(await refused('PUT', '/authdomains/own', { is_default: true }, lesser)).toBe(beyond)
  expect((await h.store.authDomains.standard())!.domainName).toBe('bare')
  await must('PUT', `/authdomains/bare/mappings/${id}`, { profile: 'user' })
  expect((await call('PUT', '/authdomains/own', { is_default: true }, lesser)).status).toBe(200)
})

test('users name external authentications among their methods', async () => {
  await must('POST', '/externalauths', { ...server, authentication_name: 'radius_1' })
  await must('POST', '/externalauths', { ...server, authentication_name: 'radiusx1' })
  const user = await must('POST', '/users', {
    user_name: 'ivy',
    user_auths: ['RADIUS_1', 'local_sshkey', 'radius_1'],
  })
  expect(user.user_auths).toEqual(['radius_1', 'local_sshkey'])
  expect((await call('DELETE', '/externalauths/radius_1')).body).toMatchObject({ error: 'in_use' })
  await must('DELETE', '/externalauths/radiusx1')
  await must('PUT', '/externalauths/radius_1', { authentication_name: 'otp' })
  expect((await must('GET', '/users/ivy')).user_auths).toEqual(['otp', 'local_sshkey'])
  const unknown = await call('PUT', '/users/ivy', { user_auths: ['local_sshkey', 'radius_1'] })
  expect(unknown.body).toMatchObject({ error: 'unknown_reference', details: [{ field: 'user_auths/1' }] })
  const reserved = await call('POST', '/externalauths', { ...server, authentication_name: 'Local_Password' })
  expect(reserved.body).toMatchObject({ error: 'invalid_field', details: [{ field: 'authentication_name' }] })
  await must('PUT', '/users/ivy', { user_auths: ['local_sshkey'] })
  await must('DELETE', '/externalauths/otp')
})

test('persons are no users of the API, and their names are taken', async () => {
  await must('POST', '/authdomains/other/mappings', { user_group: 'dba', external_group: '*' })
  const domain = (await h.store.authDomains.find('other'))!
  const person = (await h.store.persons.signedIn(domain.id, { userName: 'ann', groups: [] }))!
  expect(JSON.stringify(await must('GET', '/users?limit=-1'))).not.toContain('ann@other')
  for (const ref of ['ann@other', person.id]) {
    expect((await call('GET', `/users/${ref}`)).status).toBe(404)
    expect((await call('PUT', `/users/${ref}`, { password: 'Tr0ub4dor&3 staple' })).status).toBe(404)
    expect((await call('DELETE', `/users/${ref}`)).status).toBe(404)
  }
  expect((await call('POST', '/users', { user_name: 'ann@other' })).status).toBe(400)

  await must('POST', '/users', { user_name: 'lea', password: 'Tr0ub4dor&3 staple' })
  expect(await must('PUT', '/usergroups/dba', { users: ['lea'] })).toMatchObject({ users: ['lea'] })
  expect(await must('GET', '/usergroups/dba')).toMatchObject({ users: ['lea'] })
  expect((await must('GET', '/usergroups?q=users=ann@other')).length).toBe(0)
  expect((await must('GET', '/usergroups?q=users=lea')).length).toBe(1)
  expect((await call('PUT', '/usergroups/dba', { users: ['ann@other'] })).body.error).toBe(
    'unknown_reference',
  )
  expect((await h.store.users.find('ann@other'))!.groupIds).toEqual(person.groupIds)
  const key = { key_name: 'robot', profile: 'product_administrator' }
  expect((await call('POST', '/apikeys', { ...key, users: ['ann@other'] })).body.error).toBe(
    'unknown_reference',
  )
  const { api_key: secret } = await must('POST', '/apikeys', { ...key, users: null, user_groups: null })
  const as = async (user: string) =>
    (await h.call('GET', '/session', { headers: { 'x-auth-key': secret, 'x-auth-user': user } })).status
  expect([await as('lea'), await as('ann@other')]).toEqual([200, 401])
})

test('a KDC has its realm, its service, and a keytab that is read before it is kept', async () => {
  const keytab = keytabOf([
    { realm: 'LAB.TEST', components: ['host', 'b.lab'], version: 2, type: 18, key: Buffer.alloc(32, 0x5e) },
  ]).toString('base64')
  const kerberos = { realm: 'LAB.TEST', service_principal: 'host/b.lab' }
  const kdc = { authentication_name: 'kdc', type: 'KERBEROS', host: 'kdc1.lab', kerberos, keytab }
  const made = await must('POST', '/externalauths', kdc)
  expect(made).toMatchObject({ kerberos, secrets: ['keytab'], ldap: {}, tacacs: {} })
  expect(JSON.stringify(made)).not.toContain(keytab)
  for (const [field, change] of [
    ['keytab', { keytab: 'AAAA' }],
    ['kerberos/realm', { kerberos: { ...kerberos, realm: 'A B' } }],
    ['kerberos/service_principal', { kerberos: { ...kerberos, service_principal: 'host/b.lab@OTHER' } }],
    ['shared_secret', { shared_secret: 'x' }],
  ] as const) {
    const answer = await call('POST', '/externalauths', { ...kdc, authentication_name: 'bad', ...change })
    expect([field, answer.body]).toMatchObject([field, { error: 'invalid_field', details: [{ field }] }])
  }
})

test('a RADIUS server has options of its own, and must sign its replies unless told', async () => {
  const base = { type: 'RADIUS', host: '10.0.0.18', authentication_name: 'codes', shared_secret: 'canary-9e' }
  const made = await must('POST', '/externalauths', base)
  const radius = {
    nas_identifier: null,
    require_message_authenticator: true,
    tries: 3,
    accounting_port: null,
    accounting_interval: 10,
  }
  expect(made).toMatchObject({ radius, secrets: ['shared_secret'], ldap: {}, tacacs: {} })
  expect(JSON.stringify(made)).not.toContain('canary')
  const told = {
    nas_identifier: 'bastion1',
    require_message_authenticator: false,
    tries: 1,
    accounting_port: 1813,
    accounting_interval: 5,
  }
  const given = { radius: told, shared_secret: 'canary-9e' }
  expect(await must('PUT', '/externalauths/codes', given)).toMatchObject({ radius: told })
  expect(await must('PUT', '/externalauths/codes', { radius: { tries: 2 } })).toMatchObject({
    radius: { ...told, tries: 2 },
  })
  for (const [field, body] of [
    ['radius/nas_identifier', { radius: { nas_identifier: 'ä'.repeat(127) } }],
    ['radius/tries', { radius: { tries: 11 } }],
    ['radius/accounting_port', { radius: { accounting_port: 0 } }],
    ['radius/accounting_interval', { radius: { accounting_interval: 0 } }],
    ['shared_secret', { host: '10.0.0.19' }],
    ['shared_secret', { port: 11812 }],
    ['shared_secret', { radius: { accounting_port: 11813 } }],
    ['tacacs', { tacacs: { accounting: true } }],
  ] as const) {
    const answer = await call('PUT', '/externalauths/codes', body)
    expect([field, answer]).toMatchObject([field, { status: 400, body: { details: [{ field }] } }])
  }
})

test('a TACACS+ server has options of its own, and stays in private networks unless told', async () => {
  const tacacs = {
    type: 'TACACS',
    host: '10.0.0.49',
    authentication_name: 'netops',
    shared_secret: 'canary-7c',
  }
  const made = await must('POST', '/externalauths', { ...tacacs, tacacs: { accounting: true } })
  expect(made).toMatchObject({
    secrets: ['shared_secret'],
    ldap: {},
    tacacs: {
      authentication: 'ascii',
      single_connect: false,
      authorization: true,
      accounting: true,
      command_accounting: false,
      allow_public_networks: false,
    },
  })
  const refused = async (body: object, field: string) => {
    const answer = await call('PUT', '/externalauths/netops', body)
    expect(answer).toMatchObject({ status: 400, body: { details: [{ field }] } })
  }
  await refused({ host: '192.0.2.49', shared_secret: 'x' }, 'host')
  await refused({ backup_servers: [{ host: '2001:db8::49' }], shared_secret: 'x' }, 'backup_servers/0/host')
  await refused({ host: '10.0.0.50' }, 'shared_secret')
  await refused({ port: 4949 }, 'shared_secret')
  await refused({ tacacs: { allow_public_networks: true } }, 'shared_secret')
  await refused({ ldap: { base_dn: 'dc=lab' } }, 'ldap')
  await refused({ bind_password: 'x' }, 'bind_password')
  const told = { allow_public_networks: true, single_connect: true }
  const moved = { host: '192.0.2.49', shared_secret: 'canary-7d', tacacs: told }
  expect(await must('PUT', '/externalauths/netops', moved)).toMatchObject({
    host: '192.0.2.49',
    tacacs: { ...told, accounting: true },
  })
  expect(JSON.stringify(await must('GET', '/externalauths'))).not.toContain('canary')
  const directory = await call('POST', '/externalauths', {
    ...server,
    authentication_name: 'other',
    tacacs: { accounting: true },
  })
  expect(directory).toMatchObject({ status: 400, body: { details: [{ field: 'tacacs' }] } })
  await must('DELETE', '/externalauths/netops')
})
