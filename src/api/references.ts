/** Names in bodies and paths ↔ objects. An id is accepted wherever a name is. */
import { looksLikeId, nameKey } from '../model/names.ts'
import type { Account, Device, Domain, Id, Service, TargetGroup, UserGroup } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import { ApiError, type ErrorDetail, fieldError } from './errors.ts'

interface Findable<T> {
  find(idOrName: string): Promise<T | undefined>
}

/** @throws ApiError `unknown_reference` that names the field */
export async function referred<T>(repository: Findable<T>, field: string, ref: string): Promise<T> {
  const object = await repository.find(ref)
  if (object === undefined) throw fieldError('unknown_reference', field, `"${ref}" does not exist`)
  return object
}

/** The ids that a list of references means. @throws ApiError `unknown_reference` that names every bad one */
export async function referredIds<T extends { id: Id }>(
  repository: Findable<T>,
  field: string,
  refs: readonly string[],
): Promise<Id[]> {
  const ids = new Set<Id>()
  const details: ErrorDetail[] = []
  for (const [index, ref] of refs.entries()) {
    const object = await repository.find(ref)
    if (object) ids.add(object.id)
    else details.push({ field: `${field}/${index}`, message: `"${ref}" does not exist` })
  }
  if (details.length > 0) throw new ApiError('unknown_reference', details)
  return [...ids]
}

export async function serviceOf(store: Store, device: Device, ref: string): Promise<Service | undefined> {
  const services = await store.services.ofDevice(device.id)
  return services.find((service) => matches(ref, service.id, service.serviceName))
}

export async function localDomainOf(store: Store, device: Device, ref: string): Promise<Domain | undefined> {
  const domains = await store.domains.ofDevice(device.id)
  return domains.find((domain) => matches(ref, domain.id, domain.domainName))
}

export async function accountOf(store: Store, domain: Domain, ref: string): Promise<Account | undefined> {
  const accounts = await store.accounts.ofDomain(domain.id)
  return accounts.find((account) => matches(ref, account.id, account.accountName))
}

function matches(ref: string, id: Id, name: string): boolean {
  return looksLikeId(ref) ? id === ref.toUpperCase() : nameKey(ref) === nameKey(name)
}

/** An account with where it lives. */
export interface Placed {
  account: Account
  domain: Domain
  /** The device whose local domain it is; undefined: a global one. */
  device: Device | undefined
}

/**
 * All accounts that `ACCOUNT@DOMAIN` or `ACCOUNT@DOMAIN@DEVICE` may mean, or the one with that id. An account's
 * name may itself hold an `@`, so every way to cut the text is tried.
 */
export async function accountsMeant(store: Store, ref: string): Promise<Placed[]> {
  if (looksLikeId(ref)) {
    const account = await store.accounts.find(ref.toUpperCase())
    const placed = account && (await place(store, account))
    return placed ? [placed] : []
  }
  const last = ref.lastIndexOf('@')
  if (last <= 0) return []
  const meant = await namedIn(store, ref.slice(0, last), ref.slice(last + 1))
  const before = ref.lastIndexOf('@', last - 1)
  if (before > 0) {
    const onDevice = await namedIn(store, ref.slice(0, before), ref.slice(before + 1, last))
    meant.push(
      ...onDevice.filter(
        ({ device }) => device && matches(ref.slice(last + 1), device.id, device.deviceName),
      ),
    )
  }
  return meant
}

async function namedIn(store: Store, accountName: string, domainName: string): Promise<Placed[]> {
  const placed = await Promise.all(
    (await store.accounts.named(accountName)).map((account) => place(store, account)),
  )
  return placed.filter(
    (one) => one !== undefined && nameKey(one.domain.domainName) === nameKey(domainName),
  ) as Placed[]
}

async function place(store: Store, account: Account): Promise<Placed | undefined> {
  const domain = await store.domains.find(account.domainId)
  if (!domain) return undefined
  const device = domain.deviceId === undefined ? undefined : await store.devices.find(domain.deviceId)
  return { account, domain, device }
}

/** The account's full reference. */
export function accountText({ account, domain, device }: Placed): string {
  return `${account.accountName}@${domain.domainName}${device ? `@${device.deviceName}` : ''}`
}

