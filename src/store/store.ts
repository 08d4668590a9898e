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
  Device,
  Domain,
  HostKey,
  Id,
  Service,
  SessionRecord,
  TargetGroup,
  User,
  UserGroup,
} from '../model/objects.ts'
import type { Search } from '../search/bind.ts'

export interface Page {
  /** -1: all. */
  limit: number
  offset: number
  /** Column in the API's spelling, `-` before it for descending; default: the name. */
  sort?: string[]
  /** Only what meets it. */
  search?: Search
}

export interface Repository<T extends { id: Id }> {
  /**
   * `total` is how many there are on all pages.
   * @throws SortError when `sort` names a key that the collection is not sorted by
   * @throws SearchError when `search` names a field that the collection has not, or a value that it cannot have
   */
  list(page?: Page): Promise<{ items: T[]; total: number }>
  /**
   * By id, or by name without regard to case. Services, accounts, authorizations and host keys have no name of
   * their own that is unique: by id only.
   */
  find(idOrName: string): Promise<T | undefined>
  create(object: Omit<T, 'id'>): Promise<T>
  update(id: Id, change: Partial<Omit<T, 'id'>>): Promise<T>
  remove(id: Id): Promise<void>
}

/** What authentication reads of a user; never leaves identity/. */
export interface UserSecrets {
  passwordHash?: string
}

export interface UserRepository extends Repository<User> {
  secretsOf(id: Id): Promise<UserSecrets>
  setPasswordHash(id: Id, hash: string): Promise<void>
}

export interface ServiceRepository extends Repository<Service> {
  ofDevice(deviceId: Id): Promise<Service[]>
}

export interface DomainRepository extends Repository<Domain> {
  /** Global domains only, by name. `find` takes ids of both kinds and names of global ones. */
  ofDevice(deviceId: Id): Promise<Domain[]>
}

export interface AccountRepository extends Repository<Account> {
  ofDomain(domainId: Id): Promise<Account[]>
  /** All accounts of that name, in whatever domain. */
  named(accountName: string): Promise<Account[]>
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
  /** In one transaction: fails with DuplicateError when `exclusive` and one is already out. */
  create(checkout: Omit<Checkout, 'id'>, exclusive: boolean): Promise<Checkout>
  /** @throws MissingReferenceError when there is none of that id, or it has ended already */
  end(id: Id, time: number): Promise<void>
}

export interface SessionRepository {
  list(
    filter: { status?: 'current' | 'closed' },
    page?: Page,
  ): Promise<{ items: SessionRecord[]; total: number }>
  find(id: Id): Promise<SessionRecord | undefined>
  create(session: SessionRecord): Promise<void>
  update(id: Id, change: Partial<Omit<SessionRecord, 'id'>>): Promise<void>
}

/** A target that a user may open: one row of the join over groups and authorizations. */
export interface TargetRow {
  accountId: Id
  accountName: string
  accountLogin: string
  domainId: Id
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
  hostKeyPolicy: Service['hostKeyPolicy']
  authorizationId: Id
  authorizationName: string
  authorizationSubprotocols: Authorization['subprotocols']
  isRecorded: boolean
}

export interface AccessQueries {
  /** Every (target, authorization) pair that lets the user open sessions; one target may have several rows. */
  sessionTargets(userId: Id, filter?: { device?: string }): Promise<TargetRow[]>
  /** Ids of authorizations by which the user may check the account's secret out. */
  retrievalAuthorizations(userId: Id, accountId: Id): Promise<Id[]>
}

/** By id; an id that does not exist is left out. */
export interface NameQueries {
  users(ids: Iterable<Id>): Promise<Map<Id, string>>
  userGroups(ids: Iterable<Id>): Promise<Map<Id, string>>
  targetGroups(ids: Iterable<Id>): Promise<Map<Id, string>>
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
}

export interface AuditRepository {
  last(): Promise<AuditRow | undefined>
  append(rows: AuditRow[]): Promise<void>
  range(fromSequence: number, limit: number): Promise<AuditRow[]>
  ofSession(session: Id, limit: number): Promise<AuditRow[]>
}

/** Small values by name: the wrapped data key, the schema's identity. */
export interface SettingRepository {
  get(name: string): Promise<Uint8Array | undefined>
  set(name: string, value: Uint8Array): Promise<void>
  /** Sets what is not set yet, in one step; answers with the value that stands afterwards. */
  setOnce(name: string, value: Uint8Array): Promise<Uint8Array>
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
  hostKeys: HostKeyRepository
  checkouts: CheckoutRepository
  sessions: SessionRepository
  access: AccessQueries
  names: NameQueries
  audit: AuditRepository
  settings: SettingRepository
  close(): Promise<void>
}
