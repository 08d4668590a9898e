/** Notifications: chosen events that go to a webhook or by mail. */
import { isMetadataService } from './metadata-services.ts'
import type { Id } from './objects.ts'

export const NOTIFICATION_TYPES = ['WEBHOOK', 'MAIL'] as const
export type NotificationType = (typeof NOTIFICATION_TYPES)[number]
export const MAIL_SECURITIES = ['starttls', 'tls', 'none'] as const

export interface WebhookOptions {
  /** https URL. */
  url: string
  /** PEM; absent: the system's authorities. */
  caCertificates?: string
}

export interface MailOptions {
  host: string
  port: number
  security: (typeof MAIL_SECURITIES)[number]
  /** PEM; absent: the system's authorities. */
  caCertificates?: string
  /** Name for SMTP AUTH; absent: none. */
  userName?: string
  from: string
  to: string[]
}

/** Each is a reader of the whole audit log. */
export const MAX_NOTIFICATIONS = 64

interface Common {
  id: Id
  notificationName: string
  description: string
  isDisabled: boolean
  /** Codes of events, or `auth.*`. Empty: all. */
  events: string[]
  /** The least severe that is sent. */
  severity: 'notice' | 'warning' | 'alert'
  /** Only events of users in one of these. Empty: of any user, and of none. */
  userGroupIds: Id[]
  /** Only events about targets in one of these. Empty: about any target, and about none. */
  targetGroupIds: Id[]
  /** Names of the secrets that are set. */
  secretNames: string[]
  secretRevision: number
}

export type Notification =
  | (Common & { type: 'WEBHOOK'; options: WebhookOptions })
  | (Common & { type: 'MAIL'; options: MailOptions })

/** Names of the sealed secrets of each type. */
export const NOTIFICATION_SECRETS = {
  WEBHOOK: 'signing_secret',
  MAIL: 'password',
} as const satisfies Record<NotificationType, string>

/** RFC 5321 4.5.3.1: 64 octets before the @, 255 behind it; no quoted forms, which carry spaces and more. */
const ADDRESS = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,253}[A-Za-z0-9])?$/

/** Returns why a text is no plain mail address, or undefined if it is one. */
export function addressFlaw(text: string): string | undefined {
  return ADDRESS.test(text) ? undefined : 'expected an address such as soc@example.org, without a name'
}

/** Returns why events cannot be posted to a URL, or undefined if they can. */
export function webhookFlaw(text: string): string | undefined {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return 'expected a URL such as https://soc.example.org/events'
  }
  if (url.protocol !== 'https:') return `expected https, got ${url.protocol.slice(0, -1)}`
  if (url.username !== '' || url.password !== '') return 'expected a URL without a user name and password'
  if (url.hash !== '') return 'expected a URL without a fragment'
  return isMetadataService(url.hostname) ? 'expected a host that is no metadata service' : undefined
}

/** Returns whether a pattern means this code. */
export function meansCode(pattern: string, code: string): boolean {
  return pattern.endsWith('.*') ? code.startsWith(pattern.slice(0, -1)) : pattern === code
}
