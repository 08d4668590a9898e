/**
 * What the rest of the broker sees of the database: one repository per aggregate. Each method is one
 * transaction. `NewX` objects come without id; changes name only what changes (an optional field that is named
 * with the value undefined is cleared).
 *
 * Errors: `DuplicateError` (a unique name, or the second authorization of a pair), `InUseError` (still referred
 * to, names the users of it), `MissingReferenceError` (an id that does not exist).
 */
import type {
  Account,
  ApiKey,
  Authorization,
  Checkout,
  CheckoutPolicy,
  ConnectionPolicy,
  Device,
  Domain,
  HostKey,
  HostKeyPolicy,
  Id,
  Service,
  SessionRecord,
  TargetGroup,
  TargetKind,
  Upload,
  UploadState,
  User,
  UserGroup,
} from '../model/objects.ts'
import type { ProfileRights } from '../model/profile-rights.ts'
import type { Profile } from '../model/profiles.ts'
import type { Search } from '../search/bind.ts'

export interface Page {
  /** -1: all. */
  limit: number
  offset: number
  /** Column in the API's spelling, `-` before it for descending; default: the name. */
  sort?: string[]
  /** Only what meets it. */
  search?: Search
  /** The objects are not read at once, but as `pieces`, as they are wanted. */
  inPieces?: boolean
}

/** What a page has. */
export interface Listed<T> {
  items: T[]
  /** How many there are on all pages. */
  total: number
  /**
   * Of a page `inPieces`, whose `items` are empty. What they hold is of one moment after the first was asked for; they
   * are to be read soon, or given up (`return`).
   */
  pieces?: AsyncGenerator<T[]>
}

export interface Repository<T extends { id: Id }> {
  /**
   * @throws StoreBusyError from the pieces
   * @throws SortError when `sort` names a key that the collection is not sorted by
   * @throws SearchError when `search` names a field that the collection has not, or a value that it cannot have
   */
  list(page?: Page): Promise<Listed<T>>
  /**
   * By id, or by name without regard to case. Services, accounts, authorizations and host keys have no name of
   * their own that is unique: by id only.
   */
  find(idOrName: string): Promise<T | undefined>
  create(object: Omit<T, 'id'>): Promise<T>
  /**
   * `expected` is the object as the caller has read it, on which the change was decided.
   * @throws ChangedError when it is no longer that; nothing was changed then
   */
  update(id: Id, change: Partial<Omit<T, 'id'>>, expected?: T): Promise<T>
  /** @throws ChangedError as `update` does */
  remove(id: Id, expected?: T): Promise<void>
}

/** Those from the factory are among them; a renamed one takes the users and keys that name it along. */
export interface ProfileRepository extends Repository<Profile> {
  /** The rights of the profile of that name; undefined: there is none. */
  rightsOf(name: string): Promise<ProfileRights | undefined>
}

/** The answer to a request that carried an Idempotency-Key. */
export interface KeptAnswer {
  /** Digest of the request that it answered. */
  request: Uint8Array
  time: number
  status: number
  location?: string
  answer: string
}

export interface IdempotencyRepository {
  find(key: Uint8Array, since: number): Promise<KeptAnswer | undefined>
  /** Forgets what is older than `since`, and the oldest beyond `limit`. */
  keep(key: Uint8Array, answer: KeptAnswer, since: number, limit: number): Promise<void>
}

/** What authentication reads of a user; never leaves identity/. */
export interface UserSecrets {
  /** Sealed. */
  passwordHash?: Uint8Array
}

