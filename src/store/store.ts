/**
 * The database's interface for the rest of the broker: one repository per aggregate. Each method is one
 * transaction. `NewX` objects come without id; a change contains only the changed fields (an optional field
 * that is present with the value undefined is cleared).
 *
 * Errors: `DuplicateError` (a unique name, or the second authorization of a pair), `InUseError` (other
 * objects still refer to it; names them), `MissingReferenceError` (an id that does not exist).
 */

import type {
  Answer,
  Approval,
  ApprovalKind,
  ApprovalObject,
  ApprovalState,
  GivenAnswer,
  Refusal,
} from '../model/approvals.ts'
import type { AuthDomain, AuthDomainMapping, ExternalAuth } from '../model/external-auths.ts'
import type { Notification } from '../model/notifications.ts'
import type {
  Account,
  ApiKey,
  Authorization,
  Checkout,
  CheckoutPolicy,
  CheckoutRecord,
  Conditions,
  ConnectionPolicy,
  CredentialType,
  Device,
  Domain,
  HostKey,
  HostKeyPolicy,
  Id,
  SecretState,
  Service,
  SessionRecord,
  TargetGroup,
  TargetKind,
  Upload,
  UploadState,
  User,
  UserGroup,
} from '../model/objects.ts'
import type {
  ChangeOutcome,
  PasswordChangePolicy,
  SecretJob,
  SecretSchedule,
} from '../model/password-change.ts'
import type { ProfileRights } from '../model/profile-rights.ts'
import type { Profile } from '../model/profiles.ts'
import type { Timeframe, TimeRule } from '../model/timeframes.ts'
import type { Condition, Search } from '../search/bind.ts'
import type { Reach } from './engine/reach.ts'

export type { Away, Reach } from './engine/reach.ts'

export interface Page {
  /** -1 for all. */
  limit: number
  offset: number
  /** Column in the API's spelling, with a leading `-` for descending. Absent for the name. */
  sort?: string[]
  /** Restricts the page to matching objects. */
  search?: Search
  /** Set to read the objects on demand, as `pieces`. */
  inPieces?: boolean
}

/** The objects of a page. */
export interface Listed<T> {
  items: T[]
  /** Number of objects on all pages. */
  total: number
  /**
   * Present for a page `inPieces`, whose `items` are empty. The content is as of one moment after the first
   * request; the caller reads it soon, or cancels it (`return`).
   */
  pieces?: AsyncGenerator<T[]>
}

export interface Repository<T extends { id: Id }> {
  /**
   * @throws StoreBusyError from the pieces, and from a search that no index serves
   * @throws SortError if `sort` names a key that the collection is not sorted by
   * @throws SearchError if `search` names an unknown field, or a value that the field cannot have
   */
  list(page?: Page): Promise<Listed<T>>
  /**
   * Finds by id, or by name regardless of case. Services, accounts, authorizations and host keys have no
   * unique name of their own: by id only.
   */
  find(idOrName: string): Promise<T | undefined>
  create(object: Omit<T, 'id'>): Promise<T>
  /**
   * `expected` is the object as the caller has read it, on which the change was decided.
   * @throws ChangedError if the object differs from `expected`; nothing was changed then
   */
  update(id: Id, change: Partial<Omit<T, 'id'>>, expected?: T): Promise<T>
  /** @throws ChangedError as `update` does */
  remove(id: Id, expected?: T): Promise<void>
}

/**
 * Profiles, including those from the factory. Renaming one also renames it in the users and keys that name
 * it.
 */
export interface ProfileRepository extends Repository<Profile> {
  /** Returns the rights of the profile of that name, or undefined if there is none. */
  rightsOf(name: string): Promise<ProfileRights | undefined>
}

/** The response to a request with an Idempotency-Key. */
export interface KeptAnswer {
  /** Digest of the request. */
  request: Uint8Array
  time: number
  status: number
  location?: string
  answer: string
}

export interface IdempotencyRepository {
  find(key: Uint8Array, since: number): Promise<KeptAnswer | undefined>
  /**
   * Claims a key, in one statement, for the request that is named `claim`. Returns false while another
   * request has claimed it, in whichever process. The claim ends at `expires`, for a process that dies.
   */
  claim(key: Uint8Array, claim: string, now: number, expires: number): Promise<boolean>
  /** Ends the claim of a request that has made nothing. */
  release(key: Uint8Array, claim: string): Promise<void>
  /** Ends the claims of all requests: those of another time. */
  releaseAll(): Promise<void>
  /**
   * Stores a response and ends the claim of its request. Removes responses older than `since`, and the oldest
   * beyond `limit`.
   */
  keep(key: Uint8Array, claim: string, answer: KeptAnswer, since: number, limit: number): Promise<void>
}

/** A sign-in by cookie. Times in milliseconds since the epoch. */
export interface StoredSignIn {
  userId: Id
  /** Revision of the password that it rests on. */
  secretRevision: number
  begin: number
  lastUse: number
  /** Set if a second factor was proved. */
  hasFactor?: true
  /** Id of the provider's session that it rests on, and with which it ends. */
  providerSession?: Id
  /** For the user, to recognize it: the client's address, the method, and what the client calls itself. */
  client?: { address: string; method: string; agent: string }
}

export interface ListedSignIn extends StoredSignIn {
  id: Id
}

/** Bounds of valid sign-ins by cookie: those begun, or last used, at these times or before have expired. */
export interface SignInBounds {
  begin: number
  lastUse: number
}

/** Sign-ins by cookie, each by the SHA-256 of its token. */
export interface SignInRepository {
  /**
   * Adds a sign-in. Removes expired ones, and the user's oldest, or the oldest of all, beyond the
   * limits.
   */
  begin(
    tokenHash: Uint8Array,
    signIn: StoredSignIn,
    expired: SignInBounds,
    limits: { ofUser: number; all: number },
  ): Promise<void>
  find(tokenHash: Uint8Array): Promise<ListedSignIn | undefined>
  /** Lists those of a user, the oldest first. */
  ofUser(userId: Id): Promise<ListedSignIn[]>
  /** Ends one of the user's, or all; returns how many. */
  endOfUser(userId: Id, id?: Id): Promise<number>
  /** Notes a use; an earlier one than is known changes nothing. */
  used(tokenHash: Uint8Array, time: number): Promise<void>
  end(tokenHash: Uint8Array): Promise<void>
  /** Ends all, and the sessions at providers that they rest on. */
  endAll(): Promise<void>
  /** Returns the persons of domains that are signed in. */
  persons(): Promise<Id[]>
}

/** A security key (WebAuthn) of a user. Times in milliseconds since the epoch. */
export interface SecurityKey {
  id: Id
  /** By which the user knows it. */
  name: string
  credentialId: Uint8Array
  /** In COSE's form. */
  publicKey: Uint8Array
  /** Signatures that it has counted; 0 for one that does not count. */
  signCount: number
  transports: readonly string[]
  created: number
  lastUse?: number
}

