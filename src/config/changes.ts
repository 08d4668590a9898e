/** The difference of two configurations: the names of keys, never their values. */
import { Secret } from '../model/secret.ts'
import type { Config } from './config.ts'

/** Names that are listed; the rest is a number. */
const MAX_NAMES = 40
/**
 * The keys, and those below them, that a reload applies (broker/broker.ts), without the names of listeners. `secret_files`
 * follows from others.
 */
const RELOADED = [
  ...[
    'ssh',
    'dns',
    'ticket_lifetime',
    'proxy_protocol',
    'trusted_proxies',
    'audit',
    'syslog',
    'snmp',
    'traces',
  ],
  ...['recordings.keep_days', 'recordings.max_size', 'recordings.hold_release', 'secret_files'],
  ...['allow', 'allow_clear', 'security_types', 'nla', 'certificate', 'key'].map((key) => `listen.*.${key}`),
]

/** Returns `syslog[0].port, recordings.keep_days`, or an empty text if nothing differs. */
export function configChanges(before: Config, after: Config): string {
  return listed([...difference('', before, after)])
}

/** Returns the keys of `configChanges` that a reload leaves as they were. */
export function keysForRestart(before: Config, after: Config): string {
  return listed([...difference('', before, after)].filter((name) => !isReloaded(name)))
}

function isReloaded(name: string): boolean {
  const general = name.replace(/^listen\.[a-z]+\./, 'listen.*.')
  return RELOADED.some(
    (key) => general === key || [`${key}.`, `${key}[`].some((begin) => general.startsWith(begin)),
  )
}

function listed(names: readonly string[]): string {
  const more = names.length - MAX_NAMES
  return names.slice(0, MAX_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function* difference(path: string, before: unknown, after: unknown): Generator<string> {
  if (before instanceof Secret && after instanceof Secret) {
    if (!before.equals(after)) yield path
  } else if (isPlain(before) && isPlain(after) && Array.isArray(before) === Array.isArray(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    for (const key of keys) yield* difference(nameOf(path, key, before), before[key], after[key])
  } else if (before !== after) yield path
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !(value instanceof Secret)
}

/** Returns the key as written in the file. */
function nameOf(path: string, key: string, inside: object): string {
  if (Array.isArray(inside)) return `${path}[${key}]`
  const name = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return path === '' ? name : `${path}.${name}`
}
