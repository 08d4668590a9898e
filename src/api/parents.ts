/** Collections below a device. */
import type { Device } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { ApiRequest } from './caller.ts'
import { ApiError } from './errors.ts'

/** The device in the path. @throws ApiError `not_found` */
export async function deviceOf(store: Store, request: ApiRequest): Promise<Device> {
  const device = await store.devices.find((request.params as { device: string }).device)
  if (!device) throw new ApiError('not_found')
  return device
}