export interface UserRepository extends Repository<User> {
  /** Who has that name, or one that shows as it does (model/look-alikes.ts). */
  lookingLike(name: string): Promise<User | undefined>
  /** Notes how names show that an earlier version has left without; answers how many these were. */
  noteLooks(): Promise<number>
  secretsOf(id: Id): Promise<UserSecrets>
  setPasswordHash(id: Id, sealed: Uint8Array): Promise<void>
  /** Another hash of the same password, if `before` is still the one that is kept. */
  renewPasswordHash(id: Id, before: Uint8Array, sealed: Uint8Array): Promise<void>
  /** Those that an earlier version has left in clear text. */
  clearPasswordHashes(): Promise<{ id: Id; hash: string }[]>
  /** The same one sealed, in place of `clear`, if that is still there. */
  sealPasswordHash(id: Id, clear: string, sealed: Uint8Array): Promise<void>
}

export interface ServiceRepository extends Repository<Service> {
  /** Of one device, or of all. */
  list(page?: Page, deviceId?: Id): Promise<Listed<Service>>
  ofDevice(deviceId: Id): Promise<Service[]>
}

export interface DomainRepository extends Repository<Domain> {
  /** Local ones of a device, or the global ones. */
  list(page?: Page, deviceId?: Id): Promise<Listed<Domain>>
  /** Global domains only, by name. `find` takes ids of both kinds and names of global ones. */
  ofDevice(deviceId: Id): Promise<Domain[]>
  /** The sealed key of the domain's certificate authority. */
  sealedAuthority(id: Id): Promise<Uint8Array | undefined>
  /** undefined: the domain has none any more. */
  setSealedAuthority(id: Id, authority: { sealed: Uint8Array; publicKey: string } | undefined): Promise<void>
}

/** An account with where it lives. */
export interface PlacedAccount {
  account: Account
  domain: Domain
  /** The device whose local domain it is; undefined: a global one. */
  device: Device | undefined
}

/** What is known of the account that is looked for; each of them narrows. */
export interface WantedAccount {
  /** Id or name. */
  account: string
  domainName?: string
  /** Id or name; undefined: global domains too. */
  device?: string
  id?: Id
  /** By this user's authorizations. */
  retrievableBy?: Id
}

export interface AccountRepository extends Repository<Account> {
  /** Of one domain, of the domains of one device, or all. */
  list(page?: Page, place?: { domainId: Id } | { deviceId: Id }): Promise<Listed<Account>>
  /** The domain's account of that id or name. */
  inDomain(domainId: Id, idOrName: string): Promise<Account | undefined>
  /** Those that are meant, `limit` at most: thousands of devices may have an account of one name. */
  meant(wanted: WantedAccount, limit: number): Promise<PlacedAccount[]>
  /** Sealed credentials, as the vault stores them: JSON per type. */
  sealedCredentials(id: Id): Promise<{ type: string; sealed: Uint8Array }[]>
  setSealedCredentials(id: Id, credentials: { type: string; sealed: Uint8Array }[]): Promise<void>
}

export interface AuthorizationRepository extends Repository<Authorization> {
  ofUserGroups(userGroupIds: Id[]): Promise<Authorization[]>
}

export interface ApiKeyRepository extends Repository<ApiKey> {
  createWithHash(key: Omit<ApiKey, 'id'>, sha256: Uint8Array): Promise<ApiKey>
  findByHash(sha256: Uint8Array): Promise<ApiKey | undefined>
}

export interface HostKeyRepository extends Repository<HostKey> {
  ofService(serviceId: Id): Promise<HostKey[]>
}

export interface CheckoutRepository {
  find(id: Id): Promise<Checkout | undefined>
  /** Checkouts of the account that are still out at `now`. */
  active(accountId: Id, now: number): Promise<Checkout[]>
  /** Checkouts by the user that are still out at `now`. */
  ofUser(userId: Id, now: number): Promise<Checkout[]>
  /** The oldest that nobody returned before their time was over. */
  expired(now: number, limit: number): Promise<Checkout[]>
  /** In one transaction: fails with DuplicateError when `exclusive` and one is already out. */
  create(checkout: Omit<Checkout, 'id'>, exclusive: boolean): Promise<Checkout>
  /** @throws MissingReferenceError when there is none of that id, or it has ended already */
  end(id: Id, time: number): Promise<void>
}

