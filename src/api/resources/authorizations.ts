import { type Static, type TProperties, Type } from 'typebox'
import { looksLikeId } from '../../model/names.ts'
import { type Authorization, type Id, RECORDING_MODES } from '../../model/objects.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { referred, referredIds } from '../collection/references.ts'
import { resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { changedConditions, checkConditions, conditionFields, shownConditions } from '../schema/conditions.ts'
import { check, exact, name, oneOf, partial, shown, text } from '../schema/fields.ts'
import { rightsIn, rightsOf } from '../schema/rights.ts'

const userGroup = name('name of a user group', 'linux-admins')
const targetGroup = name('name of a target group', 'linux-servers')
const subprotocols = rightsIn('what a session may do; empty: the plain session of each protocol and no more')
const recordingMode = oneOf(
  RECORDING_MODES,
  'default `standard`. `strict`: what the target sends is shown to the user only when its recording is on the disk and signed; one authorization that says so is enough',
)
const optional = <P extends TProperties>(fields: P) => Type.Partial(Type.Object(fields)).properties
const options = {
  description: Type.Optional(text('why it was given')),
  authorize_sessions: Type.Optional(Type.Boolean({ description: 'default false' })),
  authorize_password_retrieval: Type.Optional(Type.Boolean({ description: 'default false' })),
  subprotocols: Type.Optional(subprotocols),
  is_recorded: Type.Optional(Type.Boolean({ description: 'default true' })),
  recording_mode: Type.Optional(recordingMode),
  ...optional(conditionFields),
}
const Create = exact({ user_group: userGroup, target_group: targetGroup, ...options })
const Update = partial(Create)
const View = exact({
  ...shown,
  user_group: userGroup,
  target_group: targetGroup,
  description: Type.String(),
  authorize_sessions: Type.Boolean(),
  authorize_password_retrieval: Type.Boolean(),
  subprotocols,
  is_recorded: Type.Boolean(),
  recording_mode: recordingMode,
  ...conditionFields,
})

/** @throws ApiError `invalid_field` for strict recording or four eyes if nothing is recorded */
function checkMode({ isRecorded = true, recordingMode, conditions }: Partial<Authorization>): void {
  const isMeaningless = !isRecorded && recordingMode === 'strict'
  check('recording_mode', isMeaningless ? 'strict needs is_recorded' : undefined)
  const isBlind = !isRecorded && conditions?.fourEyes === true
  check('four_eyes', isBlind ? 'only a recorded session can be watched: it needs is_recorded' : undefined)
}

export function authorizationResource(context: ResourceContext) {
  const { store, clock } = context.deps

  const ofPair = async (userGroupId: Id, targetGroupId: Id): Promise<Authorization | undefined> =>
    (await store.authorizations.ofUserGroups([userGroupId])).find(
      (one) => one.targetGroupId === targetGroupId,
    )

  const refuseSecond = async (userGroupId: Id, targetGroupId: Id, own?: Authorization): Promise<void> => {
    const other = await ofPair(userGroupId, targetGroupId)
    if (other && other.id !== own?.id) {
      throw new ApiError('duplicate', [{ message: `this pair has the authorization ${other.id}` }])
    }
  }
  const conditionsOf = async (body: Static<typeof Update>, old?: Authorization) => {
    const approvers = body.approvers && (await referredIds(store.userGroups, 'approvers', body.approvers))
    const conditions = changedConditions(body, approvers, old?.conditions)
    await checkConditions(conditions, (groups) => store.approvals.membersOf(groups, clock()))
    return conditions
  }
  const changeOf = async (
    body: Static<typeof Update>,
    conditions: Authorization['conditions'],
  ): Promise<Partial<Omit<Authorization, 'id'>>> => ({
    ...(body.user_group !== undefined && {
      userGroupId: (await referred(store.userGroups, 'user_group', body.user_group)).id,
    }),
    ...(body.target_group !== undefined && {
      targetGroupId: (await referred(store.targetGroups, 'target_group', body.target_group)).id,
    }),
    ...(body.description !== undefined && { description: body.description }),
    ...(body.authorize_sessions !== undefined && { authorizeSessions: body.authorize_sessions }),
    ...(body.authorize_password_retrieval !== undefined && {
      authorizePasswordRetrieval: body.authorize_password_retrieval,
    }),
    ...(body.subprotocols !== undefined && { subprotocols: rightsOf(body.subprotocols) }),
    ...(body.is_recorded !== undefined && { isRecorded: body.is_recorded }),
    ...(body.recording_mode !== undefined && { recordingMode: body.recording_mode }),
    ...(conditions && { conditions }),
  })

  return resource({
    path: '/authorizations',
    type: 'authorization',
    title: 'Authorizations',
    description:
      'One links exactly one user group to exactly one target group; a pair has at most one (409). In a path it is called by its id, or `USERGROUP:TARGETGROUP`.',
    create: {
      schema: Create,
      async plan(body) {
        const userGroupId = (await referred(store.userGroups, 'user_group', body.user_group)).id
        const targetGroupId = (await referred(store.targetGroups, 'target_group', body.target_group)).id
        await refuseSecond(userGroupId, targetGroupId)
        const change = await changeOf(body, await conditionsOf(body))
        checkMode(change)
        return () =>
          store.authorizations.create({
            description: '',
            authorizeSessions: false,
            authorizePasswordRetrieval: false,
            subprotocols: [],
            isRecorded: true,
            recordingMode: 'standard',
            ...change,
            userGroupId,
            targetGroupId,
          })
      },
    },
    update: {
      schema: Update,
      async plan(old, body) {
        const change = await changeOf(body, await conditionsOf(body, old))
        await refuseSecond(
          change.userGroupId ?? old.userGroupId,
          change.targetGroupId ?? old.targetGroupId,
          old,
        )
        checkMode({ ...old, ...change })
        return () => store.authorizations.update(old.id, change, old)
      },
    },
    removeFrom: (old) => store.authorizations.remove(old.id, old),
    view: View,
    show: async (authorization, read) => ({
      user_group: await read.userGroup(authorization.userGroupId),
      target_group: await read.targetGroup(authorization.targetGroupId),
      description: authorization.description,
      authorize_sessions: authorization.authorizeSessions,
      authorize_password_retrieval: authorization.authorizePasswordRetrieval,
      subprotocols: authorization.subprotocols,
      is_recorded: authorization.isRecorded,
      recording_mode: authorization.recordingMode,
      ...shownConditions(
        authorization.conditions,
        await read.userGroups(authorization.conditions?.approverGroupIds ?? []),
      ),
    }),
    label: (one) => `${one['user_group']}:${one['target_group']}`,
    secrets: [],
    list: (_request, page) => store.authorizations.list(page),
    async find(_request, ref) {
      if (looksLikeId(ref)) return store.authorizations.find(ref.toUpperCase())
      const [user, target, ...rest] = ref.split(':')
      if (user === undefined || target === undefined || rest.length > 0) return undefined
      const userGroup = await store.userGroups.find(user)
      const targetGroup = await store.targetGroups.find(target)
      return userGroup && targetGroup && ofPair(userGroup.id, targetGroup.id)
    },
  })
}

export function registerAuthorizations(app: Api, context: Context): void {
  registerCollection(app, context, authorizationResource(context))
}
