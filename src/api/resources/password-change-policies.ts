import { type Static, Type } from 'typebox'
import {
  MAX_GENERATED,
  MIN_GENERATED,
  type PasswordChangePolicy,
  passwordRulesFlaw,
  SSH_KEY_SIZES,
  SSH_KEY_TYPES,
} from '../../model/password-change.ts'
import { policyFlaw } from '../../rotation/keys.ts'
import { kindOf } from '../../rotation/place.ts'
import { scheduleFlaw } from '../../rotation/schedule.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { check, checkName, exact, name, oneOf, partial, shown, text } from '../schema/fields.ts'

const MAX_AGE = 10 * 366 * 24 * 3600
const orNull = <S extends Parameters<typeof Type.Union>[0][number]>(schema: S, description: string) =>
  Type.Union([schema, Type.Null()], { description })

const policyName = name('unique', 'nightly')
const passwordLength = Type.Integer({
  minimum: MIN_GENERATED,
  maximum: MAX_GENERATED,
  description: 'characters of a password; 24 unless given',
})
const characters = (what: string) =>
  orNull(
    Type.Integer({ minimum: 0, maximum: MAX_GENERATED }),
    `least number of ${what}, 1 unless given; null: none occur`,
  )
const cron = (what: string) =>
  orNull(
    Type.String({ minLength: 1, maxLength: 128 }),
    `${what}, as a cron expression of five parts in time_zone; null: never`,
  )
const Fields = {
  description: text('what the policy is for'),
  password_length: passwordLength,
  lower_chars: characters('small letters'),
  upper_chars: characters('capital letters'),
  digit_chars: characters('digits'),
  special_chars: characters('other characters'),
  exclude_chars: text('characters that do not occur', 128),
  ssh_key_type: oneOf(SSH_KEY_TYPES, 'type of SSH keys; ed25519 unless given'),
  ssh_key_size: orNull(
    Type.Integer({ minimum: 256, maximum: 4096 }),
    "bits of an SSH key; null: the type's usual one",
  ),
  change_period: cron('when all secrets are changed'),
  check_period: cron('when all stored secrets are proved'),
  time_zone: Type.String({ minLength: 1, maxLength: 64, description: 'IANA name; UTC unless given' }),
  max_age: orNull(
    Type.Integer({ minimum: 1, maximum: MAX_AGE }),
    'seconds after which a secret is overdue; null: never',
  ),
  reconcile: Type.Boolean({
    description:
      "default false; whether the domain's admin_account sets a new secret when a check finds that the target refuses the stored one",
  }),
}
const Create = exact({ password_change_policy_name: policyName, ...partial(exact(Fields)).properties })
const Update = partial(Create)
const View = exact({
  ...shown,
  password_change_policy_name: policyName,
  ...Fields,
  is_factory: Type.Boolean({ description: 'there from the first start: can be neither renamed nor removed' }),
})

const STANDARD: Omit<PasswordChangePolicy, 'id' | 'policyName'> = {
  description: '',
  length: 24,
  minimums: { lower: 1, upper: 1, digit: 1, special: 1 },
  excluded: '',
  keyType: 'ed25519',
  timeZone: 'UTC',
  isReconciled: false,
  isFactory: false,
}

