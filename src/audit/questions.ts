/** Questions to the audit log: filters in words, as the condition of a search, and events as they are shown. */
import type { Condition, Test } from '../search/bind.ts'
import { equalForm, type Kind, likeForm } from '../search/fields.ts'
import { MAX_WILDCARDS } from '../search/grammar.ts'
import type { AuditRow } from '../store/store.ts'
import type { StoredEvent } from './chain.ts'
import { EVENTS, severityOf } from './events/catalogue.ts'
import type { Severity } from './events/fields.ts'
import { sentenceOf, timestampOf } from './sentence.ts'

/** All of them must be met. In the texts `*` is any text. */
export interface EventFilter {
  /** Codes, with commas in between; `session.*` is all that begin so. */
  event?: string
  severity?: Severity
  user?: string
  /** Without a star it matches anywhere in the canonical name. */
  target?: string
  session?: string
  address?: string
  /** Milliseconds since the epoch: from the one, until before the other. */
  from?: number
  before?: number
  /** Anywhere in a value of the event. */
  text?: string
}

/** Returns the codes that the words mean, or the word that means none. */
export function codesMeant(words: string): string[] | { unknown: string } {
  const codes = new Set<string>()
  for (const word of words.split(',')) {
    const beginning = word.endsWith('*') ? word.slice(0, -1) : undefined
    const meant = Object.keys(EVENTS).filter((code) =>
      beginning === undefined ? code === word : code.startsWith(beginning),
    )
    if (meant.length === 0) return { unknown: word }
    for (const code of meant) codes.add(code)
  }
  return [...codes]
}

/** Whether the texts have no more stars than a search may have. */
export function isBounded({ user = '', target = '', address = '', text = '' }: EventFilter): boolean {
  return [user, target, address, text].every((one) => one.split('*').length - 1 <= MAX_WILDCARDS)
}

/** Returns the filter's conditions. Its codes and stars have been checked. */
export function conditionsOf(filter: EventFilter): Condition[] {
  const { event, severity, user, target, session, address, from, before, text } = filter
  const conditions: Condition[] = []
  const test = (field: string, kind: Kind, one: Test) =>
    conditions.push({ type: 'test', field, kind, test: one })
  if (event !== undefined) test('event', 'text', amongCodes(codesMeant(event)))
  if (severity !== undefined) test('severity', 'label', { type: 'equals', value: severity })
  if (user !== undefined) test('user', 'label', whole('label', user))
  if (target !== undefined) test('target', 'label', somewhere('label', target))
  if (session !== undefined) test('session', 'id', { type: 'equals', value: equalForm('id', session) })
  if (address !== undefined) test('client_ip', 'text', whole('text', address))
  if (text !== undefined) test('text', 'text', somewhere('text', text))
  if (from !== undefined) test('time', 'time', { type: 'within', from })
  if (before !== undefined) test('time', 'time', { type: 'within', to: before })
  return conditions
}

/** One code is found by its index. */
function amongCodes(codes: string[] | { unknown: string }): Test {
  const known = Array.isArray(codes) ? codes : []
  return known.length === 1 ? { type: 'equals', value: known[0]! } : { type: 'among', values: known }
}

const partsOf = (kind: Kind, text: string) => text.split('*').map((part) => likeForm(kind, part))

function whole(kind: Kind, text: string): Test {
  if (!text.includes('*')) return { type: 'equals', value: equalForm(kind, text) }
  return { type: 'like', parts: partsOf(kind, text) }
}

function somewhere(kind: Kind, text: string): Test {
  const parts = partsOf(kind, text)
  return { type: 'like', parts: parts.length === 1 ? ['', ...parts, ''] : parts }
}

/** Returns the condition that meets all, or undefined if there are none. */
export function allOf(conditions: readonly Condition[]): Condition | undefined {
  return conditions.length > 1 ? { type: 'and', terms: [...conditions] } : conditions[0]
}

/** Returns the event of a row in the form of the API. */
export function shownEvent({ json }: Pick<AuditRow, 'json'>) {
  const event = JSON.parse(json) as StoredEvent
  return {
    ...event.fields,
    time: timestampOf(event),
    sequence: event.sequence,
    event: event.code,
    severity: severityOf(event),
    message: sentenceOf(event),
  }
}
