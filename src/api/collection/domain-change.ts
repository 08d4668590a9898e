/** The fields of a domain that say how the secrets of its accounts are changed. */
import { type Static, type TProperties, Type } from 'typebox'
import { CHANGE_PLUGINS, type ChangeParameter, type ChangePluginName } from '../../model/change-plugins.ts'
import type { Domain, DomainChange } from '../../model/objects.ts'
import { DEFAULT_PASSWORD_CHANGE_POLICY } from '../../model/password-change.ts'
import { reaches } from '../../model/profiles.ts'
import { policyFlaw } from '../../rotation/keys.ts'
import { kindOf } from '../../rotation/place.ts'
import type { Store } from '../../store/store.ts'
import { type ApiRequest, callerOf } from '../access/caller.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { check, exact, name, oneOf } from '../schema/fields.ts'
import { accountsMeant, accountText, ambiguous, referred } from './references.ts'

const PLUGIN_NAMES = Object.keys(CHANGE_PLUGINS) as ChangePluginName[]
const PARAMETERS = 'password_change_plugin_parameters'
const MAX_PARAMETER = 1024

/** All parameters of all plugins: those of one name have one type. */
const parameters: TProperties = Object.fromEntries(
  Object.values(CHANGE_PLUGINS).flatMap(({ parameters: of }) =>
    Object.entries<ChangeParameter>(of).map(([one, parameter]) => [one, Type.Optional(schemaOf(parameter))]),
  ),
)

function schemaOf({ type, description, maxLength = MAX_PARAMETER }: ChangeParameter) {
  if (type === 'flag') return Type.Boolean({ description })
  if (type === 'integer') return Type.Integer({ minimum: 0, maximum: 65_535, description })
  return Type.String({ minLength: 1, maxLength, description })
}

const Parameters = Type.Object(parameters, {
  additionalProperties: false,
  title: 'PasswordChangeParameters',
  description:
    'of the plugin; an update replaces them all. Where the target is: `host`, `port`; of a local domain its device has it',
})
const fields = {
  enable_password_change: Type.Boolean({ description: 'whether secrets of the accounts are changed' }),
  password_change_policy: name('which secrets are made, and when', 'default'),
  password_change_plugin: Type.Union([oneOf(PLUGIN_NAMES, 'kind of the target'), Type.Null()]),
  password_change_plugin_parameters: Parameters,
  admin_account: Type.Union([Type.String({ maxLength: 2048 }), Type.Null()], {
    description:
      'account that sets secrets where an account cannot change its own: ACCOUNT@DOMAIN or ACCOUNT@DOMAIN@DEVICE',
  }),
}
export const domainChangeIn = {
  enable_password_change: Type.Optional(fields.enable_password_change),
  password_change_policy: Type.Optional(fields.password_change_policy),
  password_change_plugin: Type.Optional(fields.password_change_plugin),
  password_change_plugin_parameters: Type.Optional(fields.password_change_plugin_parameters),
  admin_account: Type.Optional(fields.admin_account),
}
export const domainChangeOut = {
  ...fields,
  password_change_policy: Type.Union([fields.password_change_policy, Type.Null()]),
}
const In = exact(domainChangeIn)

/**
 * Returns the change of a domain's change, empty if the body names none of it. Secrets are sent where it says: that takes the
 * rights to change accounts and authorizations too. @throws ApiError
 */
