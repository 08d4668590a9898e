/**
 * One event as a syslog message (RFC 5424):
 *
 *     <PRI>1 TIMESTAMP HOSTNAME sallyport PROCID CODE [sallyport@ENTERPRISE sequence="ROW" key="value" …] sentence
 *
 * Values are clean already (clean.ts): only the escapes of structured data are added here. The sentence
 * begins with the byte order mark only if it is not plain ASCII: then RFC 5424 6.4 requires it, and otherwise
 * it only disturbs receivers that do not remove it.
 *
 * The other formats stand in the place of the sentence. They have no structured data, and no mark: receivers
 * find them by their first characters.
 */

import type { SyslogFormat } from '../../../config/config.ts'
import type { StoredEvent } from '../../chain.ts'
import { severityOf } from '../../events/catalogue.ts'
import { cut } from '../../events/clean.ts'
import type { EventFields, Severity } from '../../events/fields.ts'
import { sentenceOf, timestampOf } from '../../sentence.ts'
import { cef, type Maker } from './cef.ts'
import { ecs } from './ecs.ts'
import { leef } from './leef.ts'

/**
 * Bytes of a message in any format. RFC 5424 6.1 lets a receiver cut after 2048, and common ones accept 8 KiB
 * by default. A message is never split: the values of a longer one are shortened, all to the same length, so
 * that its structure stays complete.
 */
export const MAX_MESSAGE = 8000
const LONGEST_VALUE = 1024
const SHORTEST_VALUE = 32
const APP_NAME = 'sallyport'
const AUTHPRIV = 10
const SEVERITIES = { alert: 1, warning: 4, notice: 5 } as const satisfies Record<Severity, number>
/** RFC 5424 6: HOSTNAME is at most 255 printable ASCII characters. */
const MAX_HOSTNAME = 255

export interface SyslogOrigin extends Maker {
  processId: number
  /** Private enterprise number in the structured data's name. */
  enterprise: number
}

const BEYOND_ASCII = /[^\x20-\x7e]/
const ESCAPED = /["\\\]]/

/** RFC 5424 6.3.3: only these three characters are escaped, by a backslash. */
function escapeParameter(value: string): string {
  return ESCAPED.test(value) ? value.replace(/["\\\]]/g, '\\$&') : value
}

function shorten(fields: EventFields, limit: number): EventFields {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      typeof value === 'string' ? cut(value, limit) : value,
    ]),
  )
}

/** Returns what stands behind the header, without its first space. */
type Body = (event: StoredEvent, origin: SyslogOrigin) => string

const BODIES: Readonly<Record<SyslogFormat, Body>> = {
  rfc5424: structured,
  cef: (event, origin) => `- ${cef(event, origin)}`,
  leef: (event, origin) => `- ${leef(event, origin)}`,
  ecs: (event, origin) => `- ${ecs(event, origin)}`,
}

function structured(event: StoredEvent, { enterprise }: SyslogOrigin): string {
  let parameters = ''
  for (const [key, value] of Object.entries(event.fields)) {
    parameters += ` ${key}="${typeof value === 'string' ? escapeParameter(value) : value}"`
  }
  const sentence = sentenceOf(event)
  const mark = BEYOND_ASCII.test(sentence) ? '\ufeff' : ''
  return `[${APP_NAME}@${enterprise} sequence="${event.sequence}"${parameters}] ${mark}${sentence}`
}

function compose(event: StoredEvent, origin: SyslogOrigin, format: SyslogFormat): Buffer {
  const priority = AUTHPRIV * 8 + SEVERITIES[severityOf(event)]
  const hostname = origin.hostname.replace(/[^\x21-\x7e]/g, '').slice(0, MAX_HOSTNAME) || '-'
  const header = `<${priority}>1 ${timestampOf(event)} ${hostname} ${APP_NAME} ${origin.processId} ${event.code}`
  return Buffer.from(`${header} ${BODIES[format](event, { ...origin, hostname })}`)
}

/** Returns the message as UTF-8, at most MAX_MESSAGE bytes. */
export function syslogMessage(
  event: StoredEvent,
  origin: SyslogOrigin,
  format: SyslogFormat = 'rfc5424',
): Buffer {
  let message = compose(event, origin, format)
  for (let limit = LONGEST_VALUE; message.length > MAX_MESSAGE && limit >= SHORTEST_VALUE; limit /= 2) {
    message = compose({ ...event, fields: shorten(event.fields, limit) }, origin, format)
  }
  return message
}