export interface SessionRepository {
  list(filter: { status?: 'current' | 'closed' }, page?: Page): Promise<Listed<SessionRecord>>
  find(id: Id): Promise<SessionRecord | undefined>
  /** The oldest that began before, whose recordings are closed, not deleted and not on legal hold. */
  deletable(begunBefore: number, limit: number): Promise<SessionRecord[]>
  /** Those that ended in order while their recordings could not be closed. */
  unsealed(): Promise<SessionRecord[]>
  /** Bytes of all recordings that were not deleted. */
  recordedBytes(): Promise<number>
  create(session: SessionRecord): Promise<void>
  update(id: Id, change: Partial<Omit<SessionRecord, 'id'>>): Promise<void>
}

/** What is due with the copies of recordings in the object store. */
export interface UploadRepository {
  find(session: Id): Promise<Upload | undefined>
  /** The longest due of those that are due at `now`, but `without` these. */
  due(now: number, limit: number, without: readonly Id[]): Promise<Upload[]>
  /** Unless there is one of the session. */
  add(session: Id, begin: number, due: number): Promise<void>
  /** Adds all sessions that ended with a recording and have none; answers how many these were. */
  adopt(due: number): Promise<number>
  /** Changes it when it is still in this state. */
  update(session: Id, state: UploadState, change: Partial<Omit<Upload, 'session' | 'begin'>>): Promise<void>
  /** The copy, if there may be one, is to be deleted, whatever the state. */
  forget(session: Id, begin: number, due: number): Promise<void>
  remove(session: Id): Promise<void>
  /** Local copies of what is stored are due `keep` milliseconds after they were stored; undefined: never. */
  keepLocal(keep: number | undefined): Promise<void>
  /** How many are not in the bucket yet. */
  waiting(): Promise<number>
}

/** A target that a user may open: one row of the join over groups and authorizations. */
export interface TargetRow {
  kind: TargetKind
  /** undefined: not a stored account. */
  accountId: Id | undefined
  /** Of a mapping the login that the user is mapped to; of an interactive login empty. */
  accountName: string
  accountLogin: string
  domainId: Id | undefined
  /** Empty where there is no stored account. */
  domainName: string
  /** True when the domain is the device's own. */
  isLocal: boolean
  deviceId: Id
  deviceName: string
  deviceDescription: string
  host: string
  serviceId: Id
  serviceName: string
  protocol: Service['protocol']
  port: number
  serviceSubprotocols: Service['subprotocols']
  /** undefined: the one from the factory. */
  connectionPolicyId: Id | undefined
  hostKeyPolicy: HostKeyPolicy
  authorizationId: Id
  authorizationName: string
  authorizationSubprotocols: Authorization['subprotocols']
  isRecorded: boolean
  recordingMode: Authorization['recordingMode']
}

/** `device` is a name. */
export type TargetFilter = { device?: string } | { accountId: Id | undefined; serviceId: Id }

export interface AccessQueries {
  /** Every (target, authorization) pair that lets the user open sessions; one target may have several rows. */
  sessionTargets(userId: Id, filter?: TargetFilter): Promise<TargetRow[]>
  /** Whether there is a target among them that the user is mapped to. */
  hasMapping(userId: Id): Promise<boolean>
  /** Ids of authorizations by which the user may check the account's secret out. */
  retrievalAuthorizations(userId: Id, accountId: Id): Promise<Id[]>
}

/** By id; an id that does not exist is left out. */
export interface NameQueries {
  users(ids: Iterable<Id>): Promise<Map<Id, string>>
  userGroups(ids: Iterable<Id>): Promise<Map<Id, string>>
  targetGroups(ids: Iterable<Id>): Promise<Map<Id, string>>
  checkoutPolicies(ids: Iterable<Id>): Promise<Map<Id, string>>
  connectionPolicies(ids: Iterable<Id>): Promise<Map<Id, string>>
  devices(ids: Iterable<Id>): Promise<Map<Id, string>>
  services(ids: Iterable<Id>): Promise<Map<Id, { serviceName: string; deviceName: string }>>
  /** `deviceName` is null for a global domain, and for an account of one. */
  domains(ids: Iterable<Id>): Promise<Map<Id, { domainName: string; deviceName: string | null }>>
  accounts(
    ids: Iterable<Id>,
  ): Promise<Map<Id, { accountName: string; domainName: string; deviceName: string | null }>>
}

