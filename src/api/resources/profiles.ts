/** Profiles: built-in ones, which are read-only, and others. */
import { type Static, Type } from 'typebox'
import { FACTOR_POLICIES, MAX_REMEMBERED_S } from '../../model/objects.ts'
import { FEATURES, type Feature } from '../../model/profile-rights.ts'
import { AMOUNTS, amountsOf, levelsOf, type Profile, rightsFrom } from '../../model/profiles.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { checkName, exact, name, oneOf, partial, shown, text } from '../schema/fields.ts'
import { refuseBeyondOwn } from './users.ts'

const profileName = name('unique', 'provisioner')
const levels = Object.fromEntries(
  FEATURES.map((feature) => [feature, oneOf(levelsOf(feature), 'level')]),
) as Record<Feature, ReturnType<typeof oneOf<ReturnType<typeof levelsOf>>>>
const rights = exact(levels)
const secondFactor = oneOf(
  FACTOR_POLICIES,
  'required: its users need a one-time code to sign in, and enrol at their next sign-in; none, unless given',
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
  profile_name: profileName,
  description: Type.Optional(text('what the profile is for')),
  second_factor: Type.Optional(secondFactor),
  second_factor_remember: Type.Optional(remember),
  second_factor_keys: Type.Optional(factorKeys),
  rights: Type.Optional(partial(rights)),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  profile_name: profileName,
  description: Type.String(),
  second_factor: secondFactor,
  second_factor_remember: remember,
  second_factor_keys: factorKeys,
  rights,
  is_factory: Type.Boolean({
    description: 'there from the first start: read only but for second_factor and its options',
  }),
  amounts_to: Type.Array(oneOf(AMOUNTS, 'what they come to'), {
    description: 'what the rights amount to beside their names; docs/api.md says how. Read only',
  }),
})

export function profileResource(context: ResourceContext) {
  const { store } = context.deps

  const changeOf = async (
    body: Static<typeof Update>,
    own?: Profile,
  ): Promise<Partial<Omit<Profile, 'id'>>> => {
    await checkName('profile_name', body.profile_name, own, store.profiles, 'profileName')
    return {
      ...(body.profile_name !== undefined && { profileName: body.profile_name }),
      ...(body.description !== undefined && { description: body.description }),
      ...(body.second_factor !== undefined && { secondFactor: body.second_factor }),
      ...(body.second_factor_remember !== undefined && {
        secondFactorRemember: body.second_factor_remember,
      }),
      ...(body.second_factor_keys !== undefined && { secondFactorKeys: body.second_factor_keys }),
      ...(body.rights !== undefined && { rights: rightsFrom({ ...own?.rights, ...body.rights }) }),
    }
  }

  return resource({
    path: '/profiles',
    type: 'profile',
    title: 'Profiles',
    description:
      "What users and API keys may do over the API, one level per feature; a feature that is not named is `none`. Nobody can give or change a profile beyond their own rights. An update of `rights` keeps the features that it does not name; it holds from its users' next request on.",
    create: {
      schema: Create,
      async plan(body, request) {
        const change = await changeOf(body)
        const profile = {
          profileName: body.profile_name,
          description: '',
          rights: rightsFrom({}),
          ...change,
          isFactory: false,
        }
        refuseBeyondOwn(request, profile.rights)
        return () => store.profiles.create(profile)
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        refuseBeyondOwn(request, old.rights)
        const change = await changeOf(body, old)
        if (change.rights) refuseBeyondOwn(request, change.rights)
        return () => store.profiles.update(old.id, change, old)
      },
    },
    remove: {
      async check(old, request) {
        refuseBeyondOwn(request, old.rights)
        return []
      },
    },
    removeFrom: (old) => store.profiles.remove(old.id, old),
    view: View,
    show: async (profile) => ({
      profile_name: profile.profileName,
      description: profile.description,
      second_factor: profile.secondFactor ?? 'none',
      second_factor_remember: profile.secondFactorRemember ?? 0,
      second_factor_keys: profile.secondFactorKeys ?? false,
      rights: profile.rights,
      is_factory: profile.isFactory,
      amounts_to: amountsOf(profile.rights),
    }),
    label: (profile) => String(profile['profile_name']),
    secrets: [],
    list: (_request, page) => store.profiles.list(page),
    find: (_request, ref) => store.profiles.find(ref),
  })
}

export function registerProfiles(app: Api, context: Context): void {
  registerCollection(app, context, profileResource(context))
}
