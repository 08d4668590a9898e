import { sql } from 'kysely'
import type { CredentialType, Id } from '../model/objects.ts'
import type { ChangeCause, ChangeOutcome, SecretJob } from '../model/password-change.ts'
import { inTransaction, type Tx } from './engine/commits.ts'
import { ChangedError, DuplicateError } from './engine/errors.ts'
import type { Db, SecretJobRow, StoreContext } from './migrations/schema.ts'
import { listed, requireIds, write } from './query.ts'
import { column, nullable } from './searchable.ts'
import { putSchedules, scheduleQueries } from './secret-schedules.ts'
import type { AskedJob, Leaving, PendingRole, SecretJobRepository } from './store.ts'

const TYPE = 'change of a secret'
/** Jobs of an account that are kept; the oldest go. */
const KEPT = 500

export const SECRET_JOB_FIELDS = {
  created: column('time', 'created'),
  end: nullable('time', 'ended'),
  type: column('label', 'type'),
  kind: column('label', 'kind'),
  cause: column('label', 'cause'),
  user: column('label', 'user_name'),
  outcome: column('label', 'outcome'),
  id: column('id', 'id'),
} as const

const OF_JOB = sql`from accounts as a where a.id = secret_jobs.account_id`
export const DOMAIN_JOB_FIELDS = {
  ...SECRET_JOB_FIELDS,
  account: { kind: 'name' as const, value: sql<string>`(select a.name_key ${OF_JOB})` },
}

