import { type Static, Type } from 'typebox'
import type { TargetGroup } from '../../model/objects.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { accountsMeant, ambiguous, serviceIds, sessionAccount } from '../collection/references.ts'
import { resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { checkName, exact, name, names, partial, shown, text } from '../schema/fields.ts'

const groupName = name('unique', 'linux-servers')
const session = exact({
  accounts: names('targets of sessions: `ACCOUNT@DOMAIN:DEVICE:SERVICE`'),
  interactive_logins: names("`DEVICE:SERVICE`, where users are asked for the target's login and password"),
  account_mappings: names('`DEVICE:SERVICE`, where users log in by their own name and password'),
})
const retrieval = exact({
  accounts: names('accounts that may be checked out beside: `ACCOUNT@DOMAIN`, or `ACCOUNT@DOMAIN@DEVICE`'),
})
const Create = exact({
  group_name: groupName,
  description: Type.Optional(text('what the group is for')),
  session: Type.Optional(partial(session)),
  password_retrieval: Type.Optional(partial(retrieval)),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  group_name: groupName,
  description: Type.String(),
  session,
  password_retrieval: retrieval,
})

export function targetGroupResource(context: ResourceContext) {
  const { store } = context.deps

  const changeOf = async (
    body: Static<typeof Update>,
    own?: TargetGroup,
  ): Promise<Partial<Omit<TargetGroup, 'id'>>> => {
    await checkName('group_name', body.group_name, own, store.targetGroups, 'groupName')
    const change: Partial<Omit<TargetGroup, 'id'>> = {
      ...(body.group_name !== undefined && { groupName: body.group_name }),
      ...(body.description !== undefined && { description: body.description }),
    }
    const targets = body.session?.accounts
    if (targets) {
      change.sessionAccounts = []
      for (const [index, ref] of targets.entries()) {
        change.sessionAccounts.push(await sessionAccount(store, `session/accounts/${index}`, ref))
      }
    }
    const { interactive_logins: interactive, account_mappings: mappings } = body.session ?? {}
    if (interactive) {
      change.interactiveServiceIds = await serviceIds(store, 'session/interactive_logins', interactive)
    }
    if (mappings) change.mappingServiceIds = await serviceIds(store, 'session/account_mappings', mappings)
    const accounts = body.password_retrieval?.accounts
    if (accounts) {
      const ids = new Set<string>()
      for (const [index, ref] of accounts.entries()) {
        ids.add(await onlyAccount(`password_retrieval/accounts/${index}`, ref))
      }
      change.passwordRetrievalAccountIds = [...ids]
    }
    return change
  }
  const onlyAccount = async (field: string, ref: string): Promise<string> => {
    const meant = await accountsMeant(store, ref)
    if (meant[0] === undefined)
      throw fieldError('unknown_reference', field, `the account "${ref}" does not exist`)
    if (meant.length > 1)
      throw new ApiError(
        'ambiguous_reference',
        ambiguous(meant).details.map((one) => ({ field, ...one })),
      )
    return meant[0].account.id
  }

  return resource({
    path: '/targetgroups',
    type: 'targetgroup',
    title: 'Target groups',
    description: 'Targets and accounts that share authorizations.',
    create: {
      schema: Create,
      async plan(body) {
        const change = await changeOf(body)
        return () =>
          store.targetGroups.create({
            groupName: body.group_name,
            description: '',
            sessionAccounts: [],
            interactiveServiceIds: [],
            mappingServiceIds: [],
            passwordRetrievalAccountIds: [],
            ...change,
          })
      },
    },
    update: {
      schema: Update,
      async plan(old, body) {
        const change = await changeOf(body, old)
        return () => store.targetGroups.update(old.id, change, old)
      },
    },
    removeFrom: (old) => store.targetGroups.remove(old.id, old),
    view: View,
    show: async (group, read) => ({
      group_name: group.groupName,
      description: group.description,
      session: {
        accounts: (await Promise.all(group.sessionAccounts.map((one) => read.sessionAccount(one)))).sort(),
        interactive_logins: await read.deviceServices(group.interactiveServiceIds),
        account_mappings: await read.deviceServices(group.mappingServiceIds),
      },
      password_retrieval: {
        accounts: (await Promise.all(group.passwordRetrievalAccountIds.map((id) => read.account(id)))).sort(),
      },
    }),
    label: (group) => String(group['group_name']),
    secrets: [],
    list: (_request, page) => store.targetGroups.list(page),
    find: (_request, ref) => store.targetGroups.find(ref),
  })
}

export function registerTargetGroups(app: Api, context: Context): void {
  registerCollection(app, context, targetGroupResource(context))
}