export interface SecurityKeyRepository {
  /** Lists those of a user, the oldest first. */
  list(userId: Id): Promise<SecurityKey[]>
  /** Adds a key, unless some user has it, or this one has `most`. */
  add(
    userId: Id,
    key: Omit<SecurityKey, 'id' | 'lastUse'>,
    most: number,
  ): Promise<'added' | 'known' | 'too_many'>
  /** Notes a signature, in one statement; false if the key is gone, or has counted as many before. */
  use(id: Id, signCount: number, time: number): Promise<boolean>
  remove(userId: Id, id: Id): Promise<boolean>
}

/** A session of a person at a provider of federated sign-in. Times in milliseconds since the epoch. */
export interface ProviderSession {
  id: Id
  userId: Id
  externalAuthId: Id
  /** The provider's id of the person: `sub`, or the NameID. */
  subject: string
  /** The provider's id of the session: `sid`, or the SessionIndex. Empty if it has said none. */
  sid: string
  /** Its tokens, sealed; absent if there are none. */
  sealed?: Uint8Array
  begin: number
  /** When the provider said last that it goes on. */
  checked: number
  /** When all ends that rests on it. */
  ends: number
}

export interface ProviderSessionRepository {
  /**
   * Adds a session, with what `seal` makes for its id. Removes the user's oldest, or the oldest of all, beyond the limits;
   * with a session go all sign-ins that rest on it.
   */
  begin(
    session: Omit<ProviderSession, 'id' | 'sealed' | 'checked'>,
    seal: ((id: Id) => Uint8Array) | undefined,
    limits: { ofUser: number; all: number },
  ): Promise<Id>
  find(id: Id): Promise<ProviderSession | undefined>
  /** Returns those with this subject and this sid, one of which has to be given. */
  named(externalAuthId: Id, named: { subject?: string; sid?: string }): Promise<ProviderSession[]>
  /** Returns all, the one that was checked longest ago first. */
  list(): Promise<ProviderSession[]>
  /** Whether a sign-in by cookie rests on it. */
  isSignedIn(id: Id): Promise<boolean>
  /** Notes that the provider was asked. Returns false if it was removed since. */
  checked(id: Id, change: { time: number; sealed?: Uint8Array; ends?: number }): Promise<boolean>
  /** Ends the sign-ins by cookie that rest on it, and forgets its tokens; all else that rests on it goes on. */
  signOut(id: Id): Promise<void>
  /** Ends all that rests on it. */
  remove(id: Id): Promise<boolean>
}

export interface UsedMessageRepository {
  /**
   * Notes messages as used until they end: `used` if one of them was used before, `full` if there is no room. Forgets those
   * that have ended. Times in milliseconds since the epoch.
   */
  use(
    digests: readonly Uint8Array[],
    ends: number,
    now: number,
    limit: number,
  ): Promise<'first' | 'used' | 'full'>
}

/** A certificate that the bastion's own authority has made for a user's key. Times in milliseconds since the epoch. */
export interface UserCertificate {
  id: Id
  userId: Id
  serial: bigint
  /** Revision of the user's password at that time. */
  secretRevision: number
  /** SHA-256 of the certified key, as OpenSSH shows it. */
  fingerprint: string
  /** Address of the client that asked for it. */
  address: string
  /** Id of the session at the provider, with which it ends. */
  providerSession?: Id
  begin: number
  end: number
}

export interface UserCertificateRepository {
  /** Adds one, in place of the user's oldest beyond `most`, and removes those that have ended. Returns its id. */
  add(certificate: Omit<UserCertificate, 'id'>, most: number): Promise<Id>
  find(serial: bigint): Promise<UserCertificate | undefined>
  /** Returns those of a user that have not ended, the oldest first. */
  ofUser(userId: Id, now: number): Promise<UserCertificate[]>
  /** Removes one of a user's; false if there is none. */
  remove(userId: Id, id: Id): Promise<boolean>
  removeAll(userId: Id): Promise<void>
}

/** The second factor of a user, enrolled or about to be. Times are milliseconds since the epoch. */
export interface StoredFactor {
  /** The sealed secret. */
  sealed: Uint8Array
  /** Codes that were counted since the last right one, or the last hold, and when the last of them was. */
  tries: number
  tried: number
  /** All codes that were counted since the last right one. */
  failed: number
  begun: number
  /** Absent until a first code has confirmed it. */
  enrolled?: number
  /** Number of the last time step whose code was used, or -1. */
  lastStep: number
  /** Steps that the clock of the authenticator is ahead. */
  drift: number
  /** Recovery codes that are left. */
  recoveryCodes: number
}

/** The strictest of several policies that require a second factor. */
export interface FactorRules {
  /** Seconds for which a right code counts for the client's address. */
  rememberS: number
  /** Whether an SSH key counts as both factors whose token has checked a PIN or a finger. */
  areKeysEnough: boolean
}

/** Where a code counts for a while. */
export interface FactorPlace {
  /** The client's. */
  address: string
  /** First factor beside the code: a password with its judge, or a key. */
  firstFactor: string
}

export interface SecondFactorRepository {
  find(userId: Id): Promise<StoredFactor | undefined>
  /** Returns the policy of the user's profile and groups that require a second factor, or undefined if none does. */
  policyOf(user: Pick<User, 'id' | 'profile'>): Promise<FactorRules | undefined>
  /** Returns the policy of those of these authorizations that require one, or undefined if none does. */
  rulesOf(authorizationIds: readonly Id[]): Promise<FactorRules | undefined>
  /** Notes that a code was right there, in place of the oldest of too many. */
  remember(user: Pick<User, 'id' | 'secretRevision'>, place: FactorPlace, now: number): Promise<void>
  /** Whether one was right there since then, and the user has the same secrets. A later one than now does not count. */
  isRemembered(
    user: Pick<User, 'id' | 'secretRevision'>,
    place: FactorPlace,
    time: { since: number; now: number },
  ): Promise<boolean>
  /** Begins an enrolment, in place of one that was not confirmed; false if the user is enrolled. */
  begin(userId: Id, sealed: Uint8Array, time: number): Promise<boolean>
  /**
   * Counts a code before it is judged. Returns how many have come since the last right one; undefined if `most` have, the
   * last of them less than `holdMs` ago, or there is no factor.
   */
  countTry(userId: Id, now: number, limits: { most: number; holdMs: number }): Promise<number | undefined>
  /** Forgives all codes that were wrong. */
  forgive(userId: Id): Promise<void>
  /** Uses a time step up, and forgives; false if it, or a later one, was used. */
  useStep(userId: Id, step: number, drift: number): Promise<boolean>
  /** Uses a recovery code up, and forgives; false if there is no such one. */
  useRecoveryCode(userId: Id, digest: Uint8Array): Promise<boolean>
  /** Ends the enrolment that has this sealed secret; false if there is none. */
  confirm(
    userId: Id,
    enrolled: {
      sealed: Uint8Array
      time: number
      step: number
      drift: number
      digests: readonly Uint8Array[]
    },
  ): Promise<boolean>
  /** Replaces the recovery codes; false if the user is not enrolled. */
  setRecoveryCodes(userId: Id, digests: readonly Uint8Array[]): Promise<boolean>
  /** Removes the factor with its recovery codes; false if there is none. */
  remove(userId: Id): Promise<boolean>
}

