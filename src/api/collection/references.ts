/** Converts between names in bodies or paths and objects. Ids are accepted wherever names are. */
import type { EventFields } from '../../audit/events/fields.ts'
import { looksLikeId, nameKey } from '../../model/names.ts'
import type { Account, Device, Domain, Id, Service, TargetGroup, User } from '../../model/objects.ts'
import type { NameQueries, PlacedAccount, Store, WantedAccount } from '../../store/store.ts'
import { ApiError, type ErrorDetail, fieldError } from '../http/errors.ts'
import { Batch } from './batch.ts'

interface Findable<T> {
  find(idOrName: string): Promise<T | undefined>
}

/** Finds users as they are managed here: persons of authentication domains are none of them. */
export function localUsers({ users }: Pick<Store, 'users'>): Findable<User> {
  return {
    async find(ref) {
      const user = await users.find(ref)
      return user?.authDomainId === undefined ? user : undefined
    },
  }
}

/** @throws ApiError `unknown_reference` that names the field */
export async function referred<T>(repository: Findable<T>, field: string, ref: string): Promise<T> {
  const object = await repository.find(ref)
  if (object === undefined) throw fieldError('unknown_reference', field, `"${ref}" does not exist`)
  return object
}

/** Returns the ids of a list of references. @throws ApiError `unknown_reference` that names every bad one */
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

export function accountOf(store: Store, domain: Domain, ref: string): Promise<Account | undefined> {
  return store.accounts.inDomain(domain.id, ref)
}

function matches(ref: string, id: Id, name: string): boolean {
  return looksLikeId(ref) ? id === ref.toUpperCase() : nameKey(ref) === nameKey(name)
}

/** An account with its domain and device. */
export type Placed = PlacedAccount

/** Number of candidates that an answer names. */
const MAX_CANDIDATES = 100

/** Returns all ways to split the text, since an account's name may contain `@`. */
function waysToRead(ref: string): WantedAccount[] {
  if (looksLikeId(ref)) return [{ account: ref }]
  const last = ref.lastIndexOf('@')
  const before = ref.lastIndexOf('@', last - 1)
  const end = ref.slice(last + 1)
  const ways: WantedAccount[] = []
  if (last > 0) ways.push({ account: ref.slice(0, last), domainName: end })
  if (last > 0 && before > 0)
    ways.push({ account: ref.slice(0, before), domainName: ref.slice(before + 1, last), device: end })
  // An id has no domain or device.
  return ways.filter(({ account }) => !looksLikeId(account))
}

/**
 * Returns the accounts that `ACCOUNT@DOMAIN` or `ACCOUNT@DOMAIN@DEVICE` may mean, or the one with that id.
 * `only` filters them.
 */
export async function accountsMeant(
  store: Store,
  ref: string,
  only: Pick<WantedAccount, 'id' | 'retrievableBy'> = {},
): Promise<Placed[]> {
  const found: Placed[] = []
  for (const way of waysToRead(ref))
    found.push(...(await store.accounts.meant({ ...way, ...only }, MAX_CANDIDATES)))
  return found
}

/** Returns the device's accounts that the same references, or `ACCOUNT` alone, may mean. */
export async function accountsMeantOn(store: Store, device: Device, ref: string): Promise<Placed[]> {
  const found = new Map<Id, Placed>()
  for (const way of [...waysToRead(ref), { account: ref }]) {
    if (way.device !== undefined && !matches(way.device, device.id, device.deviceName)) continue
    const meant = await store.accounts.meant({ ...way, device: device.id }, MAX_CANDIDATES)
    for (const one of meant) found.set(one.account.id, one)
  }
  return [...found.values()]
}

/** Returns an account's place as fields of an event. */
export function placeFields(placed: Placed | undefined): EventFields {
  if (!placed) return {}
  const { account, domain, device } = placed
  return {
    account: account.accountName,
    domain: domain.domainName,
    ...(device && { device: device.deviceName }),
  }
}

/** Returns the account's full reference. */
export function accountText({ account, domain, device }: Placed): string {
  return `${account.accountName}@${domain.domainName}${device ? `@${device.deviceName}` : ''}`
}

/** @throws ApiError `ambiguous_reference` with the candidates */
export function ambiguous(candidates: readonly Placed[]): ApiError {
  return new ApiError(
    'ambiguous_reference',
    candidates.map((one) => ({ message: accountText(one) })).slice(0, MAX_CANDIDATES),
  )
}

/** Resolves `ACCOUNT@DOMAIN:DEVICE:SERVICE` to the account through the service. @throws ApiError */
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
  const { device, service } = await deviceService(store, field, deviceName, serviceName)
  const domainName = who.slice(at + 1)
  const domains = [await localDomainOf(store, device, domainName), await store.domains.find(domainName)]
  for (const domain of domains) {
    if (!domain || (domain.deviceId !== undefined && domain.deviceId !== device.id)) continue
    const account = await accountOf(store, domain, who.slice(0, at))
    if (account) return { accountId: account.id, serviceId: service.id }
  }
  throw unknown(`there is no account "${who}" for the device "${device.deviceName}"`)
}

/** Resolves each `DEVICE:SERVICE` to its service. @throws ApiError */
export async function serviceIds(store: Store, field: string, refs: readonly string[]): Promise<Id[]> {
  const ids = new Set<Id>()
  for (const [index, ref] of refs.entries()) {
    const at = `${field}/${index}`
    const [deviceName = '', serviceName = '', ...rest] = ref.split(':')
    if (deviceName === '' || serviceName === '' || rest.length > 0) {
      throw fieldError('invalid_field', at, `expected DEVICE:SERVICE, got "${ref}"`)
    }
    ids.add((await deviceService(store, at, deviceName, serviceName)).service.id)
  }
  return [...ids]
}

