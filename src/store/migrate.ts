/**
 * Brings a database to this program's schema, each step in a transaction of its own: a crash leaves a
 * database at one version or the next, never between.
 */
import type { DatabaseSync } from 'node:sqlite'
import { type Migration, requireKnown } from './engine/versions.ts'
import * as objects from './migrations/0001-objects.ts'
import * as search from './migrations/0002-search.ts'
import * as policies from './migrations/0003-policies.ts'
import * as options from './migrations/0004-options.ts'
import * as authorities from './migrations/0005-authorities.ts'
import * as logins from './migrations/0006-logins.ts'
import * as retention from './migrations/0007-retention.ts'
import * as uploads from './migrations/0008-uploads.ts'
import * as recordingMode from './migrations/0009-recording-mode.ts'
import * as terminals from './migrations/0010-terminals.ts'
import * as vnc from './migrations/0011-vnc.ts'
import * as rdp from './migrations/0012-rdp.ts'
import * as progress from './migrations/0013-progress.ts'
import * as handovers from './migrations/0014-handovers.ts'
import * as sealedPasswords from './migrations/0016-sealed-passwords.ts'
import * as apiKeys from './migrations/0018-api-keys.ts'
import * as size from './migrations/0019-size.ts'
import * as recordings from './migrations/0020-recordings.ts'
import * as changes from './migrations/0021-changes.ts'
import * as sharedState from './migrations/0022-shared-state.ts'
import * as idempotencyClaims from './migrations/0023-idempotency-claims.ts'
import * as invitations from './migrations/0024-invitations.ts'
import * as checkouts from './migrations/0025-checkouts.ts'
import * as timeframes from './migrations/0026-timeframes.ts'
import * as approvals from './migrations/0027-approvals.ts'
import * as rotation from './migrations/0028-rotation.ts'
import * as fourEyes from './migrations/0029-four-eyes.ts'
import * as schedules from './migrations/0030-schedules.ts'
import * as checkoutGrounds from './migrations/0031-checkout-grounds.ts'
import * as approvalScreens from './migrations/0032-approval-screens.ts'
import * as externalAuths from './migrations/0033-external-auths.ts'
import * as secondFactors from './migrations/0034-second-factors.ts'
import * as factorPolicies from './migrations/0035-factor-policies.ts'
import * as rememberedFactors from './migrations/0036-remembered-factors.ts'
import * as keysAsFactors from './migrations/0037-keys-as-factors.ts'
import * as onePerson from './migrations/0038-one-person.ts'
import * as kerberosTargets from './migrations/0039-kerberos-targets.ts'
import * as authorizationFactors from './migrations/0041-authorization-factors.ts'
import * as offlineProofs from './migrations/0042-offline-proofs.ts'
import * as serversOfSignIns from './migrations/0043-servers-of-sign-ins.ts'
import * as browsers from './migrations/0044-browsers.ts'
import * as providerSessions from './migrations/0045-provider-sessions.ts'
import * as usedMessages from './migrations/0046-used-messages.ts'
import * as scim from './migrations/0047-scim.ts'
import * as userCertificates from './migrations/0048-user-certificates.ts'
import * as notifications from './migrations/0051-notifications.ts'
import * as eventSearch from './migrations/0053-event-search.ts'

/** In order; a released migration is never changed, only followed. */
export const MIGRATIONS: readonly Migration[] = [
  objects,
  search,
  policies,
  options,
  authorities,
  logins,
  retention,
  uploads,
  recordingMode,
  terminals,
  vnc,
  rdp,
  progress,
  handovers,
  sealedPasswords,
  apiKeys,
  size,
  recordings,
  changes,
  sharedState,
  idempotencyClaims,
  invitations,
  checkouts,
  timeframes,
  approvals,
  rotation,
  fourEyes,
  schedules,
  checkoutGrounds,
  approvalScreens,
  externalAuths,
  secondFactors,
  factorPolicies,
  rememberedFactors,
  keysAsFactors,
  onePerson,
  kerberosTargets,
  authorizationFactors,
  offlineProofs,
  serversOfSignIns,
  browsers,
  providerSessions,
  usedMessages,
  scim,
  userCertificates,
  notifications,
  eventSearch,
]

/** Schema version of a database that this program has opened. */
export const SCHEMA_VERSION = MIGRATIONS.at(-1)?.version ?? 0

/**
 * Applies the missing migrations. `now` in milliseconds is stored with each version.
 * @throws SchemaError if the database is newer than this program
 */
export function migrate(
  database: DatabaseSync,
  now: number,
  migrations: readonly Migration[] = MIGRATIONS,
): void {
  database.exec(
    'create table if not exists schema_migrations (version integer primary key, applied integer not null) strict',
  )
  const before = recordedVersion(database)
  requireKnown(before, migrations)
  for (const migration of migrations.filter(({ version }) => version > before)) {
    database.exec('begin immediate')
    try {
      // Read the version again under the write lock: another process may have started at the same moment.
      if (recordedVersion(database) < migration.version) {
        database.exec(migration.sql)
        database
          .prepare('insert into schema_migrations (version, applied) values (?, ?)')
          .run(migration.version, now)
      }
      database.exec('commit')
    } catch (error) {
      if (database.isTransaction) database.exec('rollback')
      throw error
    }
  }
}

function recordedVersion(database: DatabaseSync): number {
  const row = database.prepare('select max(version) as version from schema_migrations').get()
  return typeof row?.['version'] === 'number' ? row['version'] : 0
}
