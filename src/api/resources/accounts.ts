import { type Static, Type } from 'typebox'
import { accountLoginError, accountNameError, nameKey } from '../../model/names.ts'
import {
  type Account,
  CREDENTIAL_TYPES,
  DEFAULT_CHECKOUT_POLICY,
  type Device,
  type Domain,
  type Id,
  SECRET_STATES,
  type SecretState,
} from '../../model/objects.ts'
import { DuplicateError, MissingReferenceError } from '../../store/engine/errors.ts'
import type { Store } from '../../store/store.ts'
import { type ApiRequest, callerOf } from '../access/caller.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { credentialsIn, credentialsOf, wipeAll } from '../collection/credentials.ts'
import { deviceOf, globalDomainOf } from '../collection/parents.ts'
import {
  accountOf,
  accountsMeant,
  accountsMeantOn,
  accountText,
  ambiguous,
  localDomainOf,
  referred,
} from '../collection/references.ts'
import { announced, type PlannedEvent, resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { check, exact, name, oneOf, partial, shown, text, timeOrNull, timeText } from '../schema/fields.ts'

/** Local domain of accounts without a named one; made with the first such account. */
const LOCAL = 'local'
/** Why a checkout ends when its secret is replaced. */
const REPLACED = 'its secret was changed'

const accountName = name('unique in its domain', 'root')
const checkoutPolicy = name('what holds for the checkout of its secret', 'default')
const autoChange = Type.Boolean({
  description: 'whether schedules and check-ins change its secret; true unless given',
})
const Create = exact({
  account_name: accountName,
  account_login: Type.Optional(name("user name on the target; the account's name unless given", 'root')),
  device: Type.Optional(name('device that it belongs to; absent: an account of a global domain', 'srv1')),
  domain: Type.Optional(
    name('with `device`: one of its local domains, `local` unless given; else a global domain', LOCAL),
  ),
  description: Type.Optional(text('what the account is for')),
  checkout_policy: Type.Optional(checkoutPolicy),
  credentials: Type.Optional(credentialsIn),
  auto_change_password: Type.Optional(autoChange),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  account_name: accountName,
  account_login: Type.String(),
  device: Type.Union([Type.String(), Type.Null()], { description: 'null: an account of a global domain' }),
  domain: Type.String(),
  description: Type.String(),
  checkout_policy: checkoutPolicy,
  auto_change_password: autoChange,
  secret_state: oneOf(SECRET_STATES, 'of a changed secret: whether it is known to be the one of the target'),
  last_change: timeOrNull('when the secret was set last, or changed at its target'),
  last_check: timeOrNull('when the target accepted the stored secret last'),
  credentials: Type.Array(exact({ type: oneOf(CREDENTIAL_TYPES, 'kind of secret that is stored') })),
})

/** Parent in a path below `/devices` or `/domains`; `/accounts` has none. */
interface Place {
  device?: Device
  domain?: Domain
}
interface Scope {
  path: string
  placeOf(request: ApiRequest): Promise<Place>
}
const EVERYWHERE: Scope = { path: '/accounts', placeOf: async () => ({}) }

export function accountResource(context: ResourceContext, scope: Scope = EVERYWHERE) {
  const { store, vault, clock } = context.deps

  const changeOf = async (
    body: Static<typeof Update>,
    own?: Account,
  ): Promise<Partial<Omit<Account, 'id'>>> => {
    // Existing names may be older than the rules.
    if (body.account_name !== undefined && body.account_name !== own?.accountName) {
      check('account_name', accountNameError(body.account_name))
    }
    if (body.account_login !== undefined) check('account_login', accountLoginError(body.account_login))
    return {
      ...(body.account_name !== undefined && { accountName: body.account_name.normalize('NFC') }),
      ...(body.account_login !== undefined && { accountLogin: body.account_login }),
      ...(body.description !== undefined && { description: body.description }),
      ...(body.auto_change_password !== undefined && { isKept: !body.auto_change_password }),
      ...(body.checkout_policy !== undefined && {
        checkoutPolicyId: (await referred(store.checkoutPolicies, 'checkout_policy', body.checkout_policy))
          .id,
      }),
    }
  }

  /**
   * Returns the place of a new account; a device without the domain `local` gets it with the first account.
   */
  const homeOf = async (body: Static<typeof Create>): Promise<Domain | Device> => {
    if (body.device === undefined) {
      if (body.domain === undefined)
        throw fieldError('invalid_field', 'device', 'name a device, a domain, or both')
      const domain = await referred(store.domains, 'domain', body.domain)
      if (domain.deviceId === undefined) return domain
      throw fieldError('invalid_field', 'device', 'this is a local domain: name its device too')
    }
    const device = await referred(store.devices, 'device', body.device)
    const wanted = body.domain ?? LOCAL
    const domain = await localDomainOf(store, device, wanted)
    if (domain) return domain
    if (nameKey(wanted) === LOCAL) return device
    const message = `"${device.deviceName}" has no local domain "${wanted}"; leave device out for a global domain`
    throw fieldError('unknown_reference', 'domain', message)
  }
  const localDomain = async (device: Device): Promise<Domain> => {
    const existing = await localDomainOf(store, device, LOCAL)
    if (existing) return existing
    try {
      return await store.domains.create({ deviceId: device.id, domainName: LOCAL, description: '' })
    } catch (error) {
      // Another request has made this device's domain `local` meanwhile: use it.
      const made = error instanceof DuplicateError && (await localDomainOf(store, device, LOCAL))
      if (made) return made
      throw error
    }
  }
  const refuseDuplicate = async (domain: Domain, name: string, own?: Account): Promise<void> => {
    const other = await accountOf(store, domain, name)
    if (other && other.id !== own?.id) {
      throw fieldError(
        'duplicate',
        'account_name',
        `"${other.accountName}@${domain.domainName}" exists there`,
      )
    }
  }

  return resource({
    path: scope.path,
    home: '/accounts',
    type: 'account',
    title: 'Accounts',
    description:
      'Accounts on targets, with the secrets that are injected. In a path one is called by its id, `ACCOUNT@DOMAIN`, or `ACCOUNT@DOMAIN@DEVICE` where several devices have it (409 with the candidates otherwise).',
    create: {
      schema: Create,
      async plan(given, request) {
        const place = await scope.placeOf(request)
        refuseMove(given, place)
        const body = { ...given, ...bodyOf(place) }
        const change = await changeOf(body)
        const credentials = credentialsOf(body.credentials ?? [])
        const home = await homeOf(body)
        if ('domainName' in home) await refuseDuplicate(home, body.account_name)
        const made =
          'domainName' in home
            ? []
            : [
                {
                  code: 'object.create' as const,
                  fields: { object_type: 'localdomain', object: `${LOCAL}@${home.deviceName}` },
                },
              ]
        const plan = announced(made, async () => {
          const domain = 'domainName' in home ? home : await localDomain(home)
          const account = await store.accounts.create({
            accountName: body.account_name,
            accountLogin: body.account_name,
            description: '',
            ...change,
            domainId: domain.id,
            credentialTypes: [],
          })
          if (credentials.length === 0) return account
          try {
            await vault.setCredentials(account.id, credentials, { time: clock(), severs: false })
          } catch (error) {
            await store.accounts.remove(account.id)
            throw error
          } finally {
            wipeAll(credentials)
          }
          return (await store.accounts.find(account.id)) ?? account
        })
        return Object.assign(plan, { label: labelOf(body) })
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        const change = await changeOf(body, old)
        const credentials = body.credentials && credentialsOf(body.credentials)
        const domain = await referred(store.domains, 'domain', old.domainId)
        const device = domain.deviceId === undefined ? undefined : await store.devices.find(domain.deviceId)
        refuseMove(body, { domain, ...(device && { device }) })
        if (change.accountName !== undefined) await refuseDuplicate(domain, change.accountName, old)
        const where = { domain: domain.domainName, ...(device && { device: device.deviceName }) }
        const object = accountText({ account: old, domain, device })
        const fields = { object_type: 'account', object, account: old.accountName, ...where }
        const out = credentials ? await store.checkouts.active(old.id, clock()) : []
        const events: PlannedEvent[] = credentials ? [{ code: 'secret.change', fields }] : []
        for (const { id, userId } of out) {
          const holder = (await store.users.find(userId))?.userName ?? userId
          const ended = { account: old.accountName, ...where, object: id, holder, reason: REPLACED }
          events.push({ code: 'checkout.forced', fields: ended })
        }
        return announced(events, async () => {
          const account = await store.accounts.update(old.id, change, old)
          if (!credentials) return account
          await vault.setCredentials(old.id, credentials, { time: clock(), severs: true })
          for (const { id } of out) await endCheckout(store, id, clock(), callerOf(request).name)
          wipeAll(credentials)
          return (await store.accounts.find(old.id)) ?? account
        })
      },
    },
    remove: {
      // A user holds its secret, and without the account no record would show it.
      async check(old) {
        const out = await store.checkouts.active(old.id, context.deps.clock())
        if (out.length === 0) return []
        const details = out.map(async ({ userId, expires }) => {
          const user = await store.users.find(userId)
          return { message: `checked out by "${user?.userName}" until ${timeText(expires)}` }
        })
        throw new ApiError('in_use', await Promise.all(details))
      },
    },
    removeFrom: (old) => store.accounts.remove(old.id, old),
    view: View,
    async show(account, read) {
      const { domainName, deviceName } = await read.domain(account.domainId)
      return {
        account_name: account.accountName,
        account_login: account.accountLogin,
        device: deviceName,
        domain: domainName,
        description: account.description,
        checkout_policy: await read.checkoutPolicy(account.checkoutPolicyId ?? DEFAULT_CHECKOUT_POLICY),
        auto_change_password: !(account.isKept ?? false),
        secret_state: stateOf(account),
        last_change: account.secretChanged === undefined ? null : timeText(account.secretChanged),
        last_check: account.secretChecked === undefined ? null : timeText(account.secretChecked),
        credentials: account.credentialTypes.map((type) => ({ type })),
      }
    },
    label: labelOf,
    secrets: ['credentials'],
    async list(request, page) {
      const { device, domain } = await scope.placeOf(request)
      if (domain) return store.accounts.list(page, { domainId: domain.id })
      return store.accounts.list(page, device && { deviceId: device.id })
    },
    async find(request, ref) {
      const { device, domain } = await scope.placeOf(request)
      if (domain) return accountOf(store, domain, ref)
      const meant = device ? await accountsMeantOn(store, device, ref) : await accountsMeant(store, ref)
      if (meant.length > 1) throw ambiguous(meant)
      return meant[0]?.account
    },
  })
}

/** Ends a checkout of a secret that is none any more, unless it was returned meanwhile. */
async function endCheckout(store: Store, id: Id, time: number, by: string): Promise<void> {
  try {
    await store.checkouts.end(id, time, { by, comment: REPLACED })
  } catch (error) {
    if (!(error instanceof MissingReferenceError)) throw error
  }
}

export function registerAccounts(app: Api, context: Context): void {
  const { store } = context.deps
  registerCollection(app, context, accountResource(context))
  for (const scope of scopesOf(store)) registerCollection(app, context, accountResource(context, scope))
}

function scopesOf(store: Store): Scope[] {
  return [
    {
      path: '/devices/:device/accounts',
      placeOf: async (request) => ({ device: await deviceOf(store, request) }),
    },
    {
      path: '/devices/:device/localdomains/:domain/accounts',
      async placeOf(request) {
        const device = await deviceOf(store, request)
        const { domain: ref } = request.params as { domain: string }
        const domain = await localDomainOf(store, device, ref)
        if (!domain) throw new ApiError('not_found')
        return { device, domain }
      },
    },
    {
      path: '/domains/:domain/accounts',
      placeOf: async (request) => ({ domain: await globalDomainOf(store, request) }),
    },
  ]
}

/** Returns the fields of a body that is sent below this place. */
function bodyOf({ device, domain }: Place): { device?: string; domain?: string } {
  return { ...(device && { device: device.deviceName }), ...(domain && { domain: domain.domainName }) }
}

const stateOf = ({ secretState }: Account): SecretState => secretState ?? 'ok'

function labelOf(account: Readonly<Record<string, unknown>>): string {
  return [account['account_name'], account['domain'] ?? LOCAL, account['device'] ?? []].flat().join('@')
}

/** Refuses to move an account: target groups name it by its place. */
function refuseMove(body: Static<typeof Update>, { device, domain }: Place): void {
  const same = (ref: string, object: { id: string } | undefined, name: string | undefined): boolean =>
    object !== undefined && (ref.toUpperCase() === object.id || nameKey(ref) === nameKey(name ?? ''))
  const message = 'an account has the one place where it is: create another one, and remove this'
  if (body.device !== undefined && (device ?? domain) && !same(body.device, device, device?.deviceName)) {
    throw fieldError('invalid_field', 'device', message)
  }
  if (body.domain !== undefined && domain && !same(body.domain, domain, domain.domainName)) {
    throw fieldError('invalid_field', 'domain', message)
  }
}
