/** Phrases for the sentences of events. */
import type { EventFields } from './fields.ts'

export const who = (f: EventFields) => `${f.user ?? 'somebody'}${f.client_ip ? ` from ${f.client_ip}` : ''}`
export const because = (f: EventFields) => (f.reason ? `: ${f.reason}` : '')
export const account = (f: EventFields) => `${f.account ?? '?'}@${f.domain ?? '?'}`
export const thing = (f: EventFields) => `${f.object_type ?? 'object'} ${f.object ?? '?'}`
export const seconds = (ms: string | number) => `${(Number(ms) / 1000).toFixed(1)} s`
export const session = (f: EventFields) => `session ${f.session ?? '?'}`

/** Returns the target's canonical name as far as the fields contain it. */
export function targetOf(f: EventFields): string {
  if (!f.device) return 'a target'
  // No stored account.
  if (f.account && !f.domain) return `${f.account}@${f.device}:${f.service ?? '?'}`
  return `${account(f)}:${f.device}:${f.service ?? '?'}`
}

/** Describes the completed action, or the failed one. */
export function deed(f: EventFields, done: string, verb: string, what: string): string {
  return f.result === 'failure'
    ? `${who(f)} could not ${verb} ${what}${because(f)}`
    : `${who(f)} ${done} ${what}`
}

/** Describes refusals that were folded into one event. */
export const times = (f: EventFields) =>
  f.count === undefined ? '' : ` (${f.count} times since ${f.first ?? '?'})`

/** Returns the reason of an action that did not fail: `deed` adds that of a failed one. */
export const heldBecause = (f: EventFields) => (f.result === 'failure' ? '' : because(f))

/** Describes a channel's right, and the destination of a forwarded one. */
export function channel(f: EventFields): string {
  return `${f.subprotocol ?? 'a channel'}${f.destination === undefined ? '' : ` (${f.destination})`}`
}

/** `up` is toward the target. */
export function transfer(f: EventFields): string {
  const verb = f.direction === 'up' ? 'sent' : 'fetched'
  const size = f.size === undefined ? '' : ` (${f.size} bytes)`
  return f.result === 'failure'
    ? `${who(f)} could not transfer ${f.path ?? 'a file'} on ${targetOf(f)}${because(f)}`
    : `${who(f)} ${verb} ${f.path ?? 'a file'}${size} ${f.direction === 'up' ? 'to' : 'from'} ${targetOf(f)}`
}

export function command(f: EventFields): string {
  const verb = f.result === 'denied' ? 'was refused' : 'ran'
  const rule = f.rule === undefined ? '' : ` (rule ${f.rule})`
  return `${who(f)} ${verb} a command on ${targetOf(f)}${rule}${f.object === undefined ? because(f) : `: ${f.object}`}`
}

export function copied(f: EventFields): string {
  const size = f.size === undefined ? '' : ` (${f.size} bytes)`
  const format = f.format === undefined ? '' : ` ${f.format}`
  return `${who(f)} copied${format}${size} ${f.direction === 'up' ? 'to' : 'from'} ${targetOf(f)}${f.reason === undefined ? '' : `, ${f.reason}`}`
}
