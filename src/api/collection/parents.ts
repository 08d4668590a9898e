/** Collections below a device or a domain. */
import type { AuthDomain } from '../../model/external-auths.ts'
import type { Device, Domain } from '../../model/objects.ts'
import type { Store } from '../../store/store.ts'
import type { ApiRequest } from '../access/caller.ts'
import { ApiError } from '../http/errors.ts'

/** Returns the device in the path. @throws ApiError `not_found` */
export async function deviceOf(store: Store, request: ApiRequest): Promise<Device> {
  const device = await store.devices.find((request.params as { device: string }).device)
  if (!device) throw new ApiError('not_found')
  return device
}

/** Returns the global domain in the path. @throws ApiError `not_found` */
export async function globalDomainOf(store: Store, request: ApiRequest): Promise<Domain> {
  const domain = await store.domains.find((request.params as { domain: string }).domain)
  if (!domain || domain.deviceId !== undefined) throw new ApiError('not_found')
  return domain
}

/** Returns the authentication domain in the path. @throws ApiError `not_found` */
export async function authDomainOf(store: Store, request: ApiRequest): Promise<AuthDomain> {
  const domain = await store.authDomains.find((request.params as { domain: string }).domain)
  if (!domain) throw new ApiError('not_found')
  return domain
}
