import type { Approval } from '../../src/model/approvals.ts'
import type { AuthDomain, ExternalAuth } from '../../src/model/external-auths.ts'
import type { Notification } from '../../src/model/notifications.ts'
import type {
  Account,
  Authorization,
  Device,
  Domain,
  Service,
  TargetGroup,
  User,
  UserGroup,
} from '../../src/model/objects.ts'
import type { Store } from '../../src/store/store.ts'

export function newUser(userName: string, more: Partial<Omit<User, 'id'>> = {}): Omit<User, 'id'> {
  return {
    userName,
    displayName: '',
    email: '',
    profile: 'user',
    userAuths: ['local_password'],
    sshPublicKeys: [],
    isDisabled: false,
    ipSource: [],
    groupIds: [],
    ...more,
  }
}

export function newExternalAuth(
  authenticationName: string,
  more: Partial<Omit<ExternalAuth, 'id' | 'type' | 'options'>> = {},
): Omit<ExternalAuth, 'id'> {
  return {
    authenticationName,
    description: '',
    type: 'RADIUS',
    servers: [{ host: '192.0.2.9' }],
    timeoutMs: 5000,
    options: { requireMessageAuthenticator: true, tries: 3 },
    secretNames: [],
    secretRevision: 0,
    ...more,
  }
}

export function newNotification(
  notificationName: string,
  more: Partial<Omit<Notification, 'id' | 'type' | 'options'>> = {},
): Omit<Notification, 'id'> {
  return {
    notificationName,
    description: '',
    isDisabled: false,
    type: 'WEBHOOK',
    events: [],
    severity: 'warning',
    userGroupIds: [],
    targetGroupIds: [],
    options: { url: 'https://soc.lab.test/events' },
    secretNames: [],
    secretRevision: 0,
    ...more,
  }
}

export function newAuthDomain(
  domainName: string,
  more: Partial<Omit<AuthDomain, 'id'>> = {},
): Omit<AuthDomain, 'id'> {
  return {
    domainName,
    description: '',
    type: 'RADIUS',
    isDefault: false,
    externalAuthIds: [],
    secondaryAuthIds: [],
    attributes: {},
    defaultLanguage: 'en',
    ...more,
  }
}

export function newService(deviceId: string, more: Partial<Omit<Service, 'id'>> = {}): Omit<Service, 'id'> {
  return {
    deviceId,
    serviceName: 'ssh',
    protocol: 'SSH',
    port: 22,
    subprotocols: [],
    hostKeyPolicy: 'first_sight',
    ...more,
  }
}

export function newAccount(domainId: string, accountName: string): Omit<Account, 'id'> {
  return { accountName, accountLogin: accountName, domainId, description: '', credentialTypes: [] }
}

/** A request of ops1 that waits for one approver; `created` one hour before it expires. */
export function newApproval(
  { user, service, account, authorization }: Pick<Estate, 'user' | 'service' | 'account' | 'authorization'>,
  created: number,
  more: Partial<Approval> = {},
): Omit<Approval, 'id'> & { id?: string } {
  return {
    kind: 'session',
    state: 'pending',
    userId: user.id,
    userName: user.userName,
    authorizationId: authorization.id,
    authorizationName: 'ops:servers',
    target: 'root@local:srv1:ssh',
    serviceId: service.id,
    accountId: account.id,
    login: '',
    session: '',
    detail: '',
    created,
    duration: 3_600_000,
    answerBy: created + 3_600_000,
    comment: 'two\nlines',
    ticket: 'CHG-1',
    quorum: 1,
    isSingle: false,
    uses: 0,
    connection: '',
    apiKey: '',
    answers: [],
    ...more,
  }
}

export interface Estate {
  user: User
  userGroup: UserGroup
  device: Device
  service: Service
  domain: Domain
  account: Account
  targetGroup: TargetGroup
  authorization: Authorization
}

/** The smallest estate in which ops1 may open root@local:srv1:ssh. */
export async function smallEstate(store: Store): Promise<Estate> {
  const userGroup = await store.userGroups.create({ groupName: 'ops', description: '', userIds: [] })
  const user = await store.users.create(newUser('ops1', { groupIds: [userGroup.id] }))
  const device = await store.devices.create({ deviceName: 'srv1', host: '192.0.2.1', description: 'web' })
  const service = await store.services.create(newService(device.id))
  const domain = await store.domains.create({ domainName: 'local', description: '', deviceId: device.id })
  const account = await store.accounts.create(newAccount(domain.id, 'root'))
  const targetGroup = await store.targetGroups.create({
    groupName: 'servers',
    description: '',
    sessionAccounts: [{ accountId: account.id, serviceId: service.id }],
    interactiveServiceIds: [],
    mappingServiceIds: [],
    passwordRetrievalAccountIds: [],
  })
  const authorization = await store.authorizations.create({
    userGroupId: userGroup.id,
    targetGroupId: targetGroup.id,
    description: '',
    authorizeSessions: true,
    authorizePasswordRetrieval: true,
    subprotocols: ['SSH_SHELL'],
    isRecorded: true,
    recordingMode: 'standard',
  })
  return { user, userGroup, device, service, domain, account, targetGroup, authorization }
}
