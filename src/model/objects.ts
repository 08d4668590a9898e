/**
 * The objects that administrators provision, as the broker stores them. The names are those of the
 * JSON fields of the API. References between objects are names in the API and ids
 * here: `…Id` fields hold ids (ULID, 26 characters). Times are milliseconds since the epoch.
 */
import type { DomainKerberos } from './domain-kerberos.ts'
import type { LoginOptions } from './login-options.ts'
import type { ProfileRights } from './profile-rights.ts'
import type { RdpOptions } from './rdp-options.ts'
import { isDesktopProtocol, type Protocol, type Right } from './rights.ts'
import type { SshOptions } from './ssh-options.ts'
import type { VncOptions } from './vnc-options.ts'

export type Id = string

export interface User {
  id: Id
  userName: string
  displayName: string
  email: string
  /** Name of the profile: the user's rights in the API. */
  profile: string
  /** Own methods, and names of external authentications. */
  userAuths: string[]
  /** Names of external authentications, each asked for a second factor; absent for none. */
  secondaryAuths?: string[]
  /** One line each, OpenSSH's authorized_keys form without options: `ssh-ed25519 AAAA… comment`. */
  sshPublicKeys: string[]
  isDisabled: boolean
  /** Set if an administrator has locked the user. */
  isLocked?: boolean | undefined
  /** Absent if it never expires. */
  expirationDate?: number | undefined
  /** Networks or addresses that the user may come from; empty: any. */
  ipSource: string[]
  groupIds: Id[]
  /** How often the password was set. Counted by the store. */
  secretRevision?: number
  /** Set for a person of an authentication domain: no local user. Never changes. */
  authDomainId?: Id
}

export const USER_AUTHS = ['local_password', 'local_sshkey'] as const
export type UserAuth = (typeof USER_AUTHS)[number]

/** The built-in profiles. */
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

/** Whether sign-ins need a second factor of the bastion's own. */
export const FACTOR_POLICIES = ['none', 'required'] as const
/** A month. */
export const MAX_REMEMBERED_S = 31 * 86_400
export type FactorPolicy = (typeof FACTOR_POLICIES)[number]

export interface UserGroup {
  id: Id
  groupName: string
  description: string
  userIds: Id[]
  /** Of its members; absent: none. */
  secondFactor?: FactorPolicy
  /** Seconds for which a code counts for the client's address; absent: none. */
  secondFactorRemember?: number
  /** Whether an SSH key counts as both factors whose token has checked a PIN or a finger. */
  secondFactorKeys?: boolean
  /** Its authorizations count while one of them holds; absent: always. */
  timeframeIds?: Id[]
}

export interface Device {
  id: Id
  deviceName: string
  host: string
  description: string
}

/**
 * How a target's host key is verified. `first_sight` pins a key when the target has none yet, `pinned`
 * refuses it until an administrator has accepted it; both refuse a key that differs from the pinned ones.
 * `ca`: by a certificate of an authority of the connection policy; `dns`: by its fingerprint in the DNS,
 * authenticated. These two ignore pinned keys and pin none.
 */
export const HOST_KEY_POLICIES = ['first_sight', 'pinned', 'ca', 'dns'] as const
export type HostKeyPolicy = (typeof HOST_KEY_POLICIES)[number]
/** The policies that use pinned keys. */
export const PINNING: readonly HostKeyPolicy[] = ['first_sight', 'pinned']

/** Returns why the protocol does not support the policy, for an administrator, or undefined if it does. */
export function hostKeyPolicyFlaw(protocol: Protocol, policy: HostKeyPolicy | undefined): string | undefined {
  if (!isDesktopProtocol(protocol) || policy === undefined || PINNING.includes(policy)) return undefined
  return `expected ${PINNING.join(' or ')}: ${policy} vouches for SSH's host keys only`
}

