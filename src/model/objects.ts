/**
 * The objects that administrators provision, as the broker holds them. Names are those of spec.md 2.2 and of
 * contract.md; in the API the same words are the JSON fields. References between objects are names in the API
 * and ids here: `…Id` fields hold ids (ULID, 26 characters). Times are milliseconds since the epoch.
 */
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
 * Why a target's host key is believed. `first_sight` pins one that was not seen before, `pinned` refuses it until an
 * administrator has accepted it; either refuses a key that differs from the pinned ones. `ca`: a certificate about it
 * by an authority of the connection policy; `dns`: its fingerprint in the DNS, authenticated. These two neither pin
 * nor ask what is pinned.
 */
export const HOST_KEY_POLICIES = ['first_sight', 'pinned', 'ca', 'dns'] as const
export type HostKeyPolicy = (typeof HOST_KEY_POLICIES)[number]
/** Those that go by what is pinned. */
export const PINNING: readonly HostKeyPolicy[] = ['first_sight', 'pinned']

/** Why a policy is none for the protocol, for an administrator. */
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
  /** Of TELNET and RLOGIN. */
  login: LoginOptions
  vnc: VncOptions
  rdp: RdpOptions
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
  TELNET: '00000000000000000000000302',
  RLOGIN: '00000000000000000000000303',
  VNC: '00000000000000000000000304',
  RDP: '00000000000000000000000305',
}

export interface Domain {
  id: Id
  domainName: string
  description: string
  /** The device whose local domain it is; undefined: a global domain. */
  deviceId?: Id
  /** Of the authority that certifies sessions with its accounts, as a line of OpenSSH's; the private key is in the vault. */
  caPublicKey?: string
  /** How often the authority was set or taken away; the store counts. */
  secretRevision?: number
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

export const CREDENTIAL_TYPES = ['password', 'ssh_key', 'enable'] as const
export type CredentialType = (typeof CREDENTIAL_TYPES)[number]

/**
 * As whom a person comes to a target: as a stored account, under their own name with their own password (account
 * mapping), or with a login and a password that they are asked for.
 */
export const TARGET_KINDS = ['account', 'mapping', 'interactive'] as const
export type TargetKind = (typeof TARGET_KINDS)[number]

export interface TargetGroup {
  id: Id
  groupName: string
  description: string
  /** Targets of sessions: an account through a service of a device. */
  sessionAccounts: { accountId: Id; serviceId: Id }[]
  /** Services where the person is asked for the target's login and password. */
  interactiveServiceIds: Id[]
  /** Services where the person is logged in by their own name and password. */
  mappingServiceIds: Id[]
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
  recordingMode: RecordingMode
}

/** `strict`: output is shown to the user only when its recording is on the disk and signed. */
export const RECORDING_MODES = ['standard', 'strict'] as const
export type RecordingMode = (typeof RECORDING_MODES)[number]

export interface ApiKey {
  id: Id
  keyName: string
  /** Name of a profile. */
  profile: string
  /** Networks or addresses that the key works from; empty: any. */
  ipSource: string[]
  expirationDate?: number | undefined
  createdAt: number
  /** Whom X-Auth-User may name; undefined: anybody. */
  actsFor?: ActsFor | undefined
  /** Rights of who has said whom it acts for: nobody who has more. undefined: of a key that was there before. */
  reach?: ProfileRights | undefined
}

/** Users, and the members of groups as they are when the key is used. */
export interface ActsFor {
  userIds: Id[]
  groupIds: Id[]
}

export interface HostKey {
  id: Id
  deviceId: Id
  serviceId: Id
  /** SSH's name of the key's type, for example `ssh-ed25519`; `x509` of a certificate in TLS, `rsa` of VNC's RA2. */
  keyType: string
  /** OpenSSH's form: `SHA256:` and base64 without padding, of `key`. */
  fingerprint: string
  /** The key blob (RFC 4253 6.6), of `x509` and `rsa` the SubjectPublicKeyInfo (RFC 5280 4.1); base64. */
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
  /** Name of the API key that asked for it. */
  apiKey?: string
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
  /** Name of the API key that made the ticket for it. */
  apiKey?: string
  recording?: { state: RecordingState; size: number; frames: number; digest: string }
  legalHold?: LegalHold | undefined
}

/** Why a recording is kept whatever the retention says, since when (milliseconds), and who has said so. */
export interface LegalHold {
  by: string
  since: number
  reason: string
  /** Somebody has asked for its end, which a second person has to confirm. */
  release?: ReleaseWish | undefined
}

/** How many people it takes to end a legal hold: the second confirms what the first has asked for. */
export type HoldRelease = 'one' | 'two'

export interface ReleaseWish {
  by: string
  userId: Id
  /** Milliseconds since the epoch. */
  since: number
  reason: string
}

/**
 * `open` while it runs, `sealed` by the broker at the end, `recovered` after a crash, `failed` when it broke;
 * `deleted` with a tombstone in the audit log, `missing` when there was nothing to delete any more.
 */
export const RECORDING_STATES = ['open', 'sealed', 'recovered', 'failed', 'deleted', 'missing'] as const
export type RecordingState = (typeof RECORDING_STATES)[number]

/**
 * `waiting` for its upload, `verified` in the bucket with its segments still there, `stored` in the bucket and on the
 * disk, `remote` in the bucket only, `deleting` from the bucket, `lost` before it could be uploaded.
 */
export const UPLOAD_STATES = ['waiting', 'verified', 'stored', 'remote', 'deleting', 'lost'] as const
export type UploadState = (typeof UPLOAD_STATES)[number]

/** The copy of a session's recording in the object store. Times in milliseconds since the epoch. */
export interface Upload {
  session: Id
  /** When the session began: it says where the recording is. */
  begin: number
  state: UploadState
  /** When something is to be done next. */
  due: number
  /** Attempts in a row that failed. */
  failures: number
  /** Of the upload in parts that was begun. */
  upload?: string | undefined
  size?: number
  sha256?: string
  /** When it was verified. */
  stored?: number
}
