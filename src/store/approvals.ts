/** Requests for approval and their answers. Each change is decided on the row, in the transaction that writes it. */
import { sql } from 'kysely'
import {
  type Answer,
  type Approval,
  type ApprovalKind,
  type ApprovalState,
  answered,
  cancelled,
  expired,
  isUsable,
  type Refusal,
} from '../model/approvals.ts'
import type { Id } from '../model/objects.ts'
import { reaches } from '../model/profiles.ts'
import { inTransaction } from './engine/commits.ts'
import { jsonList, jsonObject } from './engine/json.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { ApprovalAnswerRow, ApprovalRow, Db, StoreContext } from './migrations/schema.ts'
import { profileRepository } from './profiles.ts'
import { listed, type Tx } from './query.ts'
import { column, nullable } from './searchable.ts'
import type { ApprovalFilter, ApprovalRepository } from './store.ts'

export const APPROVAL_FIELDS = {
  kind: column('label', 'approvals.kind'),
  status: column('label', 'approvals.state'),
  user: column('label', 'approvals.user_name'),
  authorization: column('label', 'approvals.authorization_name'),
  target: column('label', 'approvals.target'),
  creation: column('time', 'approvals.created'),
  begin: nullable('time', 'approvals.begin_time'),
  timeout: column('time', 'approvals.answer_by'),
  comment: column('text', 'approvals.comment'),
  ticket: column('text', 'approvals.ticket'),
  quorum: column('integer', 'approvals.quorum'),
  ended_by: column('label', 'approvals.ended_by'),
  api_key: column('label', 'approvals.api_key'),
  id: column('id', 'approvals.id'),
} as const

