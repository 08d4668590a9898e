/** Opens the database and creates the repositories on it. */
import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { Kysely } from 'kysely'
import type { PostgresPlace } from '../model/database.ts'
import { accessQueries } from './access.ts'
import { accountRepository } from './accounts.ts'
import { apiKeyRepository } from './api-keys.ts'
import { approvalRepository } from './approvals.ts'
import { auditRepository } from './audit.ts'
import { auditSearchRepository } from './audit-search.ts'
import { authDomainMappingRepository, authDomainRepository } from './auth-domains.ts'
import { authorizationRepository } from './authorizations.ts'
import { amongRights, changeRepository } from './changes.ts'
import { checkoutPolicyRepository } from './checkout-policies.ts'
import { checkoutRepository } from './checkouts.ts'
import { connectionPolicyRepository } from './connection-policies.ts'
import { deviceRepository } from './devices.ts'
import { domainRepository } from './domains.ts'
import { Checkpoints, LONG_LOG_PAGES } from './engine/checkpoints.ts'
import { alone } from './engine/commits.ts'
import { NodeSqliteDialect } from './engine/dialect.ts'
import { isLocked, StoreError } from './engine/errors.ts'
import { Patterns } from './engine/patterns.ts'
import { ALWAYS_THERE } from './engine/reach.ts'
import { ReadingThread } from './engine/reading-thread.ts'
import { requireInUse, STATE } from './engine/state.ts'
import { WalSync } from './engine/wal-sync.ts'
import { externalAuthRepository } from './external-auths.ts'
import { hostKeyRepository } from './host-keys.ts'
import { idempotencyRepository } from './idempotency.ts'
import { newUlid } from './ids.ts'
import { invitationRepository } from './invitations.ts'
import { lockoutRepository } from './lockouts.ts'
import { MIGRATIONS, migrate } from './migrate.ts'
import type { Db, Schema, StoreContext } from './migrations/schema.ts'
import { nameQueries } from './naming.ts'
import { notificationRepository } from './notifications.ts'
import { offlineProofRepository } from './offline-proofs.ts'
import { passwordChangePolicyRepository } from './password-change-policies.ts'
import { personRepository } from './persons.ts'
import type { PostgresOptions } from './postgres/open.ts'
import { profileRepository } from './profiles.ts'
import { providerSessionRepository } from './provider-sessions.ts'
import { scimGroupRepository } from './scim-groups.ts'
import { scimTokenRepository } from './scim-tokens.ts'
import { scimUserRepository } from './scim-users.ts'
import { sealedRepository } from './sealed.ts'
import { secondFactorRepository } from './second-factors.ts'
import { secretJobRepository } from './secret-jobs.ts'
import { securityKeyRepository } from './security-keys.ts'
import { serviceRepository } from './services.ts'
import { sessionRepository } from './sessions.ts'
import { settingRepository } from './settings.ts'
import { signInRepository } from './sign-ins.ts'
import type { Store } from './store.ts'
import { targetGroupRepository } from './target-groups.ts'
import { ticketRepository } from './tickets.ts'
import { timeframeRepository } from './timeframes.ts'
import { uploadRepository } from './uploads.ts'
import { usedMessageRepository } from './used-messages.ts'
import { userCertificateRepository } from './user-certificates.ts'
import { userGroupRepository } from './user-groups.ts'
import { userRepository } from './users.ts'

/** Time that a statement waits for another process, for example a command line beside the running broker. */
const BUSY_TIMEOUT_MS = 5000

interface CommonOptions {
  /** Makes ids of new objects. Absent for ULIDs. */
  newId?: () => string
  /** Milliseconds since the epoch; used only for the time of a migration, and by whom the store is open. */
  now?: () => number
}

interface SqliteOptions {
  /** The database file; created with mode 0600 if it does not exist. */
  path: string
}

export type StoreOptions = CommonOptions & (SqliteOptions | PostgresOptions)

/**
 * Opens the store and brings its schema up to date.
 * @throws SchemaError if the database is newer than this program, StoreError if it is an unfinished copy, or has one
 *   that is used in its place
 */
export async function openStore({
  newId = newUlid,
  now = Date.now,
  ...engine
}: StoreOptions): Promise<Store> {
  if ('path' in engine) return openSqlite(engine, newId, now)
  // Loaded on demand: most brokers have no server.
  const { openPostgres } = await import('./postgres/open.ts')
  const { db, ...more } = await openPostgres(engine, { now, migrations: MIGRATIONS })
  return storeOn({ db, newId }, more)
}

/** Returns why a broker could not begin with a server's database, or undefined; changes nothing. */
export async function databaseFault(place: PostgresPlace): Promise<string | undefined> {
  const { probePostgres } = await import('./postgres/open.ts')
  return await probePostgres(place, MIGRATIONS)
}