async function deviceService(
  store: Store,
  field: string,
  deviceName: string,
  serviceName: string,
): Promise<{ device: Device; service: Service }> {
  const unknown = (message: string) => fieldError('unknown_reference', field, message)
  const device = await store.devices.find(deviceName)
  if (!device) throw unknown(`the device "${deviceName}" does not exist`)
  const service = await serviceOf(store, device, serviceName)
  if (!service) throw unknown(`the device "${device.deviceName}" has no service "${serviceName}"`)
  return { device, service }
}

/** Result of `NameQueries` for an object of that kind. */
type Named<K extends keyof NameQueries> =
  Awaited<ReturnType<NameQueries[K]>> extends Map<Id, infer T> ? T : never

/**
 * Resolves ids to names for one answer: reads many objects at once, and each object only once. A deleted
 * object shows its id.
 */
export class Names {
  readonly #users: Batch<string>
  readonly #lastSignIns: Batch<number>
  readonly #userGroups: Batch<string>
  readonly #timeframes: Batch<string>
  readonly #targetGroups: Batch<string>
  readonly #checkoutPolicies: Batch<string>
  readonly #connectionPolicies: Batch<string>
  readonly #devices: Batch<string>
  readonly #services: Batch<Named<'services'>>
  readonly #domains: Batch<Named<'domains'>>
  readonly #accounts: Batch<Named<'accounts'>>
  /** The answer is a table, which may be imported later: nothing that ends by itself belongs in it. */
  readonly isForTable: boolean

  constructor({ names }: Pick<Store, 'names'>, { isForTable = false } = {}) {
    this.isForTable = isForTable
    this.#users = new Batch(names.users)
    this.#lastSignIns = new Batch(names.lastSignIns)
    this.#userGroups = new Batch(names.userGroups)
    this.#timeframes = new Batch(names.timeframes)
    this.#targetGroups = new Batch(names.targetGroups)
    this.#checkoutPolicies = new Batch(names.checkoutPolicies)
    this.#connectionPolicies = new Batch(names.connectionPolicies)
    this.#devices = new Batch(names.devices)
    this.#services = new Batch(names.services)
    this.#domains = new Batch(names.domains)
    this.#accounts = new Batch(names.accounts)
  }

  async users(ids: readonly Id[]): Promise<string[]> {
    return (await Promise.all(ids.map(async (id) => (await this.#users.find(id)) ?? id))).sort()
  }

  /** Returns when the user has signed in last, in milliseconds since the epoch, or undefined if that is not known. */
  async lastSignIn(id: Id): Promise<number | undefined> {
    return await this.#lastSignIns.find(id)
  }

  async userGroups(ids: readonly Id[]): Promise<string[]> {
    return (await Promise.all(ids.map((id) => this.userGroup(id)))).sort()
  }

  async timeframes(ids: readonly Id[]): Promise<string[]> {
    return (await Promise.all(ids.map(async (id) => (await this.#timeframes.find(id)) ?? id))).sort()
  }

  async userGroup(id: Id): Promise<string> {
    return (await this.#userGroups.find(id)) ?? id
  }

  async targetGroups(ids: readonly Id[]): Promise<string[]> {
    return (await Promise.all(ids.map((id) => this.targetGroup(id)))).sort()
  }

  async targetGroup(id: Id): Promise<string> {
    return (await this.#targetGroups.find(id)) ?? id
  }

  async checkoutPolicy(id: Id): Promise<string> {
    return (await this.#checkoutPolicies.find(id)) ?? id
  }

  async connectionPolicy(id: Id): Promise<string> {
    return (await this.#connectionPolicies.find(id)) ?? id
  }

  async device(id: Id): Promise<string> {
    return (await this.#devices.find(id)) ?? id
  }

  async service(id: Id): Promise<string> {
    return (await this.#services.find(id))?.serviceName ?? id
  }

  /** Includes the device's name for a local domain, null for a global one. */
  async domain(id: Id): Promise<Named<'domains'>> {
    return (await this.#domains.find(id)) ?? { domainName: id, deviceName: null }
  }

  /** `ACCOUNT@DOMAIN:DEVICE:SERVICE` */
  async sessionAccount({ accountId, serviceId }: TargetGroup['sessionAccounts'][number]): Promise<string> {
    const [account, service] = await Promise.all([
      this.#accounts.find(accountId),
      this.#services.find(serviceId),
    ])
    const who = `${account?.accountName ?? accountId}@${account?.domainName ?? '?'}`
    return `${who}:${service?.deviceName ?? '?'}:${service?.serviceName ?? serviceId}`
  }

  /** `DEVICE:SERVICE` */
  async deviceServices(ids: readonly Id[]): Promise<string[]> {
    const services = await Promise.all(ids.map(async (id) => ({ id, found: await this.#services.find(id) })))
    return services.map(({ id, found }) => `${found?.deviceName ?? '?'}:${found?.serviceName ?? id}`).sort()
  }

  /** `ACCOUNT@DOMAIN`, with `@DEVICE` for one of a local domain. */
  async account(id: Id): Promise<string> {
    const account = await this.#accounts.find(id)
    if (!account) return id
    const device = account.deviceName === null ? '' : `@${account.deviceName}`
    return `${account.accountName}@${account.domainName}${device}`
  }
}
