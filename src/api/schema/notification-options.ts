/** Options of notifications by their type, in bodies and views. */
import { type Static, Type } from 'typebox'
import {
  addressFlaw,
  MAIL_SECURITIES,
  type MailOptions,
  type WebhookOptions,
  webhookFlaw,
} from '../../model/notifications.ts'
import { fieldError } from '../http/errors.ts'
import { certificatesFlaw, hostFlaw } from './external-auth-options.ts'
import { check, exact, oneOf, partial } from './fields.ts'

const MAX_PEM = 65_536
const MAX_RECIPIENTS = 32
const PORTS = { starttls: 587, tls: 465, none: 25 } as const satisfies Record<MailOptions['security'], number>

const caCertificates = Type.Union([Type.String({ minLength: 1, maxLength: MAX_PEM }), Type.Null()], {
  description: "PEM of the authorities; null: the system's",
})
const address = (description: string) => Type.String({ minLength: 3, maxLength: 320, description })

export const Webhook = partial(
  exact({
    url: Type.String({
      minLength: 1,
      maxLength: 2048,
      description: 'https URL; redirects are not followed',
      examples: ['https://soc.example.org/events'],
    }),
    ca_certificates: caCertificates,
  }),
)
export const Mail = partial(
  exact({
    host: Type.String({ minLength: 1, maxLength: 253, description: 'name or address of the mail server' }),
    port: Type.Union([Type.Integer({ minimum: 1, maximum: 65535 }), Type.Null()], {
      description: 'null: 587 with starttls, 465 with tls, 25 with none',
    }),
    security: oneOf(MAIL_SECURITIES, 'starttls unless given; none sends in clear text, and no password'),
    ca_certificates: caCertificates,
    user_name: Type.Union([Type.String({ minLength: 1, maxLength: 256 }), Type.Null()], {
      description: 'name at the mail server; null: it asks for none',
    }),
    from: address('address of the sender'),
    to: Type.Array(address('address of a recipient'), {
      maxItems: MAX_RECIPIENTS,
      description: 'recipients',
    }),
  }),
)

/** @throws ApiError `invalid_field` */
export function webhookOptionsOf(body: Static<typeof Webhook>, old?: WebhookOptions): WebhookOptions {
  const url = body.url ?? old?.url
  if (url === undefined) throw fieldError('invalid_field', 'webhook/url', 'expected a URL, got none')
  check('webhook/url', webhookFlaw(url))
  const ca = body.ca_certificates === undefined ? old?.caCertificates : (body.ca_certificates ?? undefined)
  check('webhook/ca_certificates', certificatesFlaw(ca))
  return { url, ...(ca !== undefined && { caCertificates: ca }) }
}

/** @throws ApiError `invalid_field` */
export function mailOptionsOf(body: Static<typeof Mail>, old?: MailOptions): MailOptions {
  const host = body.host ?? old?.host
  const from = body.from ?? old?.from
  const to = body.to ?? old?.to ?? []
  if (host === undefined) throw fieldError('invalid_field', 'mail/host', 'expected a mail server, got none')
  check('mail/host', hostFlaw(host))
  if (from === undefined) throw fieldError('invalid_field', 'mail/from', 'expected an address, got none')
  check('mail/from', addressFlaw(from))
  if (to.length === 0) throw fieldError('invalid_field', 'mail/to', 'expected an address, got none')
  for (const [at, one] of to.entries()) check(`mail/to/${at}`, addressFlaw(one))
  const security = body.security ?? old?.security ?? 'starttls'
  const port = body.port === null ? PORTS[security] : (body.port ?? old?.port ?? PORTS[security])
  const ca = body.ca_certificates === undefined ? old?.caCertificates : (body.ca_certificates ?? undefined)
  check('mail/ca_certificates', certificatesFlaw(ca))
  const userName = body.user_name === undefined ? old?.userName : (body.user_name ?? undefined)
  check(
    'mail/user_name',
    userName !== undefined && security === 'none' ? 'without TLS no password is sent' : undefined,
  )
  return {
    host,
    port,
    security,
    from,
    to,
    ...(ca !== undefined && { caCertificates: ca }),
    ...(userName !== undefined && { userName }),
  }
}

export const webhookShown = ({ url, caCertificates: ca }: WebhookOptions): Static<typeof Webhook> => ({
  url,
  ca_certificates: ca ?? null,
})

export const mailShown = (options: MailOptions): Static<typeof Mail> => ({
  host: options.host,
  port: options.port,
  security: options.security,
  ca_certificates: options.caCertificates ?? null,
  user_name: options.userName ?? null,
  from: options.from,
  to: options.to,
})