export interface Service {
  id: Id
  deviceId: Id
  serviceName: string
  protocol: Protocol
  port: number
  /** The rights that the service allows; empty: all that authorizations grant. */
  subprotocols: Right[]
  /** Absent if its connection policy decides. */
  hostKeyPolicy?: HostKeyPolicy | undefined
  /** A policy of the same protocol; the built-in one if absent. */
  connectionPolicyId?: Id
  /** Name under which KDCs know the service; absent for the host of its device. */
  kerberosHost?: string | undefined
}

/** How the broker connects to the services that name the policy. */
export interface ConnectionPolicy {
  id: Id
  policyName: string
  description: string
  protocol: Protocol
  hostKeyPolicy: HostKeyPolicy
  ssh: SshOptions
  /** For TELNET and RLOGIN. */
  login: LoginOptions
  vnc: VncOptions
  rdp: RdpOptions
  isFactory: boolean
}

/** The rules for checkouts of the secrets of accounts that name the policy. */
export interface CheckoutPolicy {
  id: Id
  policyName: string
  description: string
  /** During a checkout no other user can check the secret out or open a session with it. */
  enableLock: boolean
  /** Seconds until a checkout expires whose user names no duration: `maxDuration` if absent. */
  duration?: number | undefined
  /** Seconds that one extension adds; 0 if there is none. */
  extension: number
  /** Seconds that a checkout lasts at most, with all its extensions. */
  maxDuration: number
  /** Whether the secret is changed when a checkout, or a session with the account, ends. */
  changesAtCheckin?: boolean
  isFactory: boolean
}

/** Ids of the objects that the first start creates (store/migrations/0003-policies.ts). */
export const DEFAULT_CHECKOUT_POLICY: Id = '00000000000000000000000201'
export const FACTORY_CONNECTION_POLICIES: Readonly<Record<Protocol, Id>> = {
  SSH: '00000000000000000000000301',
  TELNET: '00000000000000000000000302',
  RLOGIN: '00000000000000000000000303',
  VNC: '00000000000000000000000304',
  RDP: '00000000000000000000000305',
}

export interface Domain {
  id: Id
  domainName: string
  description: string
  /** The device whose local domain it is; absent for a global domain. */
  deviceId?: Id
  /**
   * The authority that certifies sessions with the domain's accounts, as an OpenSSH line; its private key is
   * in the vault.
   */
  caPublicKey?: string
  /** How often the authority was set or removed. Counted by the store. */
  secretRevision?: number
  /** How the secrets of its accounts are changed; absent if they are not. */
  change?: DomainChange | undefined
  /** Where its accounts get Kerberos tickets; absent for a local domain. */
  kerberos?: DomainKerberos | undefined
}

/** How the secrets of a domain's accounts are changed. */
export interface DomainChange {
  isEnabled: boolean
  policyId: Id
  plugin: string
  parameters: Readonly<Record<string, string | number | boolean>>
  /** Signs in where an account cannot change its own secret, or its stored one is wrong. */
  adminAccountId?: Id
}

/**
 * `pending`: a change is in progress. `mismatch`: the target refuses the stored secret. `unknown`: a change was
 * begun, and neither secret could be proved since.
 */
export const SECRET_STATES = ['ok', 'pending', 'mismatch', 'unknown'] as const
export type SecretState = (typeof SECRET_STATES)[number]

export interface Account {
  id: Id
  accountName: string
  /** The user name sent to the target; the account's name if absent. */
  accountLogin: string
  domainId: Id
  description: string
  /** Kinds of the stored credentials; the secrets themselves are in the vault. */
  credentialTypes: CredentialType[]
  /** `default` if absent. */
  checkoutPolicyId?: Id
  /** How often credentials were set. Counted by the store. */
  secretRevision?: number
  /** Whether schedules and check-ins leave its secret as it is. */
  isKept?: boolean
  /** The state of its secret, kept by the store with the changes of it; `ok` if absent. */
  secretState?: Exclude<SecretState, 'ok'>
  /** When the secret was set last, and proved last, in milliseconds since the epoch. */
  secretChanged?: number
  secretChecked?: number
  /** The last revision of the secret that ended the sessions begun before. Counted by the store. */
  severedRevision?: number
}

