/** A store with rows in each table, through the repositories, and values that engines write differently. */
import { chainRows } from '../../../src/audit/chain.ts'
import { NO_CONDITIONS } from '../../../src/model/conditions.ts'
import type { SessionRecord } from '../../../src/model/objects.ts'
import { DEFAULT_PASSWORD_CHANGE_POLICY } from '../../../src/model/password-change.ts'
import type { Store } from '../../../src/store/store.ts'
import {
  newApproval,
  newAuthDomain,
  newExternalAuth,
  newNotification,
  newUser,
  smallEstate,
} from '../fixture.ts'

/** Texts at the borders of UTF-8's lengths, beyond UTF-16's first plane, and with a meaning in lists of PostgreSQL. */
export const TEXTS = [
  '',
  'NULL',
  '{"a",\\b}',
  "o'clock\t\r\n\u0001\u007f",
  '\u0080\u07ff\u0800\uffff',
  '\u{10000}\u{10ffff}',
  'é e\u0301 ⇄ שלום \u202e',
  '\ufeff',
]
const LARGEST = Number.MAX_SAFE_INTEGER
const LIMITS = { ofUser: 10, all: 10 }
const LOCKOUT = { pairFailures: 5, addressFailures: 50, windowMs: 1000, lockMs: 1000, maxEntries: 10 }

export const sessionRow = (id: string, more: Partial<SessionRecord> = {}): SessionRecord => ({
  id,
  begin: 1,
  user: 'ops1',
  sourceIp: '192.0.2.1',
  protocol: 'SSH',
  subprotocols: ['SSH_SHELL'],
  account: 'root',
  domain: 'local',
  device: 'srv1',
  service: 'ssh',
  targetHost: '192.0.2.2',
  authorization: 'ops',
  isRecorded: true,
  bytesIn: LARGEST,
  bytesOut: 0,
  ...more,
})

/** Appends events to the audit log, each with a text of so many characters. */
export async function appendEvents(store: Store, count: number, length = 0): Promise<void> {
  const events = Array.from({ length: count }, (_, at) => ({
    time: at,
    code: 'session.open' as const,
    fields: {
      session: at % 2 === 0 ? 'S1' : 'S2',
      user: `${TEXTS[at % TEXTS.length]}\0`,
      reason: 'x'.repeat(length),
    },
  }))
  await store.audit.append(chainRows(await store.audit.last(), events))
}

/** Makes a server, its domain with a mapping, and a person. */
async function fillSignIn(store: Store, userGroupId: string, targetGroupId: string): Promise<void> {
  const auth = await store.externalAuths.create(
    newExternalAuth('directory', { description: TEXTS.join(' ') }),
  )
  await store.externalAuths.setSealedSecrets(auth.id, new Map([['bind_password', Uint8Array.of(0, 255)]]))
  const notification = await store.notifications.create(
    newNotification('soc', {
      events: ['auth.*'],
      userGroupIds: [userGroupId],
      targetGroupIds: [targetGroupId],
    }),
  )
  await store.notifications.setSealedSecret(notification.id, 'signing_secret', Uint8Array.of(0, 250))
  const authDomain = await store.authDomains.create(newAuthDomain('corp', { externalAuthIds: [auth.id] }))
  await store.authDomainMappings.create({
    authDomainId: authDomain.id,
    userGroupId,
    externalGroup: '*',
    profile: 'user',
  })
  const { id: userId } = (await store.persons.signedIn(authDomain.id, {
    userName: 'ann',
    stableId: '1',
    groups: [],
  }))!
  const proof = { userId, externalAuthId: auth.id, sealed: Uint8Array.of(0, 252), secretRevision: 0 }
  await store.offlineProofs.set({ ...proof, time: LARGEST })
  await store.users.noteSignIn(userId, LARGEST)
  const begun = {
    userId,
    externalAuthId: auth.id,
    subject: 's',
    sid: TEXTS.join(' '),
    begin: 0,
    ends: LARGEST,
  }
  const bytes = () => Uint8Array.of(0, 253)
  const providerSession = await store.providerSessions.begin(begun, bytes, { ofUser: 1, all: 1 })
  const certificate = { userId, serial: 2n ** 64n - 1n, secretRevision: 0, fingerprint: 'f', address: 'a' }
  await store.userCertificates.add({ ...certificate, providerSession, begin: 0, end: LARGEST }, 1)
  await store.usedMessages.use([bytes()], LARGEST, 0, 1)
  const key = { credentialId: bytes(), publicKey: bytes(), signCount: 1, transports: [], created: LARGEST }
  await store.securityKeys.add(userId, { name: TEXTS.join(' '), ...key }, 1)
  await fillProvisioned(store)
}