/** A password of a user that a server has accepted. */
export interface OfflineProof {
  userId: Id
  externalAuthId: Id
  /** The sealed hash. */
  sealed: Uint8Array
  /** Milliseconds since the epoch. */
  time: number
  /** The user's at that time. */
  secretRevision: number
}

export interface OfflineProofRepository {
  /** Returns the proofs of the user, the newest first. */
  ofUser(userId: Id): Promise<OfflineProof[]>
  /** Stores a proof, in place of an earlier one. */
  set(proof: OfflineProof): Promise<void>
  /** Counts a try before it is judged; false if there were `most` since the last right one, or there is no proof. */
  countTry(proof: Pick<OfflineProof, 'userId' | 'externalAuthId'>, most: number): Promise<boolean>
  /** Forgives the tries after a right one. */
  forgive(proof: Pick<OfflineProof, 'userId' | 'externalAuthId'>): Promise<void>
  /** Removes what is kept of the user of that name. */
  forget(externalAuthId: Id, userName: string): Promise<void>
  removeAll(): Promise<void>
}

/** A one-time ticket. */
export interface StoredTicket {
  id: Id
  userId: Id
  protocol: string
  /** Address that the viewer has to connect from. */
  address: string
  /** Milliseconds since the epoch. */
  expires: number
  /** The sealed password. */
  sealed: Uint8Array
  /** JSON object with user, basis and target. */
  ticket: string
}

export interface TicketRepository {
  /** Adds a ticket unless there are too many; removes expired ones. Returns whether it was added. */
  add(ticket: StoredTicket, now: number, limits: { ofUser: number; all: number }): Promise<boolean>
  /** Returns the valid tickets for this protocol and address. */
  waitingFor(protocol: string, address: string, now: number): Promise<StoredTicket[]>
  /** Returns all valid tickets. */
  waiting(now: number): Promise<StoredTicket[]>
  /** Removes a valid ticket and returns it: to one of those that take it at the same time. */
  take(id: Id, now: number): Promise<StoredTicket | undefined>
  removeAll(): Promise<void>
}

/** An invitation that waits for its guest. */
export interface StoredInvitation {
  id: Id
  session: Id
  /** Address that the guest has to come from; empty for any. */
  address: string
  /** Milliseconds since the epoch. */
  expires: number
  /** The sealed password. */
  sealed: Uint8Array
}

export interface InvitationRepository {
  /** Adds an invitation unless `limit` wait; removes expired ones. Returns whether it was added. */
  add(invitation: StoredInvitation, now: number, limit: number): Promise<boolean>
  /** Returns those that wait, for a guest at this address. The end of a session removes its own. */
  waitingFor(address: string, now: number): Promise<StoredInvitation[]>
  /** Removes one that waits. Returns true to one of those that take it at the same time. */
  take(id: Id, now: number): Promise<boolean>
  removeAll(): Promise<void>
}

/** Keys of an attempt to sign in: of its name and network, and of its network. */
export interface LockoutKeys {
  pair: Uint8Array
  address: Uint8Array
  /** Of the name alone: to show and to lift its locks, never to count failures. */
  name: Uint8Array
}

/** Failures of a key. Times in milliseconds since the epoch. */
export interface Failures {
  failures: number
  /** Time of the first one. */
  since: number
  /** 0 if not locked. */
  lockedUntil: number
}

export type FailuresOf = Partial<Record<'pair' | 'address', Failures>>

export interface LockoutLimits {
  /** Failures of one name from one address that lock the pair. */
  pairFailures: number
  /** Failures from one address, over all names, that lock the address. */
  addressFailures: number
  /** Time after the first failure at which failures are cleared. */
  windowMs: number
  lockMs: number
  /**
   * Limit of remembered pairs, and of addresses; beyond it one is removed: in memory the one idle longest, in
   * the store the one that would be cleared first.
   */
  maxEntries: number
}

/** Failures of sign-ins, and attempts in progress. */
export interface LockoutRepository {
  /** Returns the failures that still count. One statement that writes nothing. */
  find(keys: LockoutKeys, now: number): Promise<FailuresOf>
  /**
   * Adds an attempt in progress, which counts until `expires` like a failure. Returns its id, or undefined if
   * the failures and attempts reach a limit already.
   */
  reserve(keys: LockoutKeys, now: number, expires: number, limits: LockoutLimits): Promise<Id | undefined>
  /** Counts a failure of both keys and ends the attempt. Returns the failures since. */
  fail(
    keys: LockoutKeys,
    attempt: Id | undefined,
    now: number,
    limits: LockoutLimits,
  ): Promise<Required<FailuresOf>>
  /** Returns the names that are locked. */
  lockedNames(now: number): Promise<Uint8Array[]>
  /** Forgets the failures of the name, from wherever they came. */
  forgive(name: Uint8Array): Promise<void>
  /** Ends the attempt, and forgets the failures of `forgiven`. */
  end(attempt: Id | undefined, forgiven?: Uint8Array): Promise<void>
}

/** Authentication data of a user; never leaves identity/. */
export interface UserSecrets {
  /** Sealed hash. */
  passwordHash?: Uint8Array
}

export interface UserRepository extends Repository<User> {
  /** Returns the users of these ids; one that does not exist is left out. */
  some(ids: readonly Id[]): Promise<User[]>
  /** Returns the user with that name, or with one that looks the same (model/look-alikes.ts). */
  lookingLike(name: string): Promise<User | undefined>
  /** Notes the visual form of names for users from an earlier version. Returns their number. */
  noteLooks(): Promise<number>
  secretsOf(id: Id): Promise<UserSecrets>
  /** Returns the name of a local user that ends in `@` and that domain, or undefined if there is none. */
  localAt(domainName: string): Promise<string | undefined>
  /** Notes a sign-in, once a minute. */
  noteSignIn(id: Id, now: number): Promise<void>
  setPasswordHash(id: Id, sealed: Uint8Array): Promise<void>
  /** Stores another hash of the same password, if `before` is still the stored one. */
  renewPasswordHash(id: Id, before: Uint8Array, sealed: Uint8Array): Promise<void>
  /** Returns the hashes that an earlier version has left in clear text. */
  clearPasswordHashes(): Promise<{ id: Id; hash: string }[]>
  /** Stores the same hash sealed, in place of `clear`, if that is still stored. */
  sealPasswordHash(id: Id, clear: string, sealed: Uint8Array): Promise<void>
}