export function approvalRepository(context: StoreContext): ApprovalRepository {
  const { db, newId } = context
  const ofState = (state: ApprovalState) => wholeRows(db).where('state', '=', state)
  const find = async (from: Db, id: Id): Promise<Approval | undefined> => {
    const [row] = await rowOf(from, id)
    return row && whole(row)
  }
  /** Changes the approval by what `work` makes of it. */
  const change = (
    id: Id,
    work: (found: Approval, tx: Tx) => Promise<Approval | Refusal | 'not_found'> | Approval | Refusal,
  ) =>
    inTransaction(db, async (tx) => {
      const found = await find(tx, id)
      const next = found ? await work(found, tx) : 'not_found'
      if (typeof next === 'string') return next
      await tx.updateTable('approvals').set(changing(next)).where('id', '=', id).execute()
      const added = next.answers.slice(found?.answers.length)
      if (added.length > 0)
        await tx
          .insertInto('approval_answers')
          .values(added.map((one) => answerRow(id, one)))
          .execute()
      return next
    })

  return {
    find: (id) => find(db, id),

    async some(ids) {
      const known: Approval[] = []
      for (let at = 0; at < ids.length; at += TOGETHER) {
        const some = ids.slice(at, at + TOGETHER)
        const rows = await wholeRows(db).where('id', 'in', some).execute()
        known.push(...rows.map(whole))
      }
      return known
    },

    async list(filter, page) {
      return listed(visible(db, filter), (row) => approval(row, []), APPROVAL_FIELDS, ['-creation'], page)
    },

    create: (object, limits) =>
      inTransaction(db, async (tx) => {
        if (await isFull(tx, object.userId, limits)) return undefined
        const made = { ...object, id: object.id ?? newId() }
        await tx.insertInto('approvals').values(rowFor(made)).execute()
        return made
      }),

    answer: (id, given, keyProfile) =>
      change(id, async (found, tx) => {
        if (given.userId === found.userId) return 'own_request'
        const may = await mayAnswer(context, tx, found, given.userId, given.time, keyProfile)
        return may ? answered(found, given) : 'not_found'
      }),

    mayAnswer: (found, userId, now, keyProfile) => mayAnswer(context, db, found, userId, now, keyProfile),

    cancel: (id, by) => change(id, (found) => cancelled(found, by)),

    expire: (id, now) => change(id, (found) => expired(found, now)),

    use: (id, now) =>
      change(id, (found) => (isUsable(found, now) ? { ...found, uses: found.uses + 1 } : 'not_pending')),

    release: async (id) => {
      await change(id, (found) => (found.uses > 0 ? { ...found, uses: found.uses - 1 } : 'not_pending'))
    },

    async ofUser({ userId, kind, serviceId, accountId, login }, state) {
      const rows = await ofState(state)
        .where('user_id', '=', userId)
        .where('kind', '=', kind)
        .where('service_id', '=', serviceId)
        .where('account_id', '=', accountId)
        .where('login', '=', login)
        .orderBy('created', 'desc')
        .limit(MAX_OF_USER)
        .execute()
      return rows.map(whole)
    },

    async overdue(now, limit) {
      const rows = await ofState('pending')
        .where('answer_by', '<=', now)
        .orderBy('answer_by')
        .limit(limit)
        .execute()
      return rows.map(whole)
    },

    async waitingAt(limit, except) {
      const rows = await ofState('pending')
        .where('connection', '<>', '')
        .where('connection', '<>', except)
        .limit(limit)
        .execute()
      return rows.map(whole)
    },

    async detach(process) {
      await db
        .updateTable('approvals')
        .set({ connection: '' })
        .where('state', 'in', ['pending', 'accepted'])
        .where('connection', '=', process)
        .where('session', '=', '')
        .execute()
    },

    isFull: (userId, limits) => isFull(db, userId, limits),

    async removeEnded(before, limit) {
      const old = await db
        .selectFrom('approvals')
        .select('id')
        .where('created', '<', before)
        .where('state', '<>', 'pending')
        .where(sql<number>`coalesce(ended_time, begin_time + duration)`, '<', before)
        .orderBy('created')
        .limit(limit)
        .execute()
      const ids = old.map(({ id }) => id)
      if (ids.length > 0) await db.deleteFrom('approvals').where('id', 'in', ids).execute()
      return ids.length
    },

    async pending() {
      const [row] = await countPending(db)
      return row?.total ?? 0
    },

    async details(ids) {
      const answers = await answersOf(db, ids)
      const details = new Map(
        ids.map((id) => [
          id,
          { answers: answers.get(id) ?? [], sessions: [] as Id[], checkouts: [] as Id[] },
        ]),
      )
      if (ids.length === 0) return details
      for (const table of ['sessions', 'checkouts'] as const) {
        const rows = await db
          .selectFrom(table)
          .select(['id', 'approval'])
          .where('approval', '<>', '')
          .where('approval', 'in', [...ids])
          .orderBy('id')
          .limit(MAX_CAME_OF)
          .execute()
        for (const { id, approval: of } of rows) details.get(of)?.[table].push(id)
      }
      return details
    },

    async approversOf(authorizationId) {
      const rows = await db
        .selectFrom('authorization_approvers as p')
        .innerJoin('user_groups as g', 'g.id', 'p.group_id')
        .select('g.group_name as name')
        .where('p.authorization_id', '=', authorizationId)
        .orderBy('g.name_key')
        .execute()
      return rows.map(({ name }) => name)
    },

    membersOf: (groupIds, now) => membersOf(context, groupIds, now),
  }
}

/** Approvals that one query reads. */
const TOGETHER = 256
const MAX_OF_USER = 100
/** Sessions and checkouts that are named with a page of approvals. */
const MAX_CAME_OF = 10_000

/** Rows with their answers, in one statement: between two, an answer could come that the row does not know yet. */
function wholeRows(db: Db) {
  return db.selectFrom('approvals').selectAll('approvals').select(ANSWERS.as('answers'))
}

const ANSWER = jsonObject(
  ['user_id', sql`a.user_id`],
  ['user_name', sql`a.user_name`],
  ['approved', sql`a.approved`],
  ['comment', sql`a.comment`],
  ['time', sql`a.time`],
  ['api_key', sql`a.api_key`],
)
const ANSWERS = sql<string>`(select ${jsonList(ANSWER, sql`a.time, a.user_id`)} from approval_answers a where a.approval_id = approvals.id)`

function whole(row: ApprovalRow & { answers: string }): Approval {
  return approval(row, (JSON.parse(row.answers) as Omit<ApprovalAnswerRow, 'approval_id'>[]).map(answer))
}

