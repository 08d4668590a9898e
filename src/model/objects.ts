/**
 * The objects that administrators provision, as the broker holds them. Names are those of spec.md 2.2 and of
 * contract.md; in the API the same words are the JSON fields. References between objects are names in the API
 * and ids here: `…Id` fields hold ids (ULID, 26 characters). Times are milliseconds since the epoch.
 */
import type { Protocol, Right } from './rights.ts'
import type { SshOptions } from './ssh-options.ts'

export type Id = string

export interface User {
  id: Id
  userName: string
  displayName: string
  email: string
  /** Name of a profile: what the user may do over the API. */
  profile: string
  userAuths: UserAuth[]
  /** One line each, OpenSSH's authorized_keys form without options: `ssh-ed25519 AAAA… comment`. */
  sshPublicKeys: string[]
  isDisabled: boolean
  /** undefined: never. */
  expirationDate?: number | undefined
  /** Networks or addresses the user may come from; empty: any. */
  ipSource: string[]
  groupIds: Id[]
  /** How often the password was set; the store counts. */
  secretRevision?: number
}

export const USER_AUTHS = ['local_password', 'local_sshkey'] as const
export type UserAuth = (typeof USER_AUTHS)[number]

/** The profiles from the factory. */
export const PROFILES = [
  'product_administrator',
  'operator',
  'auditor',
  'approver',
  'user',
  'sallyport_access_manager_session_audit',
  'sallyport_access_manager_session',
  'sallyport_access_manager_audit',
] as const
export type ProfileName = (typeof PROFILES)[number]

export interface UserGroup {
  id: Id
  groupName: string
  description: string
  userIds: Id[]
}

export interface Device {
  id: Id
  deviceName: string
  host: string
  description: string
}

/**
 * What to do about a target's host key that was not seen before: pin it at first sight, or refuse until an
 * administrator has accepted it. A key that differs from the pinned ones is always refused.
 */
export const HOST_KEY_POLICIES = ['first_sight', 'pinned'] as const
export type HostKeyPolicy = (typeof HOST_KEY_POLICIES)[number]

export interface Service {
  id: Id
  deviceId: Id
  serviceName: string
  protocol: Protocol
  port: number
  /** What the service allows at most; empty: all that authorizations grant. */
  subprotocols: Right[]
  /** undefined: as its connection policy says. */
  hostKeyPolicy?: HostKeyPolicy | undefined
  /** Of the same protocol; the one from the factory unless given. */
  connectionPolicyId?: Id
}

/** How the broker connects to services that name it. */
export interface ConnectionPolicy {
  id: Id
  policyName: string
  description: string
  protocol: Protocol
  hostKeyPolicy: HostKeyPolicy
  ssh: SshOptions
  isFactory: boolean
}

/** What holds for the checkout of secrets of accounts that name it. */
export interface CheckoutPolicy {
  id: Id
  policyName: string
  description: string
  /** While the secret is out, nobody else gets it or a session with it. */
  enableLock: boolean
  /** Seconds that a checkout lasts at most. */
  maxDuration: number
  isFactory: boolean
}

/** Ids of what is there from the first start (store/migrations/0003-policies.ts). */
export const DEFAULT_CHECKOUT_POLICY: Id = '00000000000000000000000201'
export const FACTORY_CONNECTION_POLICIES: Readonly<Record<Protocol, Id>> = {
  SSH: '00000000000000000000000301',
}

export interface Domain {
  id: Id
  domainName: string
  description: string
  /** The device whose local domain it is; undefined: a global domain. */
  deviceId?: Id
}

export interface Account {
  id: Id
  accountName: string
  /** What is sent to the target as user name; the account's name unless set. */
  accountLogin: string
  domainId: Id
  description: string
  /** Kinds of the credentials that are stored; the secrets themselves stay in the vault. */
  credentialTypes: CredentialType[]
  /** `default` unless given. */
  checkoutPolicyId?: Id
  /** How often credentials were set; the store counts. */
  secretRevision?: number
}

export const CREDENTIAL_TYPES = ['password', 'ssh_key'] as const
export type CredentialType = (typeof CREDENTIAL_TYPES)[number]

export interface TargetGroup {
  id: Id
  groupName: string
  description: string
  /** Targets of sessions: an account through a service of a device. */
  sessionAccounts: { accountId: Id; serviceId: Id }[]
  /** Accounts whose secret may be checked out, beside those of `sessionAccounts`. */
  passwordRetrievalAccountIds: Id[]
}

export interface Authorization {
  id: Id
  userGroupId: Id
  targetGroupId: Id
  description: string
  authorizeSessions: boolean
  authorizePasswordRetrieval: boolean
  subprotocols: Right[]
  isRecorded: boolean
}

export interface ApiKey {
  id: Id
  keyName: string
  /** Name of a profile. */
  profile: string
  /** Networks or addresses that the key works from; empty: any. */
  ipSource: string[]
  expirationDate?: number | undefined
  createdAt: number
}

export interface HostKey {
  id: Id
  deviceId: Id
  serviceId: Id
  /** SSH's name of the key's type, for example `ssh-ed25519`. */
  keyType: string
  /** OpenSSH's form: `SHA256:` and base64 without padding. */
  fingerprint: string
  /** The key blob (RFC 4253 6.6), base64. */
  key: string
  firstSeen: number
  /** `accepted` is trusted; `offered` was shown by the target and refused: an administrator may accept it. */
  state: 'accepted' | 'offered'
}

export interface Checkout {
  id: Id
  accountId: Id
  userId: Id
  begin: number
  expires: number
  /** When it was returned; undefined: still out (until `expires`). */
  end?: number
}

/** One session through the bastion: metadata for the audit (contract.md, Sessions). */
export interface SessionRecord {
  id: Id
  begin: number
  end?: number
  user: string
  sourceIp: string
  protocol: Protocol
  /** Rights that were used, not those that were granted. */
  subprotocols: Right[]
  account: string
  domain: string
  device: string
  service: string
  targetHost: string
  /** undefined while the session runs. */
  result?: 'success' | 'failure' | 'killed' | 'lost'
  reason?: string
  authorization: string
  isRecorded: boolean
  bytesIn: number
  bytesOut: number
  recording?: { state: RecordingState; size: number; frames: number; digest: string }
}

/** `open` while it runs, `sealed` by the broker at the end, `recovered` after a crash, `failed` when it broke. */
export type RecordingState = 'open' | 'sealed' | 'recovered' | 'failed'