/** The server's word about a person who has proved themselves. */
export interface ProvedPerson {
  /** Without the domain. */
  userName: string
  stableId?: string
  displayName?: string
  email?: string
  /** Lines of authorized_keys, without options. */
  publicKeys?: readonly string[]
  groups: readonly string[]
}

export interface PersonRepository {
  list(page: Page | undefined, domainId: Id): Promise<Listed<User>>
  /**
   * Notes a person of a domain after the server has accepted them, and returns the user that they are. Undefined if no
   * mapping gives them anything, or if another user's name is or looks like theirs. Writes only what has changed.
   */
  signedIn(domainId: Id, person: ProvedPerson): Promise<User | undefined>
  /** Returns what the mappings give to members of these groups, or undefined if none matches. */
  mappedTo(domainId: Id, groups: readonly string[]): Promise<{ groupIds: Id[]; profile: string } | undefined>
  /** Disables a person until the next sign-in; their sessions end. */
  suspend(id: Id): Promise<void>
  /** Forgets a person. Returns false if the id is no person's. */
  remove(id: Id): Promise<boolean>
}

/** A user as a provider has described it by SCIM. */
export interface ScimUser {
  id: Id
  authDomainId: Id
  /** The person, while there is one. */
  personId?: Id
  userName: string
  externalId?: string
  isActive: boolean
  /** The other attributes, by their names in the schema. */
  more: Readonly<Record<string, unknown>>
  /** Milliseconds since the epoch, as `modified`. */
  created: number
  modified: number
  revision: number
}
export type NewScimUser = Pick<ScimUser, 'userName' | 'externalId' | 'isActive' | 'more'>

export interface ScimGroup {
  id: Id
  authDomainId: Id
  displayName: string
  externalId?: string
  created: number
  modified: number
  revision: number
}
export type NewScimGroup = Pick<ScimGroup, 'displayName' | 'externalId'>

/** Where a list goes on: behind an id, or after a number of others. */
export interface ScimPlace {
  after?: Id
  offset?: number
  limit: number
}

/** The users of a domain, and what is the same for its groups. All are found within the domain only. */
export interface ScimCollection<T, N> {
  count(domainId: Id): Promise<number>
  /** Returns some, in the order of their ids. */
  some(domainId: Id, place: ScimPlace): Promise<T[]>
  find(domainId: Id, id: Id): Promise<T | undefined>
  /** Finds the one with a value that is unique. */
  findBy(domainId: Id, field: 'name' | 'externalId', value: string): Promise<T | undefined>
  /** @throws DuplicateError */
  create(domainId: Id, object: N, now: number): Promise<T>
}

export interface ScimUserRepository extends ScimCollection<ScimUser, NewScimUser> {
  /** Returns the groups of these users. */
  groupsOf(ids: readonly Id[]): Promise<{ userId: Id; groupId: Id; displayName: string }[]>
  /** Changes a user and its person. @throws ChangedError, DuplicateError, LastAdministratorError */
  update(old: ScimUser, object: NewScimUser, now: number): Promise<ScimUser>
  /** Removes a user and its person. @throws ChangedError, LastAdministratorError */
  remove(old: ScimUser): Promise<void>
}

/** Changes of a group's members. `isWhole`: those who are not in `added` go. */
export interface ScimMemberChange {
  isWhole: boolean
  added: ReadonlySet<Id>
  removed: ReadonlySet<Id>
}

export interface ScimGroupRepository extends ScimCollection<ScimGroup, NewScimGroup> {
  /** Returns the ids of some of the members, in their order. */
  members(groupId: Id, after: Id, limit: number): Promise<Id[]>
  memberCount(groupId: Id): Promise<number>
  /** Returns those of the groups that have this member. */
  withMember(groupIds: readonly Id[], userId: Id): Promise<Id[]>
  /** Returns those of the ids that are no user of the domain. */
  strangers(domainId: Id, userIds: readonly Id[]): Promise<Id[]>
  /**
   * Changes a group, its members and their persons, some at a time: what fails in between leaves a part of it done, and doing
   * it again does the rest. @throws ChangedError, DuplicateError, LastAdministratorError before anything is done
   */
  update(old: ScimGroup, object: NewScimGroup, members: ScimMemberChange, now: number): Promise<ScimGroup>
  /** Removes a group, likewise. */
  remove(old: ScimGroup, now: number): Promise<void>
}

/** A token by which a provider provisions the persons of one domain. */
export interface ScimToken {
  id: Id
  authDomainId: Id
  tokenName: string
  ipSource: string[]
  expirationDate?: number
  createdAt: number
  lastUsed?: number
  /** Empty before the first use. */
  lastAddress: string
}

export interface ScimTokenRepository {
  list(page: Page | undefined, domainId: Id): Promise<Listed<ScimToken>>
  find(domainId: Id, idOrName: string): Promise<ScimToken | undefined>
  findByHash(sha256: Uint8Array): Promise<ScimToken | undefined>
  /** @throws DuplicateError, and TooManyError if the domain has `most` of them */
  create(token: Omit<ScimToken, 'id'>, sha256: Uint8Array, most: number): Promise<ScimToken>
  update(
    id: Id,
    change: Partial<Omit<ScimToken, 'id' | 'authDomainId'>>,
    expected?: ScimToken,
  ): Promise<ScimToken>
  remove(id: Id): Promise<void>
  used(id: Id, time: number, address: string): Promise<void>
}

/** A target, or an account, as an event names it. */
export interface NotifiedPlace {
  account?: string
  domain?: string
  device?: string
  service?: string
}

export interface NotificationRepository extends Repository<Notification> {
  sealedSecret(id: Id, name: string): Promise<Uint8Array | undefined>
  /** Sets the only secret; undefined removes it. */
  setSealedSecret(id: Id, name: string, sealed: Uint8Array | undefined): Promise<void>
  /** Returns whether a user of this name is in one of the groups. */
  isUserIn(user: string, groupIds: readonly Id[]): Promise<boolean>
  /** Returns whether one of the groups has the target, or the account. */
  isTargetIn(place: NotifiedPlace, groupIds: readonly Id[]): Promise<boolean>
}

export interface ExternalAuthRepository extends Repository<ExternalAuth> {
  /** Returns the profiles of the local users that name it among their methods. */
  profilesOfUsers(id: Id): Promise<string[]>
  /** Returns the sealed secrets by their names. */
  sealedSecrets(id: Id): Promise<Map<string, Uint8Array>>
  /** Sets the secrets that are given; undefined removes one. */
  setSealedSecrets(id: Id, secrets: ReadonlyMap<string, Uint8Array | undefined>): Promise<void>
}

