/** Collections below a device: few objects each, so they are read whole and cut here. */
import type { FastifyRequest } from 'fastify'
import type { Device } from '../model/objects.ts'
import type { Page, Store } from '../store/store.ts'
import { ApiError, fieldError } from './errors.ts'

/** The device in the path. @throws ApiError `not_found` */
export async function deviceOf(store: Store, request: FastifyRequest): Promise<Device> {
  const device = await store.devices.find((request.params as { device: string }).device)
  if (!device) throw new ApiError('not_found')
  return device
}

type SortKeys<T> = Readonly<Record<string, (object: T) => string | number>>

/** A page of objects that are all at hand. @throws ApiError `invalid_field` for an unknown sort key */
export function cutPage<T>(all: readonly T[], page: Page, keys: SortKeys<T>): { items: T[]; total: number } {
  const sorted = [...all]
  for (const word of (page.sort ?? []).toReversed()) {
    const name = word.startsWith('-') ? word.slice(1) : word
    const key = Object.hasOwn(keys, name) ? keys[name] : undefined
    if (!key)
      throw fieldError(
        'invalid_field',
        'sort',
        `cannot sort by "${name}": expected one of ${Object.keys(keys).join(', ')}`,
      )
    const sign = word.startsWith('-') ? -1 : 1
    sorted.sort((a, b) => sign * compare(key(a), key(b)))
  }
  const end = page.limit === -1 ? undefined : page.offset + page.limit
  return { items: sorted.slice(page.offset, end), total: all.length }
}

function compare(a: string | number, b: string | number): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
