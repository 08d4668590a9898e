/**
 * One event in the Common Event Format:
 *
 *     CEF:0|Sallyport|Sallyport|VERSION|CODE|NAME|SEVERITY|key=value key=value …
 *
 * Of clean values (clean.ts) only `\` and `|` of the header, and `\` and `=` of the extension, could be read as
 * something else; both have a backslash before them. A key stands behind a space and before an `=`: no value
 * has an `=` without its backslash, so no value can begin a key.
 */
import type { StoredEvent } from '../../chain.ts'
import { kindOf, severityOf } from '../../events/catalogue.ts'
import type { EventField, Severity } from '../../events/fields.ts'
import { sentenceOf } from '../../sentence.ts'
import { cefNameOf } from './names.ts'

/** 0 to 10, in CEF, LEEF and ECS alike. */
export const SEVERITY_NUMBERS = { notice: 3, warning: 6, alert: 9 } as const satisfies Record<
  Severity,
  number
>
export const PRODUCT = 'Sallyport'

/** The maker of a message. */
export interface Maker {
  hostname: string
  /** Version of the product. */
  version: string
}

const header = (value: string): string => value.replace(/[\\|]/g, '\\$&')
const extension = (value: string): string => value.replace(/[\\=]/g, '\\$&')

/** Returns what a code means in a few words: the first clause of its meaning. */
export function titleOf({ code }: Pick<StoredEvent, 'code'>): string {
  return kindOf(code).meaning.split(/[;:]/)[0]!.replaceAll('`', '')
}

export function cef(event: StoredEvent, { hostname, version }: Maker): string {
  const { code, sequence, time, fields } = event
  const own: [string, string | number][] = [
    ['rt', time],
    ['externalId', sequence],
    ['cat', code.split('.')[0]!],
    ['dvchost', hostname],
  ]
  const named = Object.entries(fields).flatMap(([field, value]): [string, string | number][] => {
    const name = cefNameOf(field as EventField, value)
    // A custom address says in its label what it is.
    const label: [string, string][] = /^c6a\d$/.test(name) ? [[`${name}Label`, field]] : []
    return [[name, value], ...label]
  })
  const pairs = [...own, ...named, ['msg', sentenceOf(event)] as const]
  const head = [PRODUCT, PRODUCT, version, code, titleOf(event)].map(header)
  const text = pairs.map(([key, value]) => `${key}=${extension(String(value))}`).join(' ')
  return `CEF:0|${head.join('|')}|${SEVERITY_NUMBERS[severityOf(event)]}|${text}`
}