export interface AuthDomainRepository extends Repository<AuthDomain> {
  /** Returns the default domain. */
  standard(): Promise<AuthDomain | undefined>
}

export interface AuthDomainMappingRepository extends Repository<AuthDomainMapping> {
  /** Lists the mappings of one domain, or of all. `find` finds by id only. */
  list(page?: Page, domainId?: Id): Promise<Listed<AuthDomainMapping>>
}

export interface ServiceRepository extends Repository<Service> {
  /** Lists the services of one device, or of all. */
  list(page?: Page, deviceId?: Id): Promise<Listed<Service>>
  ofDevice(deviceId: Id): Promise<Service[]>
}

export interface DomainRepository extends Repository<Domain> {
  /**
   * Lists the local domains of a device, or the global ones. `find` accepts ids of both kinds, and names of
   * global ones only.
   */
  list(page?: Page, deviceId?: Id): Promise<Listed<Domain>>
  /** Returns a device's local domains, sorted by name. */
  ofDevice(deviceId: Id): Promise<Domain[]>
  /** Returns the plugins of the domains with this password change policy, enabled or not. */
  pluginsOfPolicy(policyId: Id): Promise<string[]>
  /** Returns the sealed key of the domain's certificate authority. */
  sealedAuthority(id: Id): Promise<Uint8Array | undefined>
  /** Stores the authority, or removes it if undefined. */
  setSealedAuthority(id: Id, authority: { sealed: Uint8Array; publicKey: string } | undefined): Promise<void>
}

/** An account with its domain and device. */
export interface PlacedAccount {
  account: Account
  domain: Domain
  /** The device whose local domain it is. Undefined for a global one. */
  device: Device | undefined
}

/** Criteria of a searched account; each of them narrows the result. */
export interface WantedAccount {
  /** Id or name. */
  account: string
  domainName?: string
  /** Id or name. Undefined to include global domains. */
  device?: string
  id?: Id
  /** Restricts to this user's authorizations. */
  retrievableBy?: Id
}

export interface AccountRepository extends Repository<Account> {
  /** Lists the accounts of one domain, of the domains of one device, or all. */
  list(page?: Page, place?: { domainId: Id } | { deviceId: Id }): Promise<Listed<Account>>
  /** Returns the domain's account of that id or name. */
  inDomain(domainId: Id, idOrName: string): Promise<Account | undefined>
  /** Returns the matching accounts, at most `limit`: thousands of devices may have an account of one name. */
  meant(wanted: WantedAccount, limit: number): Promise<PlacedAccount[]>
  /** Returns sealed credentials, as the vault stores them: JSON per type. */
  sealedCredentials(id: Id): Promise<{ type: string; sealed: Uint8Array }[]>
  /** `set`: when they were set, in milliseconds since the epoch, and whether sessions begun before have to end. */
  setSealedCredentials(
    id: Id,
    credentials: { type: string; sealed: Uint8Array }[],
    set?: { time: number; severs: boolean },
  ): Promise<void>
  /** Of these accounts, returns the last revisions of secrets that ended the sessions begun before. */
  severedRevisions(ids: readonly Id[]): Promise<Map<Id, number>>
}

/**
 * Roles of a secret beside the stored one. `wanted`: given by an administrator for a change that has not begun. `next`: the
 * target may have it. `previous`: was replaced by the stored one.
 */
export type PendingRole = 'wanted' | 'next' | 'doubtful' | 'previous'
/** End of the next secret: it is removed, since the target was never asked for it, or becomes the doubtful one, sealed. */
export type Leaving = 'removed' | Uint8Array

/** A change or check that is asked for. */
export type AskedJob = Pick<
  SecretJob,
  'accountId' | 'type' | 'kind' | 'cause' | 'user' | 'isForced' | 'due' | 'created'
>

/** Counts of accounts of domains whose secrets are changed. */
export interface SecretFigures {
  managed: number
  /** Those whose secret is older than their policy allows, or of unknown age. */
  overdue: number
  mismatch: number
  unknown: number
  pending: number
}

/**
 * Changes and checks of secrets. One runner has a job until the time of its `lease`, which each of its steps names;
 * these throw ChangedError if the job has ended, or another runner has it. Times in milliseconds since the epoch.
 */
export interface SecretJobRepository {
  /**
   * Adds a job, or returns the open one of the same account, type and kind, at the earlier time. `wanted`: a sealed secret.
   * @throws DuplicateError if there is one, or an earlier one has left a secret, and one is wanted
   */
  add(job: AskedJob, wanted?: Uint8Array): Promise<SecretJob>
  /**
   * Adds a job for each secret of these types in a domain that has no open one, for a schedule without accounts that are
   * kept out of it; notes in the same transaction that the schedule's run was made. A demand takes open ones over. Returns
   * those that were added or taken over.
   */
  addForDomain(
    domainId: Id,
    schedule: SecretSchedule | undefined,
    types: readonly CredentialType[],
    job: Omit<AskedJob, 'accountId' | 'type'>,
  ): Promise<SecretJob[]>
  /** Returns jobs to be done now, the oldest first. */
  due(now: number, limit: number, withoutDomains: readonly Id[]): Promise<(SecretJob & { domainId: Id })[]>
  /** Returns the job if it is the caller's until `lease`, or undefined if it or another of its account is another's. */
  claim(id: Id, now: number, lease: number): Promise<SecretJob | undefined>
  renew(id: Id, before: number, lease: number): Promise<void>
  /**
   * Stores the next secret. If the account is checked out, and the job is not forced, ends the lease until that expires, or
   * `wake` is called.
   */
  begin(id: Id, lease: number, now: number, next: Uint8Array): Promise<{ isBegun: boolean }>
  pending(accountId: Id, type: CredentialType): Promise<Partial<Record<PendingRole, Uint8Array>>>
  /**
   * Makes a secret the stored one, and ends the job, with other begun ones for the same. `revision`: of the stored secret that
   * it replaces. Sessions with that one end if the job was demanded.
   * @throws ChangedError if the stored one is another by now
   */
  promote(
    id: Id,
    lease: number,
    promoted: {
      now: number
      sealed: Uint8Array
      previous: Uint8Array
      revision: number
      code: string
      message: string
    },
  ): Promise<void>
  /** Ends the job without a change. The next secret stays, unless `left` is given. */
  giveUp(
    id: Id,
    lease: number,
    given: {
      now: number
      outcome: ChangeOutcome
      state?: SecretState
      isOldProved: boolean
      left?: Leaving
      code: string
      message: string
    },
  ): Promise<void>
  /** Ends the lease until `due`. The next secret stays, unless `left` is given: then the job begins anew. */
  retry(
    id: Id,
    lease: number,
    later: { due: number; attempts: number; left?: Leaving; code: string; message: string },
  ): Promise<void>
  /** Ends the leases of all jobs: those of a broker that has ended. */
  release(): Promise<void>
  /** Makes the account's jobs that have not begun due at this time, unless they are before. */
  wake(accountId: Id, due: number): Promise<void>
  find(id: Id): Promise<SecretJob | undefined>
  list(accountId: Id, page?: Page): Promise<Listed<SecretJob>>
  /** Lists those of all accounts of a domain. */
  listOfDomain(domainId: Id, page?: Page): Promise<Listed<SecretJob & { accountName: string }>>
  /**
   * Returns schedules whose run is due, and (`isDue` false) those that begin anew: of a new domain, of an expression that has
   * changed, or after a clock that was set back.
   */
  schedules(
    now: number,
    limit: number,
  ): Promise<
    (Pick<SecretSchedule, 'domainId' | 'kind' | 'period' | 'timeZone'> & { plugin: string; isDue: boolean })[]
  >
  setSchedules(schedules: readonly SecretSchedule[]): Promise<void>
  /** Removes those of domains whose policy has no such schedule any more, or that change no secrets. */
  forgetSchedules(): Promise<void>
  figures(now: number): Promise<SecretFigures>
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
  /** Accepts the key if the service has no accepted one, in one transaction; otherwise returns undefined. */
  pinFirst(key: Omit<HostKey, 'id' | 'state'>): Promise<HostKey | undefined>
}