/** @throws ApiError `ambiguous_reference` with the candidates */
export function ambiguous(candidates: readonly Placed[]): ApiError {
  return new ApiError(
    'ambiguous_reference',
    candidates.map((one) => ({ message: accountText(one) })).slice(0, 100),
  )
}

/** `ACCOUNT@DOMAIN:DEVICE:SERVICE` → the account through the service. @throws ApiError */
export async function sessionAccount(
  store: Store,
  field: string,
  ref: string,
): Promise<{ accountId: Id; serviceId: Id }> {
  const unknown = (message: string) => fieldError('unknown_reference', field, message)
  const [who = '', deviceName = '', serviceName = '', ...rest] = ref.split(':')
  const at = who.lastIndexOf('@')
  if (at <= 0 || deviceName === '' || serviceName === '' || rest.length > 0) {
    throw fieldError('invalid_field', field, `expected ACCOUNT@DOMAIN:DEVICE:SERVICE, got "${ref}"`)
  }
  const device = await store.devices.find(deviceName)
  if (!device) throw unknown(`the device "${deviceName}" does not exist`)
  const service = await serviceOf(store, device, serviceName)
  if (!service) throw unknown(`the device "${device.deviceName}" has no service "${serviceName}"`)
  const domainName = who.slice(at + 1)
  const domains = [await localDomainOf(store, device, domainName), await store.domains.find(domainName)]
  for (const domain of domains) {
    if (!domain || (domain.deviceId !== undefined && domain.deviceId !== device.id)) continue
    const account = await accountOf(store, domain, who.slice(0, at))
    if (account) return { accountId: account.id, serviceId: service.id }
  }
  throw unknown(`there is no account "${who}" for the device "${device.deviceName}"`)
}

/**
 * Ids → names for one answer: each object is read once, however often the answer mentions it. An object that
 * was removed meanwhile shows its id.
 */
export class Names {
  readonly #store: Store
  readonly #read = new Map<Id, Promise<unknown>>()

  constructor(store: Store) {
    this.#store = store
  }

  async users(ids: readonly Id[]): Promise<string[]> {
    const names = await Promise.all(
      ids.map(async (id) => (await this.#once(id, this.#store.users))?.userName ?? id),
    )
    return names.sort()
  }

  async userGroups(ids: readonly Id[]): Promise<string[]> {
    return (await Promise.all(ids.map((id) => this.userGroup(id)))).sort()
  }

  async userGroup(id: Id): Promise<string> {
    return (await this.#once<UserGroup>(id, this.#store.userGroups))?.groupName ?? id
  }

  async targetGroup(id: Id): Promise<string> {
    return (await this.#once<TargetGroup>(id, this.#store.targetGroups))?.groupName ?? id
  }

  async device(id: Id): Promise<string> {
    return (await this.#once<Device>(id, this.#store.devices))?.deviceName ?? id
  }

  async service(id: Id): Promise<string> {
    return (await this.#once<Service>(id, this.#store.services))?.serviceName ?? id
  }

  domain(id: Id): Promise<Domain | undefined> {
    return this.#once<Domain>(id, this.#store.domains)
  }

  /** `ACCOUNT@DOMAIN:DEVICE:SERVICE` */
  async sessionAccount(target: TargetGroup['sessionAccounts'][number]): Promise<string> {
    const account = await this.#once<Account>(target.accountId, this.#store.accounts)
    const domain = account && (await this.domain(account.domainId))
    const service = await this.#once<Service>(target.serviceId, this.#store.services)
    const device = service ? await this.device(service.deviceId) : target.serviceId
    const who = `${account?.accountName ?? target.accountId}@${domain?.domainName ?? '?'}`
    return `${who}:${device}:${service?.serviceName ?? target.serviceId}`
  }

  /** `ACCOUNT@DOMAIN`, with `@DEVICE` for one of a local domain. */
  async account(id: Id): Promise<string> {
    const account = await this.#once<Account>(id, this.#store.accounts)
    const domain = account && (await this.domain(account.domainId))
    if (!account || !domain) return id
    const device = domain.deviceId === undefined ? '' : `@${await this.device(domain.deviceId)}`
    return `${account.accountName}@${domain.domainName}${device}`
  }

  #once<T>(id: Id, repository: Findable<T>): Promise<T | undefined> {
    const known = this.#read.get(id)
    if (known) return known as Promise<T | undefined>
    const read = repository.find(id)
    this.#read.set(id, read)
    return read
  }
}