const rowOf = keptQuery((db: Db, id: Id) => wholeRows(db).where('id', '=', id))

const countPending = keptQuery((db: Db) =>
  db.selectFrom('approvals').select(sql<number>`count(*)`.as('total')).where('state', '=', 'pending'),
)

const countPendingOf = keptQuery((db: Db, userId: Id) =>
  db
    .selectFrom('approvals')
    .select(sql<number>`count(*)`.as('total'))
    .where('user_id', '=', userId)
    .where('state', '=', 'pending'),
)

/** Whether as many requests are pending as may be. */
async function isFull(db: Db, userId: Id, limits: { ofUser: number; all: number }): Promise<boolean> {
  const [row] = await countPending(db)
  if ((row?.total ?? 0) >= limits.all) return true
  const [own] = await countPendingOf(db, userId)
  return (own?.total ?? 0) >= limits.ofUser
}

async function answersOf(db: Db, ids: readonly Id[]): Promise<Map<Id, Answer[]>> {
  const answers = new Map<Id, Answer[]>()
  if (ids.length === 0) return answers
  const rows = await db
    .selectFrom('approval_answers')
    .selectAll()
    .where('approval_id', 'in', [...ids])
    .orderBy('time')
    .orderBy('user_id')
    .execute()
  for (const row of rows) answers.set(row.approval_id, [...(answers.get(row.approval_id) ?? []), answer(row)])
  return answers
}

/** The approvals that a user may see: the own, and those of authorizations with the user among the approvers. */
function visible(db: Db, { of, answerableBy, id, status }: ApprovalFilter) {
  return db
    .selectFrom('approvals')
    .selectAll('approvals')
    .$if(id !== undefined, (some) => some.where('approvals.id', '=', id ?? ''))
    .$if(status !== undefined, (some) => some.where('approvals.state', '=', status ?? ''))
    .$if(of !== undefined || answerableBy !== undefined, (some) =>
      some.where((e) =>
        e.or([
          e('approvals.user_id', '=', of ?? ''),
          e(
            'approvals.authorization_id',
            'in',
            e
              .selectFrom('authorization_approvers as p')
              .innerJoin('user_group_members as m', 'm.group_id', 'p.group_id')
              .select('p.authorization_id')
              .where('m.user_id', '=', answerableBy ?? ''),
          ),
        ]),
      ),
    )
}

/** Whether the user may answer now: an approver of the authorization, active, with the right to answer. */
async function mayAnswer(
  context: StoreContext,
  db: Db,
  { authorizationId, userId: requester, kind }: Pick<Approval, 'authorizationId' | 'userId' | 'kind'>,
  userId: Id,
  now: number,
  keyProfile: string | undefined,
): Promise<boolean> {
  if (userId === requester) return false
  const row = await db
    .selectFrom('authorization_approvers as p')
    .innerJoin('user_group_members as m', 'm.group_id', 'p.group_id')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .select(['u.profile', 'u.is_disabled', 'u.is_locked', 'u.expiration_date'])
    .where('p.authorization_id', '=', authorizationId)
    .where('m.user_id', '=', userId)
    .limit(1)
    .executeTakeFirst()
  // A command of an authorization without approvers is answered by users that may end the session.
  const isStandIn = !row && kind === 'command' && !(await hasApprovers(db, authorizationId))
  const person = row ?? (isStandIn ? await personOf(db, userId) : undefined)
  if (person?.is_disabled !== 0 || person.is_locked !== 0) return false
  if (person.expiration_date !== null && person.expiration_date <= now) return false
  const profiles = profileRepository({ ...context, db })
  for (const profile of new Set([person.profile, ...(keyProfile === undefined ? [] : [keyProfile])])) {
    const own = await profiles.rightsOf(profile)
    if (!own || !reaches(own.approvals, 'execute')) return false
    if (isStandIn && !reaches(own.sessions, 'execute')) return false
  }
  return true
}