export interface CheckoutFilter {
  /** Milliseconds since the epoch. */
  now: number
  /** Those that are out, or that have ended. */
  status?: 'current' | 'closed'
  /** Only this user's. */
  of?: Pick<User, 'id' | 'userName'>
  id?: Id
}

export interface CheckoutRepository {
  find(id: Id): Promise<Checkout | undefined>
  /** Returns checkouts of the account that are open at `now`. */
  active(accountId: Id, now: number): Promise<Checkout[]>
  /** Returns checkouts by the user that are open at `now`. */
  ofUser(userId: Id, now: number): Promise<Checkout[]>
  /** Returns checkouts that are out at `now`, but whose approval holds no longer. */
  revoked(now: number, limit: number): Promise<Checkout[]>
  /** Returns all checkouts that are open at `now`. */
  out(now: number): Promise<Checkout[]>
  /** Returns the oldest checkouts that expired without a return, of those behind `after`. */
  expired(now: number, limit: number, after?: Pick<Checkout, 'id' | 'expires'>): Promise<Checkout[]>
  /** Creates a checkout in one transaction. Fails with DuplicateError if `exclusive` and another is open. */
  create(checkout: Omit<Checkout, 'id'>, exclusive: boolean): Promise<Checkout>
  /**
   * Returns checkouts, and the running sessions with a stored account, the newest first.
   * @throws SortError, SearchError, StoreBusyError
   */
  list(filter: CheckoutFilter, page?: Page): Promise<Listed<CheckoutRecord>>
  /**
   * Moves the end of a checkout that is out, and expires at `from`, to `to`. `clock` is read where the row is changed, since
   * waiting for that may take until another user has the account.
   * @throws MissingReferenceError if it has ended or expired, ChangedError if its end was moved meanwhile
   */
  extend(id: Id, from: number, to: number, clock: () => number): Promise<void>
  /** Moves the end of a checkout that is out to `to`, if it is later. */
  shorten(id: Id, to: number): Promise<void>
  /**
   * Ends a checkout; `forced`: for another user than its own.
   * @throws MissingReferenceError if there is none of that id, or it has ended already
   */
  end(id: Id, time: number, forced?: Checkout['forced']): Promise<void>
}

export interface ApprovalFilter {
  /** Restricts to this user's, and to those of authorizations with `answerableBy` among the approvers. */
  of?: Id
  answerableBy?: Id
  id?: Id
  status?: ApprovalState
}

/** The answers to an approval, and the sessions and checkouts that came of it. */
export interface ApprovalDetails {
  answers: Answer[]
  sessions: Id[]
  checkouts: Id[]
}

/**
 * Requests for approval. Each change returns the approval as it is afterwards, or why it was not made; of changes at
 * the same time each sees those before it.
 */
export interface ApprovalRepository {
  find(id: Id): Promise<Approval | undefined>
  some(ids: readonly Id[]): Promise<Approval[]>
  /** Returns approvals without their answers, the newest first. @throws SortError, SearchError, StoreBusyError */
  list(filter: ApprovalFilter, page?: Page): Promise<Listed<Approval>>
  details(ids: readonly Id[]): Promise<Map<Id, ApprovalDetails>>
  isFull(userId: Id, limits: { ofUser: number; all: number }): Promise<boolean>
  /** Adds a pending request, or returns undefined if as many are pending as may be. */
  create(
    approval: Omit<Approval, 'id'> & { id?: Id },
    limits: { ofUser: number; all: number },
  ): Promise<Approval | undefined>
  /**
   * Adds an answer, if its user may give one at that moment. `keyProfile`: of the API key that is used.
   * `not_found` for a user that may not.
   */
  answer(id: Id, given: GivenAnswer, keyProfile?: string): Promise<Approval | Refusal | 'not_found'>
  /** Whether the user may answer the requests of this authorization. */
  mayAnswer(
    approval: Pick<Approval, 'authorizationId' | 'userId' | 'kind'>,
    userId: Id,
    now: number,
    keyProfile?: string,
  ): Promise<boolean>
  /** Cancels a pending request, or revokes what was accepted. */
  cancel(id: Id, by: { by: string; comment: string; time: number }): Promise<Approval | Refusal | 'not_found'>
  expire(id: Id, now: number): Promise<Approval | Refusal | 'not_found'>
  /** Counts a session or checkout that is about to be opened; refuses if none may be. */
  use(id: Id, now: number): Promise<Approval | Refusal | 'not_found'>
  /** Takes a use back that has opened nothing. */
  release(id: Id): Promise<void>
  /** Returns the user's newest approvals of the object in this state. */
  ofUser(
    object: ApprovalObject & { userId: Id; kind: ApprovalKind },
    state: ApprovalState,
  ): Promise<Approval[]>
  /** Returns pending requests whose time has come, the oldest first. */
  overdue(now: number, limit: number): Promise<Approval[]>
  /** Returns pending requests of clients that wait at another process than `except`. */
  waitingAt(limit: number, except: string): Promise<Approval[]>
  /** Has the requests of this process' clients stay when these leave, as one by the API does. Held commands do not. */
  detach(process: string): Promise<void>
  /** Removes requests that were over before that time, the oldest first. Returns how many. */
  removeEnded(before: number, limit: number): Promise<number>
  /** Returns the number of pending requests. */
  pending(): Promise<number>
  /** Returns the names of the groups whose members may answer. */
  approversOf(authorizationId: Id): Promise<string[]>
  /** Counts the users in the groups, each once. `able`: those that are active, and have the right to answer. */
  membersOf(groupIds: readonly Id[], now: number): Promise<{ all: number; able: number }>
}

