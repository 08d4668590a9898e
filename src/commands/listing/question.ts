/** The options of listings, and the expression of the API's `q` that they mean. */
import type { ParseArgsOptionsConfig } from 'node:util'
import { type Invocation, textOption, UsageError } from '../command.ts'
import { REMOTE_OPTIONS } from '../remote.ts'
import { timesBetween } from './times.ts'

const FILTERS = {
  as: { type: 'string' },
  target: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  text: { type: 'string' },
  limit: { type: 'string' },
} as const satisfies ParseArgsOptionsConfig

/** Asks for what a user did by `--user`, and in the name of a user by `--as`. */
export const LISTING_OPTIONS = {
  ...REMOTE_OPTIONS,
  ...FILTERS,
  json: { type: 'boolean' },
} as const satisfies ParseArgsOptionsConfig

const STANDARD_LIMIT = 100
const MAX_LIMIT = 1_000_000

/** Returns a value in the quotes of the grammar; a `*` stays a wildcard. */
export const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`

/** Compares the whole of a field; `*` is any text. */
const is = (field: string, text: string) => `${field}${text.includes('*') ? '~' : '='}${quoted(text)}`
const any = (terms: readonly string[]) => (terms.length > 1 ? `(${terms.join(' || ')})` : (terms[0] ?? ''))

/**
 * Returns the condition for a target: `ACCOUNT@DOMAIN:DEVICE:SERVICE` from any of its parts on, `ACCOUNT@DEVICE`,
 * `DEVICE:SERVICE`, or one word that is in any of them. @throws UsageError
 */
function targetIs(text: string): string {
  const [, account, place = ''] = /^(?:(.*)@)?([^@]*)$/.exec(text) ?? []
  const parts = place.split(':')
  if (place === '' || parts.length > 3 || parts.includes('') || account === '')
    throw new UsageError(
      `--target: expected ACCOUNT@DOMAIN:DEVICE:SERVICE or parts of it, got ${JSON.stringify(text)}`,
    )
  const [first = '', second = '', third = ''] = parts
  if (account === undefined) {
    if (parts.length === 1)
      return any(
        ['account', 'domain', 'device', 'service', 'target_host'].map((field) => `${field}~${quoted(first)}`),
      )
    const named = { 2: [is('device', first), is('service', second)] }[parts.length]
    if (!named)
      throw new UsageError(
        '--target: expected the account before DOMAIN:DEVICE:SERVICE, as root@local:srv1:ssh',
      )
    return named.join(' && ')
  }
  const where =
    parts.length === 1
      ? [any([is('domain', first), is('device', first)])]
      : [is('domain', first), is('device', second), ...(parts.length === 3 ? [is('service', third)] : [])]
  return [is('account', account), ...where].join(' && ')
}

/** Returns the conditions of the options `--user`, `--target`, `--from` and `--to`. @throws UsageError */
export function conditionsOf(invocation: Invocation, time: string, now = Date.now()): string[] {
  const [user, target, begin, end] = ['user', 'target', 'from', 'to'].map((name) =>
    textOption(invocation, name),
  )
  const { from, before } = timesBetween({ from: begin, to: end }, now)
  const at = (ms: number) => quoted(new Date(ms).toISOString())
  return [
    ...(user === undefined ? [] : [is('user', user)]),
    ...(target === undefined ? [] : [targetIs(target)]),
    ...(from === undefined ? [] : [`${time}>=${at(from)}`]),
    ...(before === undefined ? [] : [`${time}<${at(before)}`]),
  ]
}

/** Refuses options of listings for other actions, which would ignore them. @throws UsageError */
export function refuseListingOptions(
  { options }: Invocation,
  action: string,
  names = Object.keys(FILTERS),
): void {
  const given = names.find((name) => options[name] !== undefined)
  if (given !== undefined) throw new UsageError(`--${given} goes with list, not with ${action}`)
}

/** @throws UsageError */
export function limitOption(invocation: Invocation): number {
  const text = textOption(invocation, 'limit') ?? String(STANDARD_LIMIT)
  const limit = /^\d{1,7}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > MAX_LIMIT)
    throw new UsageError(`--limit: expected 1 to ${MAX_LIMIT}, got ${JSON.stringify(text)}`)
  return limit
}

/** Returns the invocation in which `--user` is the one who asks. */
export function asker(invocation: Invocation): Invocation {
  return { ...invocation, options: { ...invocation.options, user: invocation.options['as'] } }
}

/** Whether a broker's API is asked, and not the data on this machine. */
export function isRemote(invocation: Invocation, environment = process.env): boolean {
  return (textOption(invocation, 'url') ?? environment['SALLYPORT_URL']) !== undefined
}
