import { type Static, Type } from 'typebox'
import { FACTOR_POLICIES, MAX_REMEMBERED_S, type UserGroup } from '../../model/objects.ts'
import { ALL_THE_TIME, MAX_TIMEFRAMES } from '../../model/timeframes.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { localUsers, referredIds } from '../collection/references.ts'
import { resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { checkName, exact, name, names, oneOf, partial, shown, text } from '../schema/fields.ts'

const groupName = name('unique', 'linux-admins')
const timeframes = names(
  'its authorizations count while one of them holds; `allthetime` alone if none is named',
  MAX_TIMEFRAMES,
)
const secondFactor = oneOf(
  FACTOR_POLICIES,
  'required: members need a one-time code to sign in, and enrol at their next sign-in; none, unless given',
)
const remember = Type.Integer({
  minimum: 0,
  maximum: MAX_REMEMBERED_S,
  description:
    'seconds for which no code is asked for again after a right one from the same address; 0, unless given: none',
})
const factorKeys = Type.Boolean({
  description:
    'an SSH key (FIDO) counts as both factors when its token has checked a PIN or a finger; false, unless given',
})
const Create = exact({
  group_name: groupName,
  description: Type.Optional(text('what the group is for')),
  second_factor: Type.Optional(secondFactor),
  second_factor_remember: Type.Optional(remember),
  second_factor_keys: Type.Optional(factorKeys),
  users: Type.Optional(names('members')),
  timeframes: Type.Optional(timeframes),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  group_name: groupName,
  description: Type.String(),
  second_factor: secondFactor,
  second_factor_remember: remember,
  second_factor_keys: factorKeys,
  users: names('members'),
  timeframes,
})

export function userGroupResource(context: ResourceContext) {
  const { store } = context.deps

  const changeOf = async (
    body: Static<typeof Update>,
    own?: UserGroup,
  ): Promise<Partial<Omit<UserGroup, 'id'>>> => {
    await checkName('group_name', body.group_name, own, store.userGroups, 'groupName')
    return {
      ...(body.group_name !== undefined && { groupName: body.group_name }),
      ...(body.description !== undefined && { description: body.description }),
      ...(body.second_factor !== undefined && { secondFactor: body.second_factor }),
      ...(body.second_factor_remember !== undefined && {
        secondFactorRemember: body.second_factor_remember,
      }),
      ...(body.second_factor_keys !== undefined && { secondFactorKeys: body.second_factor_keys }),
      ...(body.timeframes !== undefined && {
        timeframeIds: await referredIds(store.timeframes, 'timeframes', body.timeframes),
      }),
      ...(body.users !== undefined && { userIds: await referredIds(localUsers(store), 'users', body.users) }),
    }
  }

  return resource({
    path: '/usergroups',
    type: 'usergroup',
    title: 'User groups',
    description: 'Users that share authorizations.',
    create: {
      schema: Create,
      async plan(body) {
        const change = await changeOf(body)
        return () =>
          store.userGroups.create({ groupName: body.group_name, description: '', userIds: [], ...change })
      },
    },
    update: {
      schema: Update,
      async plan(old, body) {
        const change = await changeOf(body, old)
        return () => store.userGroups.update(old.id, change, old)
      },
    },
    removeFrom: (old) => store.userGroups.remove(old.id, old),
    view: View,
    show: async (group, read) => ({
      group_name: group.groupName,
      description: group.description,
      second_factor: group.secondFactor ?? 'none',
      second_factor_remember: group.secondFactorRemember ?? 0,
      second_factor_keys: group.secondFactorKeys ?? false,
      users: await read.users(group.userIds),
      timeframes: await read.timeframes(group.timeframeIds ?? [ALL_THE_TIME]),
    }),
    label: (group) => String(group['group_name']),
    secrets: [],
    list: (_request, page) => store.userGroups.list(page),
    find: (_request, ref) => store.userGroups.find(ref),
  })
}

export function registerUserGroups(app: Api, context: Context): void {
  registerCollection(app, context, userGroupResource(context))
}