/** One row of the audit log: see src/audit/chain.ts for what the hashes cover. */
export interface AuditRow {
  sequence: number
  time: number
  code: string
  /** The event's canonical JSON, exactly the bytes that were hashed. */
  json: string
  hash: Uint8Array
  /** Of a row that was read: the column that `ofSession` looks in; null: the event is of no session. */
  session?: string | null
}

export interface AuditRepository {
  last(): Promise<AuditRow | undefined>
  append(rows: AuditRow[]): Promise<void>
  range(fromSequence: number, limit: number): Promise<AuditRow[]>
  ofSession(session: Id, limit: number): Promise<AuditRow[]>
  /** The rows of `audit.handover`, the newest thousand of them, newest first. */
  handovers(): Promise<AuditRow[]>
  /** Removes the oldest rows up to `sequence`, at most `limit` of them; answers with how many it has removed. */
  removeUpTo(sequence: number, limit: number): Promise<number>
  /** Rows `recording.progress` from this moment (milliseconds since the epoch) and row on, in their order. */
  progress(since: number, fromSequence: number, limit: number): Promise<AuditRow[]>
}

/** A value as vault/seal.ts made it, and the place that it is bound to. */
export interface SealedValue {
  place: { table: string; id: string; field: string }
  sealed: Uint8Array
}

/** Everything that the vault has sealed, wherever it stands: what a new data key has to be put to. */
export interface SealedRepository {
  /** All settings are among them, sealed or not. */
  all(): Promise<SealedValue[]>
  /** Puts it in the place of the one that is there. */
  replace(value: SealedValue): Promise<void>
}

/** Small values by name: the wrapped data key, the schema's identity. */
export interface SettingRepository {
  get(name: string): Promise<Uint8Array | undefined>
  set(name: string, value: Uint8Array): Promise<void>
  /** Sets what is not set yet, in one step; answers with the value that stands afterwards. */
  setOnce(name: string, value: Uint8Array): Promise<Uint8Array>
  /** Sets it in one step when it is still `before` (undefined: not set); false: somebody else was faster. */
  replace(name: string, before: Uint8Array | undefined, value: Uint8Array): Promise<boolean>
  /** One that is not set may be removed, too. */
  remove(name: string): Promise<void>
}

export interface Store {
  users: UserRepository
  userGroups: Repository<UserGroup>
  devices: Repository<Device>
  services: ServiceRepository
  domains: DomainRepository
  accounts: AccountRepository
  targetGroups: Repository<TargetGroup>
  authorizations: AuthorizationRepository
  apiKeys: ApiKeyRepository
  profiles: ProfileRepository
  checkoutPolicies: Repository<CheckoutPolicy>
  connectionPolicies: Repository<ConnectionPolicy>
  hostKeys: HostKeyRepository
  checkouts: CheckoutRepository
  idempotency: IdempotencyRepository
  sessions: SessionRepository
  uploads: UploadRepository
  access: AccessQueries
  names: NameQueries
  audit: AuditRepository
  settings: SettingRepository
  sealed: SealedRepository
  /**
   * One transaction for all that `work` does through the store that it is given: all of it stands afterwards, or,
   * when `work` throws, nothing. Everybody else waits for the database meanwhile, `work` too if it uses another
   * store; an error of that store must not be caught and forgotten, since half of an operation may be done.
   */
  transaction<T>(work: (store: Store) => Promise<T>): Promise<T>
  /** Another number than before when another process has written since. Cheap. */
  dataVersion(): Promise<number>
  close(): Promise<void>
}