export function secretJobRepository({ db, newId }: StoreContext): SecretJobRepository {
  const open = (from: Db) =>
    from.selectFrom('secret_jobs').selectAll('secret_jobs').where('ended', 'is', null)
  /** @throws ChangedError if the job has ended, or another runner has it */
  const held = async (tx: Tx, id: Id, lease: number): Promise<SecretJobRow> => {
    const row = await open(tx).where('id', '=', id).where('lease', '=', lease).executeTakeFirst()
    if (!row) throw new ChangedError(TYPE)
    return row
  }
  const setState = (tx: Tx, accountId: Id, columns: StateColumns) =>
    tx.updateTable('accounts').set(columns).where('id', '=', accountId).execute()
  const end = async (tx: Tx, { id, account_id }: SecretJobRow, time: number, told: EndColumns) => {
    await tx
      .updateTable('secret_jobs')
      .set({ ended: time, lease: 0, ...told })
      .where('id', '=', id)
      .execute()
    const old = tx
      .selectFrom('secret_jobs')
      .select('id')
      .where('account_id', '=', account_id)
      .where('ended', 'is not', null)
      .orderBy('created', 'desc')
      .orderBy('id')
      .limit(KEPT)
      .offset(KEPT)
    await tx.deleteFrom('secret_jobs').where('id', 'in', old).execute()
  }
  const dropPending = (tx: Tx, accountId: Id, type: string, ...roles: PendingRole[]) =>
    tx
      .deleteFrom('pending_secrets')
      .where('account_id', '=', accountId)
      .where('type', '=', type)
      .where('role', 'in', roles)
      .execute()
  const putPending = (tx: Tx, accountId: Id, type: string, role: PendingRole, sealed: Uint8Array) =>
    tx
      .insertInto('pending_secrets')
      .values({ account_id: accountId, type, role, sealed })
      .onConflict((one) => one.columns(['account_id', 'type', 'role']).doUpdateSet({ sealed }))
      .execute()
  /** Makes an open job do what another one would; one that is demanded is its user's from there on. */
  const merge = async (tx: Tx, before: SecretJobRow, asked: Omit<AskedJob, 'accountId' | 'type'>) => {
    const merged = {
      due: Math.min(before.due, asked.due),
      is_forced: before.is_forced | Number(asked.isForced),
      ...(asked.cause === 'demand' && { cause: asked.cause, user_name: asked.user }),
    }
    await tx.updateTable('secret_jobs').set(merged).where('id', '=', before.id).execute()
    return { ...before, ...merged }
  }
  const leave = async (tx: Tx, { account_id, type }: SecretJobRow, left: Leaving) => {
    await dropPending(tx, account_id, type, 'next')
    if (left !== 'removed') await putPending(tx, account_id, type, 'doubtful', left)
  }

  return {
    add: (asked, wanted) =>
      write(db, { type: TYPE, name: asked.accountId }, async (tx) => {
        await requireIds(tx, 'accounts', [asked.accountId], TYPE, 'account')
        const before = await open(tx)
          .where('account_id', '=', asked.accountId)
          .where('type', '=', asked.type)
          .where('kind', '=', asked.kind)
          .executeTakeFirst()
        if (before) {
          if (wanted) throw new DuplicateError(TYPE, asked.accountId)
          return job(await merge(tx, before, asked))
        }
        if (wanted) {
          // The target may have what an earlier change has left: that comes first.
          const left = await tx
            .selectFrom('pending_secrets')
            .select('role')
            .where('account_id', '=', asked.accountId)
            .where('type', '=', asked.type)
            .where('role', '=', 'next')
            .executeTakeFirst()
          if (left) throw new DuplicateError(TYPE, asked.accountId)
        }
        const row = rowOf(newId(), asked)
        await tx.insertInto('secret_jobs').values(row).execute()
        if (wanted) await putPending(tx, asked.accountId, asked.type, 'wanted', wanted)
        return job(row)
      }),

    addForDomain: (domainId, schedule, types, asked) =>
      inTransaction(db, async (tx) => {
        const accounts = await tx
          .selectFrom('accounts as a')
          .innerJoin('account_credentials as c', 'c.account_id', 'a.id')
          .select(['a.id', 'c.type'])
          .where('a.domain_id', '=', domainId)
          .where('c.type', 'in', [...types])
          .$if(asked.kind === 'change' && asked.cause === 'schedule', (some) =>
            some.where('a.auto_change', '=', 1),
          )
          .execute()
        const before = await open(tx)
          .innerJoin('accounts as a', 'a.id', 'secret_jobs.account_id')
          .where('a.domain_id', '=', domainId)
          .where('kind', '=', asked.kind)
          .execute()
        const opened = new Map(before.map((row) => [`${row.account_id} ${row.type}`, row]))
        const jobs: SecretJob[] = []
        for (const { id, type } of accounts) {
          const one = opened.get(`${id} ${type}`)
          if (one) {
            if (asked.cause === 'demand') jobs.push(job(await merge(tx, one, asked)))
            continue
          }
          const row = rowOf(newId(), { ...asked, accountId: id, type: type as CredentialType })
          const { numInsertedOrUpdatedRows } = await tx
            .insertInto('secret_jobs')
            .values(row)
            .onConflict((one) => one.doNothing())
            .executeTakeFirst()
          if ((numInsertedOrUpdatedRows ?? 0n) > 0n) jobs.push(job(row))
        }
        if (schedule) await putSchedules(tx, [schedule])
        return jobs
      }),

    async due(now, limit, withoutDomains) {
      const rows = await open(db)
        .innerJoin('accounts as a', 'a.id', 'secret_jobs.account_id')
        .select('a.domain_id')
        .where('due', '<=', now)
        .where('lease', '<=', now)
        .$if(withoutDomains.length > 0, (some) => some.where('a.domain_id', 'not in', [...withoutDomains]))
        .orderBy('due')
        .limit(limit)
        .execute()
      return rows.map((row) => ({ ...job(row), domainId: row.domain_id }))
    },

    claim: (id, now, lease) =>
      inTransaction(db, async (tx) => {
        const row = await open(tx).where('id', '=', id).where('lease', '<=', now).executeTakeFirst()
        if (!row) return undefined
        const others = await open(tx)
          .where('account_id', '=', row.account_id)
          .where('lease', '>', now)
          .executeTakeFirst()
        if (others) return undefined
        await tx.updateTable('secret_jobs').set({ lease }).where('id', '=', id).execute()
        return job({ ...row, lease })
      }),

    renew: (id, before, lease) =>
      inTransaction(db, async (tx) => {
        await held(tx, id, before)
        await tx.updateTable('secret_jobs').set({ lease }).where('id', '=', id).execute()
      }),

    begin: (id, lease, now, next) =>
      inTransaction(db, async (tx) => {
        const row = await held(tx, id, lease)
        if (row.is_forced === 0) {
          const { until } = await tx
            .selectFrom('checkouts')
            .select((select) => select.fn.max('expires').as('until'))
            .where('account_id', '=', row.account_id)
            .where('end_time', 'is', null)
            .where('expires', '>', now)
            .executeTakeFirstOrThrow()
          if (until !== null) {
            // In the transaction that has seen the checkout: its end comes after this, and wakes the job.
            const later = { due: until, lease: 0, code: 'checked_out', message: 'the secret is checked out' }
            await tx.updateTable('secret_jobs').set(later).where('id', '=', id).execute()
            return { isBegun: false }
          }
        }
        await dropPending(tx, row.account_id, row.type, 'wanted')
        await putPending(tx, row.account_id, row.type, 'next', next)
        await tx.updateTable('secret_jobs').set({ step: 'begun' }).where('id', '=', id).execute()
        await setState(tx, row.account_id, { secret_state: 'pending' })
        return { isBegun: true }
      }),

    async pending(accountId, type) {
      const rows = await db
        .selectFrom('pending_secrets')
        .select(['role', 'sealed'])
        .where('account_id', '=', accountId)
        .where('type', '=', type)
        .execute()
      return Object.fromEntries(rows.map(({ role, sealed }) => [role, sealed]))
    },

    promote: (id, lease, { now, sealed, previous, revision, code, message }) =>
      inTransaction(db, async (tx) => {
        const row = await held(tx, id, lease)
        const { account_id, type } = row
        const account = await tx
          .selectFrom('accounts')
          .select('secret_revision')
          .where('id', '=', account_id)
          .executeTakeFirst()
        // An administrator has set another secret meanwhile.
        if (account?.secret_revision !== revision) throw new ChangedError(TYPE)
        await tx
          .updateTable('account_credentials')
          .set({ sealed })
          .where('account_id', '=', account_id)
          .where('type', '=', type)
          .execute()
        await setState(tx, account_id, {
          secret_revision: revision + 1,
          secret_state: 'ok',
          secret_changed: now,
          secret_checked: now,
          ...(row.cause === 'demand' && { severed_revision: revision + 1 }),
        })
        await dropPending(tx, account_id, type, 'next')
        // One that this job has doubted may still be set at the target.
        if (row.attempts === 0) await dropPending(tx, account_id, type, 'doubtful')
        await putPending(tx, account_id, type, 'previous', previous)
        await end(tx, row, now, { outcome: 'changed', code, message })
        const begun = await open(tx)
          .where('account_id', '=', account_id)
          .where('type', '=', type)
          .where('step', '=', 'begun')
          .execute()
        for (const other of begun) await end(tx, other, now, { outcome: 'changed', code, message })
      }),

    giveUp: (id, lease, { now, outcome, state, isOldProved, left, code, message }) =>
      inTransaction(db, async (tx) => {
        const row = await held(tx, id, lease)
        await dropPending(tx, row.account_id, row.type, 'wanted')
        if (left) await leave(tx, row, left)
        if (state !== undefined || isOldProved)
          await setState(tx, row.account_id, {
            ...(state !== undefined && { secret_state: state }),
            ...(isOldProved && { secret_checked: now }),
          })
        await end(tx, row, now, { outcome, code, message })
      }),

    retry: (id, lease, { due, attempts, left, code, message }) =>
      inTransaction(db, async (tx) => {
        const row = await held(tx, id, lease)
        if (left) {
          await leave(tx, row, left)
          await setState(tx, row.account_id, { secret_state: 'ok' })
        }
        await tx
          .updateTable('secret_jobs')
          .set({ due, attempts, lease: 0, code, message, ...(left && { step: 'waiting' }) })
          .where('id', '=', id)
          .execute()
      }),

    release: () =>
      inTransaction(db, async (tx) => {
        await tx.updateTable('secret_jobs').set({ lease: 0 }).where('ended', 'is', null).execute()
      }),

    wake: (accountId, due) =>
      inTransaction(db, async (tx) => {
        await tx
          .updateTable('secret_jobs')
          .set({ due })
          .where('account_id', '=', accountId)
          .where('ended', 'is', null)
          .where('step', '=', 'waiting')
          .where('due', '>', due)
          .execute()
      }),

    async find(id) {
      const row = await db.selectFrom('secret_jobs').selectAll().where('id', '=', id).executeTakeFirst()
      return row && job(row)
    },

    list: (accountId, page) =>
      listed(
        db.selectFrom('secret_jobs').selectAll().where('account_id', '=', accountId),
        job,
        SECRET_JOB_FIELDS,
        ['-created'],
        page,
      ),

    listOfDomain: (domainId, page) =>
      listed(
        db
          .selectFrom('secret_jobs')
          .selectAll('secret_jobs')
          .select(sql<string>`(select a.account_name ${OF_JOB})`.as('account_name'))
          .where('account_id', 'in', (from) =>
            from.selectFrom('accounts').select('accounts.id').where('accounts.domain_id', '=', domainId),
          ),
        ({ account_name, ...row }) => ({ ...job(row), accountName: account_name }),
        DOMAIN_JOB_FIELDS,
        ['-created'],
        page,
      ),

    ...scheduleQueries(db),
  }
}

