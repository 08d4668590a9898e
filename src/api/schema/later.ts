/**
 * Fields of the API that are known but not enforced yet: they are refused, never stored and ignored
 * (docs/conformance.md). The commit that enforces a field removes it here.
 */
import { ApiError, type ErrorDetail } from '../http/errors.ts'

/** By the event's object type. */
export const LATER_FIELDS: Readonly<Record<string, readonly string[]>> = {
  user: ['is_locked'],
  usergroup: ['timeframes'],
  domain: ['vault_type', 'vault_plugin', 'api_url', 'api_key', 'force_service_account'],
  account: ['auto_change_password'],
  checkoutpolicy: ['change_credentials_at_checkin'],
  authorization: ['timeframes'],
}

/** @throws ApiError `not_available_yet` that names every such field */
export function refuseLaterFields(objectType: string, body: unknown): void {
  if (typeof body !== 'object' || body === null) return
  const details: ErrorDetail[] = (LATER_FIELDS[objectType] ?? [])
    .filter((field) => has(body, field.split('/')))
    .map((field) => ({ field, message: 'this field is not enforced yet' }))
  if (details.length > 0) throw new ApiError('not_available_yet', details)
}

function has(value: unknown, [first, ...rest]: string[]): boolean {
  if (first === undefined) return true
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, first)) return false
  return has((value as Record<string, unknown>)[first], rest)
}
