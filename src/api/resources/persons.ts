/** `/authdomains/NAME/persons`: users that servers know, and that have signed in. */
import { type TObject, Type } from 'typebox'
import type { User } from '../../model/objects.ts'
import { callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor } from '../access/events.ts'
import { registerCollection } from '../collection/collection.ts'
import { authDomainOf } from '../collection/parents.ts'
import type { Api } from '../http/deps.ts'
import { exact, names, shown } from '../schema/fields.ts'
import { lastSignIn, lastSignInOf, removalOf } from './users.ts'

const View = exact({
  ...shown,
  user_name: Type.String({ description: 'NAME@DOMAIN', examples: ['alice@corp'] }),
  display_name: Type.String(),
  email: Type.String(),
  profile: Type.String({ description: 'of the mappings that matched at the last sign-in' }),
  groups: names('user groups of those mappings'),
  ssh_public_keys: Type.Array(Type.String(), { description: 'as the servers had them' }),
  last_sign_in: lastSignIn,
  is_disabled: Type.Boolean({ description: 'the servers do not let in any more; until the next sign-in' }),
})

export function registerPersons(app: Api, context: Context): void {
  const { factors, store } = context.deps

  registerCollection<User, TObject, TObject, typeof View>(app, context, {
    path: '/authdomains/:domain/persons',
    type: 'person',
    title: 'Persons of an authentication domain',
    description:
      'Persons that have signed in, as their servers and mappings described them. One that is removed loses sessions and checkouts, and is made anew by the next sign-in.',
    remove: {
      check: async (old, request) => {
        const { enrolled, securityKeys } = await factors.statusOf(old.id)
        const hasFactor = enrolled !== undefined || securityKeys > 0
        const subject = { object_type: 'user', object: old.userName }
        const reset = { code: 'factor.reset', fields: { ...actor(callerOf(request)), ...subject } } as const
        return [...(await removalOf(context, old, request)), ...(hasFactor ? [reset] : [])]
      },
    },
    removeFrom: async (old) => {
      await store.persons.remove(old.id)
    },
    view: View,
    show: async (person, read) => ({
      user_name: person.userName,
      display_name: person.displayName,
      email: person.email,
      profile: person.profile,
      groups: await read.userGroups(person.groupIds),
      ssh_public_keys: person.sshPublicKeys,
      is_disabled: person.isDisabled,
      last_sign_in: await lastSignInOf(read, person),
    }),
    parents: ({ authDomainId = '' }) => ({ domain: authDomainId }),
    label: (person) => String(person['user_name']),
    secrets: [],
    async list(request, page) {
      return store.persons.list(page, (await authDomainOf(store, request)).id)
    },
    async find(request, ref) {
      const [domain, found] = [await authDomainOf(store, request), await store.users.find(ref)]
      return found?.authDomainId === domain.id ? found : undefined
    },
  })
}