export const CREDENTIAL_TYPES = ['password', 'ssh_key', 'enable'] as const
export type CredentialType = (typeof CREDENTIAL_TYPES)[number]

/**
 * How a user logs in at a target: as a stored account, under the user's own name and password (account
 * mapping), or with a login and a password that the user types.
 */
export const TARGET_KINDS = ['account', 'mapping', 'interactive'] as const
export type TargetKind = (typeof TARGET_KINDS)[number]

export interface TargetGroup {
  id: Id
  groupName: string
  description: string
  /** Targets of sessions: an account through a service of a device. */
  sessionAccounts: { accountId: Id; serviceId: Id }[]
  /** Services where the user types the target's login and password. */
  interactiveServiceIds: Id[]
  /** Services where the user is logged in by the user's own name and password. */
  mappingServiceIds: Id[]
  /** Accounts whose secret may be checked out, besides those of `sessionAccounts`. */
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
  recordingMode: RecordingMode
  /** Absent if it sets none. */
  conditions?: Conditions | undefined
}

/** The conditions of an authorization, beyond its rights. */
export interface Conditions {
  /** Its sessions are announced as critical. */
  isCritical: boolean
  approvalRequired: boolean
  /** Ids of the user groups whose members may answer. */
  approverGroupIds: Id[]
  /** Approvers that have to agree within the requester's timeframes; 0: none has to. */
  activeQuorum: number
  /** The same outside; 0: no session then. */
  inactiveQuorum: number
  /** Seconds for the answer; 0: until the end of the asked time. */
  approvalTimeout: number
  /** An approval opens one session only. */
  singleConnection: boolean
  hasComment: boolean
  mandatoryComment: boolean
  hasTicket: boolean
  mandatoryTicket: boolean
  /** Another user has to watch its sessions. */
  fourEyes: boolean
  /** Of the user, to open a session or check a secret out. */
  secondFactor: FactorPolicy
  /** Seconds for which a code counts for the client's address. */
  secondFactorRemember: number
  /** Whether an SSH key counts as both factors whose token has checked a PIN or a finger. */
  secondFactorKeys: boolean
}

/** `strict`: the user sees output only after its recording is on disk and signed. */
export const RECORDING_MODES = ['standard', 'strict'] as const
export type RecordingMode = (typeof RECORDING_MODES)[number]

export interface ApiKey {
  id: Id
  keyName: string
  /** Name of the profile. */
  profile: string
  /** Networks or addresses that the key may be used from; empty: any. */
  ipSource: string[]
  expirationDate?: number | undefined
  createdAt: number
  /** The users that X-Auth-User may name; absent: any user. */
  actsFor?: ActsFor | undefined
  /**
   * Rights of the administrator that set `actsFor`: the key acts for no user with more. Absent for keys that
   * are older than this field.
   */
  reach?: ProfileRights | undefined
}

/** The users, and the members of the groups at the time of use. */
export interface ActsFor {
  userIds: Id[]
  groupIds: Id[]
}

export interface HostKey {
  id: Id
  deviceId: Id
  serviceId: Id
  /**
   * SSH's name of the key's type, for example `ssh-ed25519`; `x509` for a TLS certificate, `rsa` for VNC's
   * RA2.
   */
  keyType: string
  /** OpenSSH's form: `SHA256:` and unpadded base64, of `key`. */
  fingerprint: string
  /** The key blob (RFC 4253 6.6); for `x509` and `rsa` the SubjectPublicKeyInfo (RFC 5280 4.1). Base64. */
  key: string
  firstSeen: number
  /**
   * `accepted`: trusted. `offered`: the target showed it and it was refused; an administrator may accept it.
   */
  state: 'accepted' | 'offered'
}