/** Returns the time of a server's clock in milliseconds. @throws StoreError if it cannot be asked */
export async function databaseClock(place: PostgresPlace): Promise<number> {
  const { postgresClock } = await import('./postgres/open.ts')
  return await postgresClock(place)
}

function openSqlite({ path }: SqliteOptions, newId: () => string, now: () => number): Store {
  // SQLite would create it with the umask's mode; its -wal and -shm files get the mode of the database.
  closeSync(openSync(path, 'a', 0o600))
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true })
  try {
    // Readers of other processes do not block the broker's writes.
    database.exec('pragma journal_mode = wal')
    // A reported event is on the disk even if the power fails (invariant 2): wal-sync.ts ensures it.
    database.exec('pragma synchronous = normal')
    // A replaced credential, hash or wrapped key does not linger in free pages.
    database.exec('pragma secure_delete = on')
    // SQLite's own 2 MiB cannot hold an index of a large estate. In KiB, allocated on demand.
    database.exec('pragma cache_size = -65536')
    // As a rule a thread of its own writes the log back (checkpoints.ts), without anyone waiting.
    database.exec(`pragma wal_autocheckpoint = ${LONG_LOG_PAGES}`)
    migrate(database, now())
    requireFileInUse(database, path)
  } catch (error) {
    database.close()
    throw isLocked(error)
      ? new StoreError(`${path} is in use by a process that is alone with it, such as sallyport store copy`)
      : error
  }
  const patterns = new Patterns(database)
  const wal = new WalSync(path, new Checkpoints(path))
  const dialect = new NodeSqliteDialect(database, wal, new ReadingThread({ path }), () =>
    patterns.beginStatement(),
  )
  const db: Db = new Kysely<Schema>({ dialect })
  return storeOn({ db, newId }, { claim: async () => async () => undefined, reach: ALWAYS_THERE })
}

function requireFileInUse(database: DatabaseSync, path: string): void {
  const row = database.prepare('select value from settings where name = ?').get(STATE)
  const value = row?.['value']
  try {
    requireInUse(value instanceof Uint8Array ? value : undefined)
  } catch (error) {
    throw new StoreError(`${path}: ${(error as Error).message}`)
  }
}

/** Creates the repositories on a database, or on one transaction of it. */
function storeOn(context: StoreContext, more: Pick<Store, 'claim' | 'reach'>): Store {
  const { db, newId } = context
  return {
    users: userRepository(context),
    userGroups: userGroupRepository(context),
    timeframes: timeframeRepository(context),
    devices: deviceRepository(context),
    services: serviceRepository(context),
    domains: domainRepository(context),
    accounts: accountRepository(context),
    targetGroups: targetGroupRepository(context),
    authorizations: authorizationRepository(context),
    apiKeys: apiKeyRepository(context),
    hostKeys: hostKeyRepository(context),
    profiles: profileRepository(context),
    checkoutPolicies: checkoutPolicyRepository(context),
    connectionPolicies: connectionPolicyRepository(context),
    passwordChangePolicies: passwordChangePolicyRepository(context),
    externalAuths: externalAuthRepository(context),
    notifications: notificationRepository(context),
    offlineProofs: offlineProofRepository(context),
    authDomains: authDomainRepository(context),
    authDomainMappings: authDomainMappingRepository(context),
    persons: personRepository(context),
    scimUsers: scimUserRepository(context),
    scimGroups: scimGroupRepository(context),
    scimTokens: scimTokenRepository(context),
    secretJobs: secretJobRepository(context),
    checkouts: checkoutRepository(context),
    approvals: approvalRepository(context),
    uploads: uploadRepository(context),
    idempotency: idempotencyRepository(context),
    signIns: signInRepository(context),
    providerSessions: providerSessionRepository(context),
    securityKeys: securityKeyRepository(context),
    usedMessages: usedMessageRepository(context),
    userCertificates: userCertificateRepository(context),
    tickets: ticketRepository(context),
    invitations: invitationRepository(context),
    lockouts: lockoutRepository(context),
    secondFactors: secondFactorRepository(context),
    sessions: sessionRepository(context),
    access: accessQueries(context),
    changes: changeRepository(context),
    names: nameQueries(context),
    audit: auditRepository(context),
    auditSearch: auditSearchRepository(context),
    settings: settingRepository(context),
    sealed: sealedRepository(context),
    transaction: (work, isOnce) => alone(db, (tx) => work(storeOn({ db: tx, newId }, more)), isOnce),
    amongRights: (work) => amongRights(db, (tx) => work(storeOn({ db: tx, newId }, more))),
    snapshot: (work) =>
      db
        .transaction()
        .setIsolationLevel('repeatable read')
        .setAccessMode('read only')
        .execute((tx) => work(storeOn({ db: tx, newId }, more))),
    ...more,
    close: () => db.destroy(),
  }
}