type StateColumns = Partial<
  Record<'secret_revision' | 'secret_changed' | 'secret_checked' | 'severed_revision', number>
> & { secret_state?: string }
type EndColumns = Pick<SecretJobRow, 'outcome' | 'code' | 'message'>

function rowOf(
  id: Id,
  asked: Pick<SecretJob, 'accountId' | 'type' | 'kind' | 'cause' | 'user' | 'isForced' | 'due' | 'created'>,
): SecretJobRow {
  return {
    id,
    account_id: asked.accountId,
    type: asked.type,
    kind: asked.kind,
    cause: asked.cause,
    user_name: asked.user,
    is_forced: Number(asked.isForced),
    step: 'waiting',
    due: asked.due,
    attempts: 0,
    lease: 0,
    created: asked.created,
    ended: null,
    outcome: '',
    code: '',
    message: '',
  }
}

function job(row: SecretJobRow): SecretJob {
  return {
    id: row.id,
    accountId: row.account_id,
    type: row.type as CredentialType,
    kind: row.kind as SecretJob['kind'],
    cause: row.cause as ChangeCause,
    user: row.user_name,
    isForced: row.is_forced !== 0,
    step: row.step as SecretJob['step'],
    due: row.due,
    attempts: row.attempts,
    lease: row.lease,
    created: row.created,
    ...(row.ended !== null && { ended: row.ended }),
    ...(row.outcome !== '' && { outcome: row.outcome as ChangeOutcome }),
    ...(row.code !== '' && { code: row.code }),
    ...(row.message !== '' && { message: row.message }),
  }
}