export interface SessionRepository {
  list(filter: { status?: 'current' | 'closed' }, page?: Page): Promise<Listed<SessionRecord>>
  find(id: Id): Promise<SessionRecord | undefined>
  /**
   * Returns the oldest sessions that began before, whose recordings are closed, not deleted and not on legal
   * hold.
   */
  deletable(begunBefore: number, limit: number): Promise<SessionRecord[]>
  /** Returns sessions that ended in order while their recordings could not be closed. */
  unsealed(): Promise<SessionRecord[]>
  /** Returns the bytes of all recordings that were not deleted. */
  recordedBytes(): Promise<number>
  create(session: SessionRecord): Promise<void>
  update(id: Id, change: Partial<Omit<SessionRecord, 'id'>>): Promise<void>
}

/** Pending work on the copies of recordings in the object store. */
export interface UploadRepository {
  find(session: Id): Promise<Upload | undefined>
  /** Returns the longest due of those that are due at `now`, except `without`. */
  due(now: number, limit: number, without: readonly Id[]): Promise<Upload[]>
  /** Adds an upload unless the session has one. */
  add(session: Id, begin: number, due: number): Promise<void>
  /** Adds all sessions that ended with a recording and have no upload. Returns their number. */
  adopt(due: number): Promise<number>
  /** Changes the upload if it is still in this state. */
  update(session: Id, state: UploadState, change: Partial<Omit<Upload, 'session' | 'begin'>>): Promise<void>
  /** Marks the copy, if there may be one, for deletion, in any state. */
  forget(session: Id, begin: number, due: number): Promise<void>
  remove(session: Id): Promise<void>
  /** Schedules the removal of local copies `keep` milliseconds after their upload. Undefined to keep them. */
  keepLocal(keep: number | undefined): Promise<void>
  /** Returns the number of recordings that are not in the bucket yet. */
  waiting(): Promise<number>
}

/** A target that a user may open: one row of the join over groups and authorizations. */
export interface TargetRow {
  kind: TargetKind
  /** Undefined if there is no stored account. */
  accountId: Id | undefined
  /** The user's login for a mapping. Empty for an interactive login. */
  accountName: string
  accountLogin: string
  domainId: Id | undefined
  /** Empty if there is no stored account. */
  domainName: string
  /** True if the domain is the device's own. */
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
  /** Undefined for the factory's policy. */
  connectionPolicyId: Id | undefined
  hostKeyPolicy: HostKeyPolicy
  authorizationId: Id
  authorizationName: string
  /** Timeframes of the user group; empty if all times are allowed. */
  timeframes: readonly TimeRule[]
  authorizationSubprotocols: Authorization['subprotocols']
  isRecorded: boolean
  recordingMode: Authorization['recordingMode']
  /** Absent if the authorization sets none. */
  conditions?: RowConditions
}

/** The part of an authorization's conditions that decides which row opens a target. */
export type RowConditions = Omit<
  Conditions,
  'approverGroupIds' | 'approvalTimeout' | 'singleConnection' | 'secondFactorRemember' | 'secondFactorKeys'
>

/** `device` is a name. */
export interface TargetFilter {
  device?: string
  /** Set for the rows out of their timeframes instead: of targets for another time, or for an approval. */
  isOutside?: true
}

/** An authorization for an account's secret. */
export interface Retrieval {
  userId: Id
  accountId: Id
  authorizationId: Id
  authorizationName: string
  /** Absent if the authorization sets none. */
  conditions?: RowConditions
  /** Timeframes of the user group; empty if all times are allowed. */
  timeframes: readonly TimeRule[]
}

/** A user, and a target by its service and account, if it has one. */
export interface AskedTarget {
  userId: Id
  serviceId: Id
  accountId: Id | undefined
}

/** An authorization counts while one of the timeframes of its user group holds; `now` in milliseconds since the epoch. */
export interface AccessQueries {
  /**
   * Returns every (target, authorization) pair that lets the user open sessions now; one target may have several
   * rows.
   */
  sessionTargets(userId: Id, now: number, filter?: TargetFilter): Promise<TargetRow[]>
  /**
   * Returns the pairs that let these users open sessions with these targets, also those out of their timeframes: for
   * sessions that run, which the caller judges.
   */
  grants(asked: readonly AskedTarget[]): Promise<(TargetRow & { userId: Id })[]>
  /** Returns those of the users who may open any target: for whom `sessionTargets` returns a row. */
  withTargets(userIds: readonly Id[], now: number): Promise<Set<Id>>
  /** Returns those of the users who are in the group. */
  membersAmong(userIds: readonly Id[], groupId: Id): Promise<Id[]>
  /** Returns the user groups that an authorization joins to the target group. */
  groupsAt(targetGroupId: Id): Promise<Id[]>
  /** Returns whether the user is mapped to one of the targets, whenever. */
  hasMapping(userId: Id): Promise<boolean>
  /**
   * Returns the authorizations with which these users may check out the secrets of these accounts, also those out of
   * their timeframes.
   */
  retrievals(asked: readonly { userId: Id; accountId: Id }[]): Promise<Retrieval[]>
}

/** Kinds of objects that changes are about. A change of a user may be one of the user's groups. */
export type ChangeKind =
  | 'user'
  | 'user_group'
  | 'target_group'
  | 'device'
  | 'service'
  | 'domain'
  | 'account'
  | 'api_key'
  | 'approval'
  | 'everyone'

/** A change of rights. `object` is an id, which says nothing if the change is about everyone. */
export interface Change {
  revision: number
  kind: ChangeKind
  object: Id
}

/**
 * The log of changes of rights, by any writer. Revisions grow in the order in which changes become visible; there
 * may be gaps.
 */
export interface ChangeRepository {
  /** Returns the first changes after this revision. */
  after(revision: number, limit: number): Promise<Change[]>
  /** Returns the revisions of the oldest and the newest change that is kept; 0 if none is. */
  kept(): Promise<{ first: number; last: number }>
  /** Removes the oldest changes but the newest `keep`, at most `limit`. Returns their number. */
  removeOldest(keep: number, limit: number): Promise<number>
}