export function passwordChangePolicyResource(context: ResourceContext) {
  const { store } = context.deps

  /** Returns the policy as it will be. @throws ApiError `invalid_field` if no secret would meet it */
  const changeOf = async (
    body: Static<typeof Update>,
    own?: PasswordChangePolicy,
  ): Promise<Omit<PasswordChangePolicy, 'id' | 'policyName'> & { policyName?: string }> => {
    const wanted = body.password_change_policy_name
    await checkName('password_change_policy_name', wanted, own, store.passwordChangePolicies, 'policyName')
    const { id: _id, policyName: _name, ...old } = own ?? { ...STANDARD, id: '', policyName: '' }
    const minimums = { ...old.minimums }
    for (const [field, name] of [
      ['lower_chars', 'lower'],
      ['upper_chars', 'upper'],
      ['digit_chars', 'digit'],
      ['special_chars', 'special'],
    ] as const) {
      const given = body[field]
      if (given === null) delete minimums[name]
      else if (given !== undefined) minimums[name] = given
    }
    const policy = {
      ...old,
      ...(wanted !== undefined && { policyName: wanted }),
      ...(body.description !== undefined && { description: body.description }),
      length: body.password_length ?? old.length,
      minimums,
      excluded: body.exclude_chars ?? old.excluded,
      keyType: body.ssh_key_type ?? old.keyType,
      timeZone: body.time_zone ?? old.timeZone,
      keySize: kept(body.ssh_key_size, old.keySize),
      changePeriod: kept(body.change_period, old.changePeriod),
      checkPeriod: kept(body.check_period, old.checkPeriod),
      maxAge: kept(body.max_age, old.maxAge),
      isReconciled: body.reconcile ?? old.isReconciled,
    }
    check('password_length', passwordRulesFlaw(policy))
    for (const plugin of own ? await store.domains.pluginsOfPolicy(own.id) : []) {
      const kind = kindOf(plugin)
      const flaw = kind && policyFlaw(policy, kind)
      check('password_length', flaw && `for the domains with the plugin ${plugin}: ${flaw}`)
    }
    const sizes = SSH_KEY_SIZES[policy.keyType]
    if (policy.keySize !== undefined && !sizes.includes(policy.keySize))
      check('ssh_key_size', `keys of type ${policy.keyType} have ${sizes.join(', ')} bits`)
    check('time_zone', scheduleFlaw('0 0 1 1 *', policy.timeZone))
    for (const [field, period] of [
      ['change_period', policy.changePeriod],
      ['check_period', policy.checkPeriod],
    ] as const) {
      if (period !== undefined) check(field, scheduleFlaw(period, policy.timeZone))
    }
    return policy as Awaited<ReturnType<typeof changeOf>>
  }

  return resource({
    path: '/passwordchangepolicies',
    type: 'passwordchangepolicy',
    title: 'Password change policies',
    description:
      'Which passwords and keys the broker makes, when it changes them and when it proves those that are stored. Domains name the policy.',
    create: {
      schema: Create,
      async plan(body) {
        const change = await changeOf(body)
        return () =>
          store.passwordChangePolicies.create({ ...change, policyName: body.password_change_policy_name })
      },
    },
    update: {
      schema: Update,
      async plan(old, body) {
        const { isFactory: _isFactory, ...change } = await changeOf(body, old)
        return () => store.passwordChangePolicies.update(old.id, change, old)
      },
    },
    removeFrom: (old) => store.passwordChangePolicies.remove(old.id, old),
    view: View,
    show: async (policy) => ({
      password_change_policy_name: policy.policyName,
      description: policy.description,
      password_length: policy.length,
      lower_chars: policy.minimums.lower ?? null,
      upper_chars: policy.minimums.upper ?? null,
      digit_chars: policy.minimums.digit ?? null,
      special_chars: policy.minimums.special ?? null,
      exclude_chars: policy.excluded,
      ssh_key_type: policy.keyType,
      ssh_key_size: policy.keySize ?? null,
      change_period: policy.changePeriod ?? null,
      check_period: policy.checkPeriod ?? null,
      time_zone: policy.timeZone,
      max_age: policy.maxAge ?? null,
      reconcile: policy.isReconciled,
      is_factory: policy.isFactory,
    }),
    label: (policy) => String(policy['password_change_policy_name']),
    secrets: [],
    list: (_request, page) => store.passwordChangePolicies.list(page),
    find: (_request, ref) => store.passwordChangePolicies.find(ref),
  })
}

function kept<T>(given: T | null | undefined, old: T | undefined): T | undefined {
  return given === undefined ? old : (given ?? undefined)
}

export function registerPasswordChangePolicies(app: Api, context: Context): void {
  registerCollection(app, context, passwordChangePolicyResource(context))
}