export interface Checkout {
  id: Id
  accountId: Id
  userId: Id
  begin: number
  expires: number
  /** When the secret was checked in; absent while it is out (until `expires`). */
  end?: number
  /** Name of the API key that requested the checkout, and its id. */
  apiKey?: string
  apiKeyId?: Id
  /** Of the account's secret, when the checkout began: a later one ends it. */
  severedRevision?: number
  /** Purpose, and number of a request in another system, as its user gave them. */
  comment?: string
  ticket?: string
  /** Present if another user ended it. */
  forced?: { by: string; comment: string }
  /** Id of the approval that it needed. */
  approval?: Id
}

/** A checkout, or a running session with a stored account, by the names of what it is about. */
export interface CheckoutRecord
  extends Omit<Checkout, 'accountId' | 'userId' | 'expires' | 'apiKeyId' | 'severedRevision'> {
  kind: 'checkout' | 'session'
  user: string
  account: string
  domain: string
  device: string
  /** Absent for a session, which holds the account until it ends. */
  expires?: number
}

/** One session through the bastion: metadata for the audit (docs/api.md). */
export interface SessionRecord {
  id: Id
  begin: number
  end?: number
  user: string
  sourceIp: string
  protocol: Protocol
  /** The rights that were used, not those that were granted. */
  subprotocols: Right[]
  account: string
  domain: string
  device: string
  service: string
  targetHost: string
  /** Absent while the session runs. */
  result?: 'success' | 'failure' | 'killed' | 'lost'
  reason?: string
  authorization: string
  isRecorded: boolean
  bytesIn: number
  bytesOut: number
  /** Name of the API key that made the session's ticket. */
  apiKey?: string
  /** Id of the approval that it was opened by. */
  approval?: Id
  /** The user's reason, as the authorization asks for it. */
  comment?: string
  ticket?: string
  /** For the servers of accounting that judged the sign-in. */
  accountingClasses?: readonly AccountingClass[]
  recording?: { state: RecordingState; size: number; frames: number; digest: string }
  legalHold?: LegalHold | undefined
}

/** Class of a RADIUS accept: goes back to the server with the accounting of the sign-in's sessions (RFC 2865 5.25). */
export interface AccountingClass {
  externalAuthId: Id
  /** Values of the attributes, in their order, as base64. */
  values: string[]
}

/** Why a recording is kept regardless of the retention, since when (milliseconds), and on whose order. */
export interface LegalHold {
  by: string
  since: number
  reason: string
  /** A request to end the hold, which a second person has to confirm. */
  release?: ReleaseWish | undefined
}

/** How many people end a legal hold: with `two`, the second confirms the request of the first. */
export type HoldRelease = 'one' | 'two'

export interface ReleaseWish {
  by: string
  userId: Id
  /** Milliseconds since the epoch. */
  since: number
  reason: string
}

/**
 * `open` while the session runs, `sealed` by the broker at the end, `recovered` after a crash, `failed` after
 * an error; `deleted` with a tombstone in the audit log, `missing` if the file was already gone.
 */
export const RECORDING_STATES = ['open', 'sealed', 'recovered', 'failed', 'deleted', 'missing'] as const
export type RecordingState = (typeof RECORDING_STATES)[number]

/**
 * `waiting` for its upload, `verified` in the bucket with its segments still there, `stored` in the bucket
 * and on disk, `remote` in the bucket only, `deleting` from the bucket, `lost` before it could be uploaded.
 */
export const UPLOAD_STATES = ['waiting', 'verified', 'stored', 'remote', 'deleting', 'lost'] as const
export type UploadState = (typeof UPLOAD_STATES)[number]

/** The copy of a session's recording in the object store. Times in milliseconds since the epoch. */
export interface Upload {
  session: Id
  /** When the session began: part of the recording's path. */
  begin: number
  state: UploadState
  /** When the next step is due. */
  due: number
  /** Consecutive failed attempts. */
  failures: number
  /** Id of the multipart upload that was begun. */
  upload?: string | undefined
  size?: number
  sha256?: string
  /** When it was verified. */
  stored?: number
}
