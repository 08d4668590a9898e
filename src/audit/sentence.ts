/** Text and time of an event, in the forms that sinks share. */

import type { StoredEvent } from './chain.ts'
import { kindOf } from './events/catalogue.ts'

/** Returns the catalogue's sentence of an event whose fields are clean: one line. */
export function sentenceOf({ code, fields }: StoredEvent): string {
  return kindOf(code).sentence(fields)
}

/** Returns RFC 3339 in UTC with milliseconds. */
export function timestampOf({ time }: StoredEvent): string {
  return new Date(time).toISOString()
}
