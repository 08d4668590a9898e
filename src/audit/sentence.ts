/** An event in the forms that sinks share: what a person reads, and when it was. */

import type { StoredEvent } from './chain.ts'
import { kindOf } from './events/catalogue.ts'

/** The catalogue's sentence of an event whose fields are clean: one line. */
export function sentenceOf({ code, fields }: StoredEvent): string {
  return kindOf(code).sentence(fields)
}

/** RFC 3339 in UTC with milliseconds. */
export function timestampOf({ time }: StoredEvent): string {
  return new Date(time).toISOString()
}