/** Names by id; an id that does not exist is left out. */
export interface NameQueries {
  users(ids: Iterable<Id>): Promise<Map<Id, string>>
  /** Returns when these users have signed in last, in milliseconds since the epoch. */
  lastSignIns(ids: Iterable<Id>): Promise<Map<Id, number>>
  userGroups(ids: Iterable<Id>): Promise<Map<Id, string>>
  timeframes(ids: Iterable<Id>): Promise<Map<Id, string>>
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

/** A row of the audit log: see src/audit/chain.ts for the hashes. */
export interface AuditRow {
  sequence: number
  time: number
  code: string
  /** The event's canonical JSON, exactly the hashed bytes. */
  json: string
  hash: Uint8Array
  /**
   * Only in rows that were read: the column that `ofSession` searches. Null if the event belongs to no
   * session.
   */
  session?: string | null
}

export interface AuditRepository {
  last(): Promise<AuditRow | undefined>
  append(rows: AuditRow[]): Promise<void>
  range(fromSequence: number, limit: number): Promise<AuditRow[]>
  ofSession(session: Id, limit: number): Promise<AuditRow[]>
  /** Returns the newest thousand rows of `audit.handover`, newest first. */
  handovers(): Promise<AuditRow[]>
  /** Removes the oldest rows up to `sequence`, at most `limit` of them. Returns their number. */
  removeUpTo(sequence: number, limit: number): Promise<number>
  /**
   * Returns rows `recording.progress` from this moment (milliseconds since the epoch) and row on, in their
   * order.
   */
  progress(since: number, fromSequence: number, limit: number): Promise<AuditRow[]>
}

/** Where a search of the audit log stands, and the rows that it may read. */
export interface AuditPlace {
  /** The last row that was read. */
  row: number
  /** The first and the last row. */
  first: number
  last: number
}

export interface AuditSearch {
  /** Absent to find every row. */
  condition?: Condition
  newestFirst: boolean
  /** Place where another search stood. Absent to begin. `first` and `last` may be absent in it. */
  after?: Pick<AuditPlace, 'row'> & Partial<AuditPlace>
}

/** The rows that a search has found in one stretch of the log, in its order, and where it stands. */
export interface AuditStretch {
  rows: AuditRow[]
  place: AuditPlace
  /** Whether nothing is left to read. */
  isLast: boolean
}

export interface AuditSearchRepository {
  /** Yields stretch by stretch, each read aside from this process's event loop. @throws SearchError, StoreBusyError */
  search(search: AuditSearch): AsyncGenerator<AuditStretch>
  /**
   * Returns the first and the last row between the times that the condition names, or undefined if there is none. Others
   * between them may be of other times: clocks jump.
   */
  ends(condition?: Condition): Promise<Pick<AuditPlace, 'first' | 'last'> | undefined>
  /** Returns the last checkpoint up to this row, and the first from there on, if they exist. */
  checkpoints(sequence: number): Promise<{ before?: number; from?: number }>
}

/** A value sealed by vault/seal.ts, and the place that it is bound to. */
export interface SealedValue {
  place: { table: string; id: string; field: string }
  sealed: Uint8Array
}

/** All values that the vault has sealed, to be sealed again under a new data key. */
export interface SealedRepository {
  /** Returns all sealed values, and all settings, sealed or not. */
  all(): Promise<SealedValue[]>
  /** Replaces the stored value. */
  replace(value: SealedValue): Promise<void>
}

/** Small values by name: the wrapped data key, the schema's identity. */
export interface SettingRepository {
  get(name: string): Promise<Uint8Array | undefined>
  set(name: string, value: Uint8Array): Promise<void>
  /** Sets a value that is not set yet, in one step. Returns the value that is stored afterwards. */
  setOnce(name: string, value: Uint8Array): Promise<Uint8Array>
  /**
   * Replaces a value in one step if it is still `before` (undefined if not set). Returns false if it has
   * changed.
   */
  replace(name: string, before: Uint8Array | undefined, value: Uint8Array): Promise<boolean>
  /** Removes a value; succeeds if it is not set. */
  remove(name: string): Promise<void>
}

export interface Store {
  users: UserRepository
  userGroups: Repository<UserGroup>
  timeframes: Repository<Timeframe>
  devices: Repository<Device>
  services: ServiceRepository
  domains: DomainRepository
  accounts: AccountRepository
  targetGroups: Repository<TargetGroup>
  authorizations: AuthorizationRepository
  apiKeys: ApiKeyRepository
  profiles: ProfileRepository
  checkoutPolicies: Repository<CheckoutPolicy>
  passwordChangePolicies: Repository<PasswordChangePolicy>
  externalAuths: ExternalAuthRepository
  notifications: NotificationRepository
  offlineProofs: OfflineProofRepository
  authDomains: AuthDomainRepository
  authDomainMappings: AuthDomainMappingRepository
  persons: PersonRepository
  scimUsers: ScimUserRepository
  scimGroups: ScimGroupRepository
  scimTokens: ScimTokenRepository
  secretJobs: SecretJobRepository
  connectionPolicies: Repository<ConnectionPolicy>
  hostKeys: HostKeyRepository
  approvals: ApprovalRepository
  checkouts: CheckoutRepository
  idempotency: IdempotencyRepository
  signIns: SignInRepository
  providerSessions: ProviderSessionRepository
  securityKeys: SecurityKeyRepository
  usedMessages: UsedMessageRepository
  tickets: TicketRepository
  invitations: InvitationRepository
  lockouts: LockoutRepository
  secondFactors: SecondFactorRepository
  userCertificates: UserCertificateRepository
  sessions: SessionRepository
  uploads: UploadRepository
  access: AccessQueries
  changes: ChangeRepository
  names: NameQueries
  audit: AuditRepository
  auditSearch: AuditSearchRepository
  settings: SettingRepository
  sealed: SealedRepository
  /**
   * Runs `work` in one transaction of the store that it receives: all of it is stored, or, if `work` throws,
   * nothing. All other callers wait for the database meanwhile, and so does `work` if it uses another store.
   * An error of the received store must be rethrown, since half of an operation may be done. Where several processes
   * write, `work` is repeated if they were faster, unless `isOnce`.
   * @throws ConflictError if they were faster each time
   */
  transaction<T>(work: (store: Store) => Promise<T>, isOnce?: boolean): Promise<T>
  /**
   * Runs `work` in one transaction between two changes of rights (`changes`): it has read all those before, and a review
   * of those behind it finds what it has written. Otherwise as `transaction`.
   */
  amongRights<T>(work: (store: Store) => Promise<T>): Promise<T>
  /**
   * Runs `work` on the data as of one moment, whatever others write meanwhile. It only reads, and soon: a file's
   * other callers in this process wait for it, and a server ends it if it pauses for a minute.
   */
  snapshot<T>(work: (store: Store) => Promise<T>): Promise<T>
  /**
   * Claims the data for a broker: no other one can. A file has no claim, since the data folder has one. Returns a
   * function that releases it; `onTaken` is called if another broker has it after a connection was lost, or its data
   * were copied elsewhere.
   * @throws StoreClaimedError if another broker has it
   */
  claim(onTaken: (error: Error) => void): Promise<() => Promise<void>>
  reach: Reach
  close(): Promise<void>
}