export async function domainChangeOf(
  store: Store,
  request: ApiRequest,
  body: Static<typeof In>,
  { own, isLocal }: { own: Domain | undefined; isLocal: boolean },
): Promise<{ change?: DomainChange | undefined }> {
  const names = Object.keys(domainChangeIn) as (keyof typeof domainChangeIn)[]
  if (names.every((one) => body[one] === undefined)) return {}
  const { accounts, authorizations } = callerOf(request).rights
  if (!reaches(accounts, 'modify') || !reaches(authorizations, 'modify')) throw new ApiError('forbidden')
  // A table has empty cells for texts that are not there.
  const given =
    body.password_change_plugin_parameters &&
    (Object.fromEntries(
      Object.entries(body.password_change_plugin_parameters).filter(([, value]) => value !== ''),
    ) as DomainChange['parameters'])
  const plugin = body.password_change_plugin === undefined ? own?.change?.plugin : body.password_change_plugin
  if (plugin === undefined || plugin === null) {
    if (body.enable_password_change || body.admin_account || Object.keys(given ?? {}).length > 0)
      throw fieldError('invalid_field', 'password_change_plugin', 'name the kind of the target')
    return { change: undefined }
  }
  const kind = kindOf(plugin)
  if (!kind) throw fieldError('invalid_field', 'password_change_plugin', 'there is no such plugin')
  const policy = await referred(
    store.passwordChangePolicies,
    'password_change_policy',
    body.password_change_policy ?? own?.change?.policyId ?? DEFAULT_PASSWORD_CHANGE_POLICY,
  )
  if (kind.credentials.some((type) => type !== 'ssh_key'))
    check('password_change_policy', policyFlaw(policy, kind))
  const used = given ?? own?.change?.parameters ?? {}
  checkParameters(kind.parameters, used)
  const isEnabled = body.enable_password_change ?? own?.change?.isEnabled ?? false
  if (isEnabled && !isLocal && used['host'] === undefined)
    throw fieldError('invalid_field', `${PARAMETERS}/host`, 'a global domain has no device: name the host')
  if (isLocal && used['host'] !== undefined)
    throw fieldError('invalid_field', `${PARAMETERS}/host`, 'a local domain is at its device: leave it out')
  const adminAccountId = await administratorOf(store, body.admin_account, own)
  return {
    change: {
      isEnabled,
      policyId: policy.id,
      plugin,
      parameters: used,
      ...(adminAccountId !== undefined && { adminAccountId }),
    },
  }
}

async function administratorOf(
  store: Store,
  ref: string | null | undefined,
  own: Domain | undefined,
): Promise<string | undefined> {
  if (ref === undefined) return own?.change?.adminAccountId
  if (ref === null) return undefined
  const meant = await accountsMeant(store, ref)
  if (meant.length > 1) throw ambiguous(meant)
  if (!meant[0]) throw fieldError('unknown_reference', 'admin_account', `there is no account "${ref}"`)
  return meant[0].account.id
}

function checkParameters(
  known: Readonly<Record<string, ChangeParameter>>,
  given: DomainChange['parameters'],
): void {
  for (const [one, value] of Object.entries(given)) {
    const parameter = Object.hasOwn(known, one) ? known[one] : undefined
    if (!parameter)
      throw fieldError('invalid_field', `${PARAMETERS}/${one}`, 'the plugin has no such parameter')
    if (parameter.choices && !parameter.choices.includes(String(value)))
      throw fieldError('invalid_field', `${PARAMETERS}/${one}`, `expected ${parameter.choices.join(', ')}`)
    if (parameter.pattern && !parameter.pattern.test(String(value)))
      throw fieldError('invalid_field', `${PARAMETERS}/${one}`, 'the value does not have the form of it')
  }
  for (const [one, { isRequired }] of Object.entries(known))
    if (isRequired && given[one] === undefined)
      throw fieldError('invalid_field', `${PARAMETERS}/${one}`, 'the plugin needs this parameter')
}

export async function showDomainChange(store: Store, { change }: Domain) {
  const policy = change && (await store.passwordChangePolicies.find(change.policyId))
  const [admin] =
    change?.adminAccountId === undefined
      ? []
      : await store.accounts.meant({ account: change.adminAccountId }, 1)
  return {
    enable_password_change: change?.isEnabled ?? false,
    password_change_policy: change ? (policy?.policyName ?? change.policyId) : null,
    password_change_plugin: (change?.plugin ?? null) as ChangePluginName | null,
    password_change_plugin_parameters: change?.parameters ?? {},
    admin_account: admin ? accountText(admin) : null,
  }
}