/** Counts the users in the groups, each once, and those among them that can answer. */
async function membersOf(
  context: StoreContext,
  groupIds: readonly Id[],
  now: number,
): Promise<{ all: number; able: number }> {
  const counts = { all: 0, able: 0 }
  if (groupIds.length === 0) return counts
  const { db } = context
  const isActive = sql<number>`u.is_disabled = 0 and u.is_locked = 0 and coalesce(u.expiration_date, ${now + 1}) > ${now}`
  const rows = await db
    .selectFrom('users as u')
    .select(['u.profile', sql<number>`count(*)`.as('total')])
    .select(sql<number>`sum(case when ${isActive} then 1 else 0 end)`.as('active'))
    .where('u.id', 'in', (e) =>
      e
        .selectFrom('user_group_members as m')
        .select('m.user_id')
        .where('m.group_id', 'in', [...groupIds]),
    )
    .groupBy('u.profile')
    .execute()
  const profiles = profileRepository(context)
  for (const { profile, total, active } of rows) {
    counts.all += total
    const own = active > 0 ? await profiles.rightsOf(profile) : undefined
    if (own && reaches(own.approvals, 'execute')) counts.able += active
  }
  return counts
}

async function hasApprovers(db: Db, authorizationId: Id): Promise<boolean> {
  const row = await db
    .selectFrom('authorization_approvers')
    .select('group_id')
    .where('authorization_id', '=', authorizationId)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

function personOf(db: Db, userId: Id) {
  return db
    .selectFrom('users')
    .select(['profile', 'is_disabled', 'is_locked', 'expiration_date'])
    .where('id', '=', userId)
    .executeTakeFirst()
}

const changing = (one: Approval) => ({
  state: one.state,
  screen: one.state === 'pending' ? (one.screen ?? null) : null,
  begin_time: one.begin ?? null,
  duration: one.duration,
  uses: one.uses,
  ended_time: one.ended?.time ?? null,
  ended_by: one.ended?.by ?? '',
  ended_comment: one.ended?.comment ?? '',
})

function rowFor(one: Approval): ApprovalRow {
  return {
    ...changing(one),
    id: one.id,
    kind: one.kind,
    user_id: one.userId,
    user_name: one.userName,
    authorization_id: one.authorizationId,
    authorization_name: one.authorizationName,
    target: one.target,
    service_id: one.serviceId,
    account_id: one.accountId,
    login: one.login,
    session: one.session,
    detail: one.detail,
    created: one.created,
    answer_by: one.answerBy,
    comment: one.comment,
    ticket: one.ticket,
    quorum: one.quorum,
    is_single: Number(one.isSingle),
    connection: one.connection,
    api_key: one.apiKey,
  }
}

const answerRow = (id: Id, one: Answer): ApprovalAnswerRow => ({
  approval_id: id,
  user_id: one.userId,
  user_name: one.userName,
  approved: Number(one.approved),
  comment: one.comment,
  time: one.time,
  api_key: one.apiKey,
})

const answer = (row: Omit<ApprovalAnswerRow, 'approval_id'>): Answer => ({
  userId: row.user_id,
  userName: row.user_name,
  approved: row.approved !== 0,
  comment: row.comment,
  time: row.time,
  apiKey: row.api_key,
})

function approval(row: ApprovalRow, answers: Answer[]): Approval {
  return {
    id: row.id,
    kind: row.kind as ApprovalKind,
    state: row.state as ApprovalState,
    userId: row.user_id,
    userName: row.user_name,
    authorizationId: row.authorization_id,
    authorizationName: row.authorization_name,
    target: row.target,
    serviceId: row.service_id,
    accountId: row.account_id,
    login: row.login,
    session: row.session,
    detail: row.detail,
    ...(row.screen && { screen: row.screen }),
    created: row.created,
    ...(row.begin_time !== null && { begin: row.begin_time }),
    duration: row.duration,
    answerBy: row.answer_by,
    comment: row.comment,
    ticket: row.ticket,
    quorum: row.quorum,
    isSingle: row.is_single !== 0,
    uses: row.uses,
    connection: row.connection,
    apiKey: row.api_key,
    answers,
    ...(row.ended_time !== null && {
      ended: { time: row.ended_time, by: row.ended_by, comment: row.ended_comment },
    }),
  }
}
