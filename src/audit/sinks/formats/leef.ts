/**
 * One event in the Log Event Extended Format, version 2.0:
 *
 *     LEEF:2.0|Sallyport|Sallyport|VERSION|CODE|x09|key=value⇥key=value⇥…
 *
 * LEEF has no escapes. Attributes end with a tab, which no clean value (clean.ts) has; the first `=` of an
 * attribute ends its key. The header has values of our own only, none with a `|`.
 */
import type { StoredEvent } from '../../chain.ts'
import { severityOf } from '../../events/catalogue.ts'
import type { EventField } from '../../events/fields.ts'
import { sentenceOf } from '../../sentence.ts'
import { type Maker, PRODUCT, SEVERITY_NUMBERS } from './cef.ts'
import { leefNameOf } from './names.ts'

export function leef(event: StoredEvent, { hostname, version }: Maker): string {
  const { code, sequence, time, fields } = event
  const pairs: [string, string | number][] = [
    ['devTime', time],
    ['cat', code.split('.')[0]!],
    ['sev', SEVERITY_NUMBERS[severityOf(event)]],
    ['sequence', sequence],
    ['bastion', hostname],
    ...Object.entries(fields).map(([field, value]): [string, string | number] => [
      leefNameOf(field as EventField, value),
      value,
    ]),
    ['message', sentenceOf(event)],
  ]
  const text = pairs.map(([key, value]) => `${key}=${value}`).join('\t')
  return `LEEF:2.0|${PRODUCT}|${PRODUCT}|${version}|${code}|x09|${text}`
}
