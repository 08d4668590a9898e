/**
 * One event as a syslog message (RFC 5424):
 *
 *     <PRI>1 TIMESTAMP HOSTNAME sallyport PROCID CODE [sallyport@ENTERPRISE sequence="ROW" key="value" …] sentence
 *
 * Values are clean already (clean.ts): only the escapes of structured data are added here. The sentence
 * begins with the byte order mark only if it is not plain ASCII: then RFC 5424 6.4 requires it, and otherwise
 * it only disturbs receivers that do not remove it.
 */

import type { StoredEvent } from '../chain.ts'
import { severityOf } from '../events/catalogue.ts'
import { cut } from '../events/clean.ts'
import type { EventFields, Severity } from '../events/fields.ts'
import { sentenceOf, timestampOf } from '../sentence.ts'

/**
 * Bytes of a message. RFC 5424 6.1 lets a receiver cut after 2048, and common ones accept 8 KiB by default;
 * the values of a longer message are shortened, so that its structure stays complete.
 */
export const MAX_MESSAGE = 8000
const SHORTEST_VALUE = 64
const APP_NAME = 'sallyport'
const AUTHPRIV = 10
const SEVERITIES = { alert: 1, warning: 4, notice: 5 } as const satisfies Record<Severity, number>
/** RFC 5424 6: HOSTNAME is at most 255 printable ASCII characters. */
const MAX_HOSTNAME = 255

export interface SyslogOrigin {
  hostname: string
  processId: number
  /** Private enterprise number in the structured data's name. */
  enterprise: number
}

/** RFC 5424 6.3.3: only these three characters are escaped, by a backslash. */
function escapeParameter(value: string): string {
  return value.replace(/["\\\]]/g, '\\$&')
}

function shorten(fields: EventFields, limit: number): EventFields {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      typeof value === 'string' ? cut(value, limit) : value,
    ]),
  )
}

function format(event: StoredEvent, origin: SyslogOrigin): Buffer {
  const priority = AUTHPRIV * 8 + SEVERITIES[severityOf(event)]
  const hostname = origin.hostname.replace(/[^\x21-\x7e]/g, '').slice(0, MAX_HOSTNAME) || '-'
  const header = `<${priority}>1 ${timestampOf(event)} ${hostname} ${APP_NAME} ${origin.processId} ${event.code}`
  const parameters = Object.entries(event.fields)
    .map(([key, value]) => ` ${key}="${escapeParameter(String(value))}"`)
    .join('')
  const sentence = sentenceOf(event)
  const mark = /^[\x20-\x7e]*$/.test(sentence) ? '' : '\ufeff'
  return Buffer.from(
    `${header} [${APP_NAME}@${origin.enterprise} sequence="${event.sequence}"${parameters}] ${mark}${sentence}`,
  )
}

/** Returns the message as UTF-8, at most MAX_MESSAGE bytes. */
export function rfc5424(event: StoredEvent, origin: SyslogOrigin): Buffer {
  let message = format(event, origin)
  for (let limit = 1024; message.length > MAX_MESSAGE && limit >= SHORTEST_VALUE; limit /= 2) {
    message = format({ ...event, fields: shorten(event.fields, limit) }, origin)
  }
  return message
}