/** Makes a domain that SCIM provisions, with a user, a group and a token. */
async function fillProvisioned(store: Store): Promise<void> {
  const { id: authDomainId } = await store.authDomains.create(newAuthDomain('provisioned', {}))
  const object = { userName: 'eva', isActive: false, more: { title: TEXTS.join(' ') } }
  const user = await store.scimUsers.create(authDomainId, object, LARGEST)
  const group = await store.scimGroups.create(authDomainId, { displayName: 'staff' }, LARGEST)
  const members = { isWhole: true, added: new Set([user.id]), removed: new Set<string>() }
  await store.scimGroups.update(group, { displayName: 'staff' }, members, LARGEST)
  const token = { authDomainId, tokenName: 't', ipSource: [], createdAt: LARGEST, lastAddress: 'a' }
  await store.scimTokens.create(token, Uint8Array.of(0, 251), 1)
}

/** Fills all tables. */
export async function fill(store: Store): Promise<void> {
  const estate = await smallEstate(store)
  const { user, userGroup, device, account, service, domain, targetGroup, authorization } = estate
  await fillSignIn(store, userGroup.id, targetGroup.id)
  for (const [at, text] of TEXTS.entries())
    await store.users.create(
      newUser(`user${at}`, {
        displayName: text,
        email: text,
        sshPublicKeys: [text],
        expirationDate: LARGEST,
      }),
    )
  await store.users.setPasswordHash(
    user.id,
    Uint8Array.from({ length: 256 }, (_, at) => at),
  )
  await store.targetGroups.update(targetGroup.id, {
    interactiveServiceIds: [service.id],
    passwordRetrievalAccountIds: [account.id],
  })
  const period = { startTime: '08:00', endTime: '18:00', weekDays: [] }
  const { id: timeframeId } = await store.timeframes.create({
    timeframeName: 'day',
    description: '',
    isOvertimable: false,
    timeZone: 'UTC',
    periods: [period],
    isFactory: false,
  })
  await store.userGroups.update(userGroup.id, { timeframeIds: [timeframeId] })
  await store.accounts.setSealedCredentials(account.id, [{ type: 'password', sealed: new Uint8Array(0) }])
  await store.domains.setSealedAuthority(domain.id, { sealed: new Uint8Array(1), publicKey: 'key' })
  await store.apiKeys.create({
    keyName: 'key',
    profile: 'user',
    ipSource: [],
    createdAt: 0,
    actsFor: { userIds: [user.id], groupIds: [userGroup.id] },
  })
  const key = { keyType: 'ssh-ed25519', fingerprint: 'SHA256:a', key: 'AAAA', firstSeen: 1 }
  await store.hostKeys.pinFirst({ deviceId: device.id, serviceId: service.id, ...key })
  await store.checkouts.create({ accountId: account.id, userId: user.id, begin: 1, expires: LARGEST }, true)
  await store.domains.update(domain.id, {
    change: {
      isEnabled: true,
      policyId: DEFAULT_PASSWORD_CHANGE_POLICY,
      plugin: 'Unix',
      parameters: { host: TEXTS[4] ?? '' },
      adminAccountId: account.id,
    },
  })
  await store.secretJobs.setSchedules([
    { domainId: domain.id, kind: 'check', period: '0 4 * * *', timeZone: 'UTC', since: 1, next: LARGEST },
  ])
  const asked = {
    accountId: account.id,
    type: 'password',
    kind: 'change',
    cause: 'demand',
    user: 'ops1',
  } as const
  const job = await store.secretJobs.add(
    { ...asked, isForced: true, due: 1, created: 1 },
    Uint8Array.of(0, 255),
  )
  await store.secretJobs.claim(job.id, 1, 2)
  await store.secretJobs.begin(job.id, 2, 1, Uint8Array.of(1))
  const recording = { state: 'sealed', size: LARGEST, frames: 1, digest: 'ab' } as const
  await store.sessions.create(sessionRow('S1', { end: 2, reason: 'cut\0off', recording }))
  await store.sessions.create(sessionRow('S2'))
  await store.uploads.adopt(5)
  await store.settings.set('audit.anchor', new Uint8Array(100))
  await store.settings.set('empty', new Uint8Array(0))
  const chief = await store.users.create(newUser('chief', { profile: 'approver', groupIds: [userGroup.id] }))
  const conditions = { ...NO_CONDITIONS, approvalRequired: true, approverGroupIds: [userGroup.id] }
  await store.authorizations.update(authorization.id, { conditions })
  const request = await store.approvals.create(newApproval(estate, 1), { ofUser: 10, all: 10 })
  const given = {
    userId: chief.id,
    userName: 'chief',
    approved: true,
    comment: TEXTS[3]!,
    time: 2,
    apiKey: '',
  }
  await store.approvals.answer(request!.id, given)
  const held = { kind: 'command' as const, detail: 'rm', screen: Uint8Array.of(0, 255) }
  await store.approvals.create(newApproval(estate, 2, held), { ofUser: 10, all: 10 })
  await store.signIns.begin(
    Uint8Array.of(1, 2),
    { userId: user.id, secretRevision: 1, begin: 1, lastUse: 2 },
    { begin: 0, lastUse: 0 },
    LIMITS,
  )
  const ticket = { protocol: 'VNC', address: '192.0.2.1', expires: LARGEST, sealed: new Uint8Array(9) }
  await store.tickets.add({ id: 'T1', userId: user.id, ...ticket, ticket: '{}' }, 0, LIMITS)
  const invitation = { id: 'I1', session: 'S1', address: '', expires: LARGEST, sealed: new Uint8Array(9) }
  await store.invitations.add(invitation, 0, 10)
  const sealed = Uint8Array.of(0, 254)
  await store.secondFactors.begin(user.id, sealed, 1)
  const first = { sealed, time: LARGEST, step: 3, drift: -1, digests: [Uint8Array.of(0, 253)] }
  await store.secondFactors.confirm(user.id, first)
  await store.secondFactors.remember(user, { address: '192.0.2.1', firstFactor: 'password' }, LARGEST)
  const keys = { pair: Uint8Array.of(1), address: Uint8Array.of(2), name: Uint8Array.of(3) }
  await store.lockouts.fail(keys, undefined, 1, LOCKOUT)
  await store.lockouts.reserve(keys, 1, LARGEST, LOCKOUT)
  await store.idempotency.claim(Uint8Array.of(2), 'request', 1, LARGEST)
  await store.idempotency.keep(
    Uint8Array.of(1),
    'other',
    { request: Uint8Array.of(0), time: 1, status: 201, answer: '{"a":"\\u0000"}' },
    0,
    10,
  )
  await appendEvents(store, 20)
  // The counter is ahead of the highest revision that is kept.
  await store.users.remove((await store.users.create(newUser('gone'))).id)
  await store.changes.removeOldest(5, 1000)
  const { last } = await store.changes.kept()
  if (last < 20) throw new Error('too few changes')
}
