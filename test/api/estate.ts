/** A small estate with values to find in every field of every collection. */
import { newApproval, newUser } from '../store/fixture.ts'
import type { Harness } from './harness.ts'

/** Needs a sign-in as `admin`, whose address is 127.0.0.1. */
/** A request of ops1 for approval. */
export const APPROVAL = '01K9T5RZ8Q4W6X2C3V1B0N7M4A'

export async function searchEstate(h: Harness, cookie: string): Promise<void> {
  const post = async (path: string, body: object) => {
    const answer = await h.call('POST', path, { cookie, body })
    if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.text}`)
    return answer.body
  }
  const { store } = h
  for (const group_name of ['linux-admins', 'dba', 'Empty_Group']) await post('/usergroups', { group_name })
  const groups = async (...names: string[]) =>
    Promise.all(names.map(async (name) => (await store.userGroups.find(name))!.id))
  await store.users.create(
    newUser('ops1', {
      displayName: 'Ops "One"',
      email: 'ops1@example.com',
      sshPublicKeys: ['ssh-ed25519 AAAA+/= ops1@laptop'],
      userAuths: ['local_password', 'local_sshkey'],
      expirationDate: Date.UTC(2031, 5, 30, 12),
      groupIds: await groups('linux-admins', 'dba'),
    }),
  )
  await store.users.create(
    newUser('Zoë', {
      displayName: '100%_\\',
      profile: 'auditor',
      ipSource: ['10.0.0.0/8'],
      isDisabled: true,
    }),
  )
  await store.users.create(newUser('zoe', { profile: 'approver', groupIds: await groups('linux-admins') }))
  await store.users.update((await store.users.find('admin'))!.id, { groupIds: await groups('dba') })
  const ldap = { base_dn: 'dc=lab' }
  for (const [authentication_name, description] of [
    ['directory', 'of the lab, 100%'],
    ['Second', ''],
  ])
    await post('/externalauths', { authentication_name, description, type: 'LDAP', host: '192.0.2.9', ldap })
  await post('/notifications', {
    notification_name: 'soc',
    type: 'WEBHOOK',
    user_groups: ['dba'],
    webhook: { url: 'https://soc.lab.test/events' },
  })
  await post('/authdomains', { domain_name: 'corp', type: 'LDAP', external_auths: ['directory', 'Second'] })
  await post('/authdomains', { domain_name: 'Dmz', type: 'LDAP', description: 'outside', is_default: true })
  for (const [external_group, user_group, profile] of [
    ['cn=admins,dc=lab', 'dba', 'auditor'],
    ['*', 'linux-admins', 'user'],
  ])
    await post('/authdomains/corp/mappings', { external_group, user_group, profile })
  const corp = (await store.authDomains.find('corp'))!
  await post('/authdomains/corp/scimtokens', { token_name: 'idp', ip_source: ['10.9.0.0/16'] })
  for (const [userName, groups] of [
    ['ann', ['cn=admins,dc=lab']],
    ['ben', []],
  ] as const)
    await store.persons.signedIn(corp.id, { userName, stableId: userName, groups: [...groups] })
  for (const [device_name, host, description] of [
    ['srv1', '192.0.2.1', 'Web, Rack 7'],
    ['srv2', '192.0.2.2', 'web_rack 17'],
    ['web1', 'web1.example.com', 'about 50*'],
    ['WEB-db', '2001:db8::1', '100% "\\" ÄÖ'],
  ])
    await post('/devices', { device_name, host, description })
  await post('/devices/srv1/services', { service_name: 'ssh', protocol: 'SSH', subprotocols: ['SSH_SHELL'] })
  await post('/devices/srv1/services', { service_name: 'ssh2', protocol: 'SSH', port: 2222 })
  await post('/devices/web1/services', { service_name: 'ssh', protocol: 'SSH' })
  await post('/domains', { domain_name: 'corp', description: 'all' })
  await post('/domains', { domain_name: 'Local', description: '' })
  await post('/devices/srv1/localdomains', { domain_name: 'db', description: 'databases' })
  const credentials = [{ type: 'password', password: 'canary-7f31' }]
  await post('/accounts', { account_name: 'root', device: 'srv1', credentials, description: 'Super' })
  await post('/accounts', { account_name: 'Root', device: 'web1', account_login: 'toor' })
  await post('/accounts', { account_name: 'oracle', device: 'srv1', domain: 'db' })
  await post('/accounts', { account_name: 'svc@corp%_', domain: 'corp', credentials })
  await post('/targetgroups', {
    group_name: 'servers',
    description: 'of Linux',
    session: { accounts: ['root@local:srv1:ssh', 'root@local:web1:ssh', 'svc@corp%_@corp:srv1:ssh2'] },
  })
  await post('/targetgroups', {
    group_name: 'vault',
    password_retrieval: { accounts: ['root@local@srv1', 'svc@corp%_@corp'] },
  })
  await post('/authorizations', {
    user_group: 'dba',
    target_group: 'servers',
    authorize_sessions: true,
    subprotocols: ['SSH_SHELL', 'SFTP_SESSION'],
  })
  await post('/authorizations', {
    user_group: 'linux-admins',
    target_group: 'servers',
    description: 'x',
    authorize_sessions: true,
  })
  await post('/authorizations', { user_group: 'linux-admins', target_group: 'vault', is_recorded: false })
  await post('/apikeys', {
    key_name: 'ci',
    profile: 'auditor',
    ip_source: ['192.0.2.0/24'],
    users: ['ops1'],
    user_groups: ['dba'],
  })
  await post('/apikeys', { key_name: 'CD', profile: 'operator', expiration_date: '2032-01-01T00:00:00Z' })
  const device = (await store.devices.find('srv1'))!
  const [service] = await store.services.ofDevice(device.id)
  for (const [state, fingerprint, firstSeen] of [
    ['accepted', 'SHA256:aAa', Date.UTC(2031, 0, 1)],
    ['offered', 'SHA256:bBb', Date.UTC(2031, 1, 1)],
  ] as const) {
    const place = { deviceId: device.id, serviceId: service!.id }
    await store.hostKeys.create({
      ...place,
      keyType: 'ssh-ed25519',
      fingerprint,
      key: `${fingerprint}=`,
      firstSeen,
      state,
    })
  }
  for (const [index, user, result] of [
    [0, 'ops1', 'success'],
    [1, 'ops1', 'killed'],
    [2, 'Zoë', undefined],
  ] as const) {
    const begin = Date.UTC(2031, 4 + index, 30, 12)
    await store.sessions.create({
      id: `01K9T5RZ8Q4W6X2C3V1B0N7M5${index}`,
      begin,
      ...(result && { end: begin + 60_000, result }),
      ...(result === 'killed' && { reason: 'enough' }),
      user,
      sourceIp: index === 0 ? '127.0.0.1' : '192.0.2.77',
      protocol: 'SSH',
      subprotocols: index === 0 ? ['SSH_SHELL'] : [],
      account: 'root',
      domain: 'local',
      device: index === 2 ? 'WEB1' : 'srv1',
      service: 'ssh',
      targetHost: '192.0.2.1',
      authorization: 'dba:servers',
      isRecorded: index !== 2,
      bytesIn: index * 100,
      bytesOut: 7,
      ...(index === 0 && { recording: { state: 'sealed', size: 1, frames: 1, digest: 'x' } }),
    })
  }
  const [authorization] = await store.authorizations
    .ofUserGroups(await groups('dba'))
    .then((all) => all.filter((one) => one.authorizeSessions))
  const [account] = (await store.accounts.meant({ account: 'root', device: 'srv1' }, 1)).map(
    (one) => one.account,
  )
  const user = (await store.users.find('ops1'))!
  const whole = { user, service: service!, account: account!, authorization: authorization! }
  const asked = newApproval(whole, Date.UTC(2031, 0, 1), { id: APPROVAL })
  await store.approvals.create(asked, { ofUser: 10, all: 10 })
  const time = Date.UTC(2031, 0, 1)
  await store.secretJobs.add({
    ...{ accountId: account!.id, type: 'password', kind: 'change', cause: 'demand', user: 'admin' },
    ...{ isForced: false, due: time, created: time },
  })
  const [shared] = await store.accounts.meant({ account: 'svc@corp%_', domainName: 'corp' }, 1)
  await store.secretJobs.add({
    ...{ accountId: shared!.account.id, type: 'password', kind: 'check', cause: 'schedule', user: '' },
    ...{ isForced: false, due: time, created: time },
  })
}
