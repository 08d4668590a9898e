import { type Static, Type } from 'typebox'
import { accountNameError, nameKey } from '../../model/names.ts'
import { type Account, CREDENTIAL_TYPES, type Device, type Domain } from '../../model/objects.ts'
import { DuplicateError } from '../../store/errors.ts'
import { announced, registerCollection, resource } from '../collection.ts'
import type { Context } from '../context.ts'
import { credentialsIn, credentialsOf, wipeAll } from '../credentials.ts'
import type { Api } from '../deps.ts'
import { fieldError } from '../errors.ts'
import { check, exact, name, oneOf, partial, shown, text } from '../fields.ts'
import { accountOf, accountsMeant, accountText, ambiguous, localDomainOf, referred } from '../references.ts'

/** The local domain that an account gets when none is named; made with the first account. */
const LOCAL = 'local'

const accountName = name('unique in its domain', 'root')
const Create = exact({
  account_name: accountName,
  account_login: Type.Optional(name("user name on the target; the account's name unless given", 'root')),
  device: Type.Optional(name('device that it belongs to; absent: an account of a global domain', 'srv1')),
  domain: Type.Optional(
    name('with `device`: one of its local domains, `local` unless given; else a global domain', LOCAL),
  ),
  description: Type.Optional(text('what the account is for')),
  credentials: Type.Optional(credentialsIn),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  account_name: accountName,
  account_login: Type.String(),
  device: Type.Union([Type.String(), Type.Null()], { description: 'null: an account of a global domain' }),
  domain: Type.String(),
  description: Type.String(),
  credentials: Type.Array(exact({ type: oneOf(CREDENTIAL_TYPES, 'kind of secret that is stored') })),
})

export function accountResource(context: Context) {
  const { store, vault } = context.deps

  const changeOf = (body: Static<typeof Update>): Partial<Omit<Account, 'id'>> => {
    if (body.account_name !== undefined) check('account_name', accountNameError(body.account_name))
    if (body.account_login !== undefined) check('account_login', accountNameError(body.account_login))
    return {
      ...(body.account_name !== undefined && { accountName: body.account_name.normalize('NFC') }),
      ...(body.account_login !== undefined && { accountLogin: body.account_login }),
      ...(body.description !== undefined && { description: body.description }),
    }
  }

  /** Where a new account goes; a device without its domain `local` gets it with the first account. */
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
      // another first account of this device was quicker: its domain will do
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
    path: '/accounts',
    type: 'account',
    title: 'Accounts',
    description:
      'Accounts on targets, with the secrets that are injected. In a path one is called by its id, `ACCOUNT@DOMAIN`, or `ACCOUNT@DOMAIN@DEVICE` where several devices have it (409 with the candidates otherwise).',
    create: {
      schema: Create,
      async plan(body) {
        const change = changeOf(body)
        const credentials = credentialsOf(body.credentials ?? [])
        const home = await homeOf(body)
        if ('domainName' in home) await refuseDuplicate(home, body.account_name)
        const made = { code: 'object.create' as const, fields: { object_type: 'localdomain', object: LOCAL } }
        return announced('domainName' in home ? [] : [made], async () => {
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
            await vault.setCredentials(account.id, credentials)
          } catch (error) {
            await store.accounts.remove(account.id)
            throw error
          } finally {
            wipeAll(credentials)
          }
          return (await store.accounts.find(account.id)) ?? account
        })
      },
    },
    update: {
      schema: Update,
      async plan(old, body) {
        const change = changeOf(body)
        const credentials = body.credentials && credentialsOf(body.credentials)
        const domain = await referred(store.domains, 'domain', old.domainId)
        const device = domain.deviceId === undefined ? undefined : await store.devices.find(domain.deviceId)
        refuseMove(body, domain, device)
        if (change.accountName !== undefined) await refuseDuplicate(domain, change.accountName, old)
        const where = { domain: domain.domainName, ...(device && { device: device.deviceName }) }
        const object = accountText({ account: old, domain, device })
        const fields = { object_type: 'account', object, account: old.accountName, ...where }
        return announced(credentials ? [{ code: 'secret.change', fields }] : [], async () => {
          if (credentials) {
            await vault.setCredentials(old.id, credentials)
            wipeAll(credentials)
          }
          return store.accounts.update(old.id, change)
        })
      },
    },
    removeFrom: (old) => store.accounts.remove(old.id),
    view: View,
    async show(account, read) {
      const { domainName, deviceName } = await read.domain(account.domainId)
      return {
        account_name: account.accountName,
        account_login: account.accountLogin,
        device: deviceName,
        domain: domainName,
        description: account.description,
        credentials: account.credentialTypes.map((type) => ({ type })),
      }
    },
    label: (account) =>
      [account['account_name'], account['domain'] ?? LOCAL, account['device'] ?? []].flat().join('@'),
    secrets: ['credentials'],
    list: (_request, page) => store.accounts.list(page),
    async find(_request, ref) {
      const meant = await accountsMeant(store, ref)
      if (meant.length > 1) throw ambiguous(meant)
      return meant[0]?.account
    },
  })
}

export function registerAccounts(app: Api, context: Context): void {
  registerCollection(app, context, accountResource(context))
}

/** An account stays where it was made: target groups name it by its place. */
function refuseMove(body: Static<typeof Update>, domain: Domain, device: Device | undefined): void {
  const same = (ref: string, object: { id: string } | undefined, name: string | undefined): boolean =>
    object !== undefined && (ref.toUpperCase() === object.id || nameKey(ref) === nameKey(name ?? ''))
  const message = 'an account cannot be moved: create another one and remove this'
  if (body.device !== undefined && !same(body.device, device, device?.deviceName)) {
    throw fieldError('invalid_field', 'device', message)
  }
  if (body.domain !== undefined && !same(body.domain, domain, domain.domainName)) {
    throw fieldError('invalid_field', 'domain', message)
  }
}
