import { type Static, Type } from 'typebox'
import type { CheckoutPolicy } from '../../model/objects.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { fieldError } from '../http/errors.ts'
import { checkName, exact, name, partial, shown, text } from '../schema/fields.ts'

const MAX_DURATION = 30 * 24 * 3600
const STANDARD_DURATION = 3600
const policyName = name('unique', 'one-at-a-time')
const enableLock = Type.Boolean({
  description: 'while the secret is checked out, no other user can check it out or open a session with it',
})
const duration = Type.Union([Type.Integer({ minimum: 1, maximum: MAX_DURATION }), Type.Null()], {
  description: 'seconds until a checkout expires that names no duration; null: as long as max_duration',
})
const extension = Type.Integer({
  minimum: 0,
  maximum: MAX_DURATION,
  description: 'seconds that one extension adds; 0, unless given: none is possible',
})
const maxDuration = Type.Integer({
  minimum: 1,
  maximum: MAX_DURATION,
  description: 'seconds that a checkout lasts at most, with all its extensions; 3600 unless given',
})
const changeAtCheckin = Type.Boolean({
  description:
    'change the secret at its target when a checkout or a session with it ends; its domain has to have a plugin for that',
})
const Create = exact({
  policy_name: policyName,
  description: Type.Optional(text('what the policy is for')),
  enable_lock: Type.Optional(enableLock),
  duration: Type.Optional(duration),
  extension: Type.Optional(extension),
  max_duration: Type.Optional(maxDuration),
  change_credentials_at_checkin: Type.Optional(changeAtCheckin),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  policy_name: policyName,
  description: Type.String(),
  enable_lock: enableLock,
  duration,
  extension,
  max_duration: maxDuration,
  change_credentials_at_checkin: changeAtCheckin,
  is_factory: Type.Boolean({ description: 'there from the first start: can be neither renamed nor removed' }),
})

export function checkoutPolicyResource(context: ResourceContext) {
  const { store } = context.deps

  const changeOf = async (
    body: Static<typeof Update>,
    own?: CheckoutPolicy,
  ): Promise<Partial<Omit<CheckoutPolicy, 'id'>>> => {
    await checkName('policy_name', body.policy_name, own, store.checkoutPolicies, 'policyName')
    const longest = body.max_duration ?? own?.maxDuration ?? STANDARD_DURATION
    const lasts = (body.duration === undefined ? own?.duration : body.duration) ?? longest
    if (longest < lasts) {
      throw fieldError('invalid_field', 'duration', `${lasts} is more than max_duration, which is ${longest}`)
    }
    return {
      ...(body.policy_name !== undefined && { policyName: body.policy_name }),
      ...(body.description !== undefined && { description: body.description }),
      ...(body.enable_lock !== undefined && { enableLock: body.enable_lock }),
      ...(body.duration !== undefined && { duration: body.duration ?? undefined }),
      ...(body.extension !== undefined && { extension: body.extension }),
      ...(body.max_duration !== undefined && { maxDuration: body.max_duration }),
      ...(body.change_credentials_at_checkin !== undefined && {
        changesAtCheckin: body.change_credentials_at_checkin,
      }),
    }
  }

  return resource({
    path: '/checkoutpolicies',
    type: 'checkoutpolicy',
    title: 'Checkout policies',
    description:
      'Rules for checking out the secrets of the accounts that use the policy. The broker enforces them, whatever the client does; a running checkout keeps its end, and is extended by the rules of that moment.',
    create: {
      schema: Create,
      async plan(body) {
        const change = await changeOf(body)
        return () =>
          store.checkoutPolicies.create({
            policyName: body.policy_name,
            description: '',
            enableLock: false,
            extension: 0,
            maxDuration: STANDARD_DURATION,
            ...change,
            isFactory: false,
          })
      },
    },
    update: {
      schema: Update,
      async plan(old, body) {
        const change = await changeOf(body, old)
        return () => store.checkoutPolicies.update(old.id, change, old)
      },
    },
    removeFrom: (old) => store.checkoutPolicies.remove(old.id, old),
    view: View,
    show: async (policy) => ({
      policy_name: policy.policyName,
      description: policy.description,
      enable_lock: policy.enableLock,
      duration: policy.duration ?? null,
      extension: policy.extension,
      max_duration: policy.maxDuration,
      change_credentials_at_checkin: policy.changesAtCheckin ?? false,
      is_factory: policy.isFactory,
    }),
    label: (policy) => String(policy['policy_name']),
    secrets: [],
    list: (_request, page) => store.checkoutPolicies.list(page),
    find: (_request, ref) => store.checkoutPolicies.find(ref),
  })
}

export function registerCheckoutPolicies(app: Api, context: Context): void {
  registerCollection(app, context, checkoutPolicyResource(context))
}
