import { NO_CONDITIONS } from '../model/conditions.ts'
import type { Authorization, RecordingMode } from '../model/objects.ts'
import type { Right } from '../model/rights.ts'
import {
  approverGroups,
  CONDITION_FIELDS,
  conditionColumns,
  conditionsOf,
  setApprovers,
} from './conditions.ts'
import type { AuthorizationRow, Db, StoreContext } from './migrations/schema.ts'
import { flag, json, list, listed, requireIds, setColumns, type Tx, unchanged, write } from './query.ts'
import { column, listColumn } from './searchable.ts'
import type { AuthorizationRepository } from './store.ts'

const TYPE = 'authorization'
export const AUTHORIZATION_FIELDS = {
  user_group: column('name', 'u.name_key'),
  target_group: column('name', 't.name_key'),
  description: column('text', 'a.description'),
  authorize_sessions: column('flag', 'a.authorize_sessions'),
  authorize_password_retrieval: column('flag', 'a.authorize_password_retrieval'),
  subprotocols: listColumn('label', 'a.subprotocols'),
  is_recorded: column('flag', 'a.is_recorded'),
  recording_mode: column('label', 'a.recording_mode'),
  ...CONDITION_FIELDS,
  id: column('id', 'a.id'),
}

export function authorizationRepository({ db, newId }: StoreContext): AuthorizationRepository {
  const find = async (from: Db, id: string): Promise<Authorization | undefined> => {
    const row = await select(from).where('id', '=', id).executeTakeFirst()
    return row && authorization(row)
  }
  const pair = async (userGroupId: string, targetGroupId: string): Promise<string> => {
    const user = await db
      .selectFrom('user_groups')
      .select('group_name')
      .where('id', '=', userGroupId)
      .executeTakeFirst()
    const target = await db
      .selectFrom('target_groups')
      .select('group_name')
      .where('id', '=', targetGroupId)
      .executeTakeFirst()
    return `${user?.group_name ?? userGroupId}:${target?.group_name ?? targetGroupId}`
  }
  return {
    async list(page) {
      const joined = db
        .selectFrom('authorizations as a')
        .innerJoin('user_groups as u', 'u.id', 'a.user_group_id')
        .innerJoin('target_groups as t', 't.id', 'a.target_group_id')
        .selectAll('a')
        .select(approverGroups('a').as('approvers'))
      return listed(joined, authorization, AUTHORIZATION_FIELDS, ['user_group', 'target_group'], page)
    },

    find: (id) => find(db, id),

    async ofUserGroups(userGroupIds) {
      if (userGroupIds.length === 0) return []
      const rows = await select(db).where('user_group_id', 'in', userGroupIds).orderBy('id').execute()
      return rows.map(authorization)
    },

    async create(object) {
      const name = await pair(object.userGroupId, object.targetGroupId)
      return write(db, { type: TYPE, name }, async (tx) => {
        await requireGroups(tx, object)
        const id = newId()
        const conditions = object.conditions ?? NO_CONDITIONS
        await tx
          .insertInto('authorizations')
          .values({
            id,
            user_group_id: object.userGroupId,
            target_group_id: object.targetGroupId,
            description: object.description,
            authorize_sessions: Number(object.authorizeSessions),
            authorize_password_retrieval: Number(object.authorizePasswordRetrieval),
            subprotocols: JSON.stringify(object.subprotocols),
            is_recorded: Number(object.isRecorded),
            recording_mode: object.recordingMode,
            ...conditionColumns(conditions),
          })
          .execute()
        await setApprovers(tx, id, conditions.approverGroupIds)
        return (await find(tx, id))!
      })
    },

    async update(id, change, expected) {
      const old = await find(db, id)
      const name = await pair(
        change.userGroupId ?? old?.userGroupId ?? id,
        change.targetGroupId ?? old?.targetGroupId ?? id,
      )
      return write(db, { type: TYPE, name }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        await requireGroups(tx, change)
        const conditions = 'conditions' in change ? (change.conditions ?? NO_CONDITIONS) : undefined
        await setColumns(tx, 'authorizations', id, {
          user_group_id: change.userGroupId,
          target_group_id: change.targetGroupId,
          description: change.description,
          authorize_sessions: flag(change.authorizeSessions),
          authorize_password_retrieval: flag(change.authorizePasswordRetrieval),
          subprotocols: json(change.subprotocols),
          is_recorded: flag(change.isRecorded),
          recording_mode: change.recordingMode,
          ...(conditions && conditionColumns(conditions)),
        })
        if (conditions) await setApprovers(tx, id, conditions.approverGroupIds)
        return (await find(tx, id))!
      })
    },

    remove: (id, expected) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        await tx.deleteFrom('authorizations').where('id', '=', id).execute()
      }),
  }
}

async function requireGroups(tx: Tx, object: Partial<Authorization>): Promise<void> {
  if (object.userGroupId !== undefined)
    await requireIds(tx, 'user_groups', [object.userGroupId], TYPE, 'user_group')
  if (object.targetGroupId !== undefined)
    await requireIds(tx, 'target_groups', [object.targetGroupId], TYPE, 'target_group')
}

function select(db: Db) {
  return db
    .selectFrom('authorizations')
    .selectAll('authorizations')
    .select(approverGroups('authorizations').as('approvers'))
}

function authorization(row: AuthorizationRow & { approvers: string }): Authorization {
  const conditions = conditionsOf(row)
  return {
    id: row.id,
    userGroupId: row.user_group_id,
    targetGroupId: row.target_group_id,
    description: row.description,
    authorizeSessions: row.authorize_sessions !== 0,
    authorizePasswordRetrieval: row.authorize_password_retrieval !== 0,
    subprotocols: list<Right>(row.subprotocols),
    isRecorded: row.is_recorded !== 0,
    recordingMode: row.recording_mode as RecordingMode,
    ...(conditions && { conditions }),
  }
}
