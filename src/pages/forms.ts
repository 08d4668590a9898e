/**
 * Forms of the pages. Each has a token that only a page of this broker, shown to the same browser and sign-in, can have: the
 * HMAC of the browser's secret, which another site neither reads nor sets.
 */
import { Buffer } from 'node:buffer'
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { SESSION_COOKIE } from '../api/access/authenticate.ts'
import { addressOf } from '../api/access/events.ts'
import type { Api } from '../api/http/deps.ts'
import { ApiError } from '../api/http/errors.ts'
import { cookieOf, setCookie } from './cookies.ts'
import { type Html, html } from './html.ts'

export type Form = ReadonlyMap<string, string>

/** Name of the token's field. */
const TOKEN = 'form_token'
/** Bytes of a body. */
export const MAX_FORM = 64 * 1024
const MAX_FIELDS = 32
const SECRET_BYTES = 32
const SECRET = /^[A-Za-z0-9_-]{43}$/

/** Takes forms, and nothing else, on the routes of this scope. */
export function acceptForms(scope: Api): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: MAX_FORM },
    async (_request: FastifyRequest, body: string) => formOf(body),
  )
}

/** @throws ApiError `malformed_body` for too many fields, one that stands twice, and control characters */
function formOf(body: string): Form {
  const fields = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(body)) {
    if (fields.has(name) || MAX_FIELDS <= fields.size || /\p{Cc}/u.test(name + value))
      throw new ApiError('malformed_body')
    fields.set(name, value)
  }
  return fields
}

/** Returns the hidden field that every form has. */
export function tokenField(request: FastifyRequest, reply: FastifyReply): Html {
  return html`<input type="hidden" name="${TOKEN}" value="${tokenOf(request, secretOf(request, reply))}">`
}

/**
 * Returns the fields of a form.
 * @throws ApiError `cross_site` unless a page of this broker has sent it, for the same browser and sign-in
 */
export function formOfRequest(request: FastifyRequest): Form {
  const form: Form = request.body instanceof Map ? request.body : new Map<string, string>()
  const secret = knownSecretOf(request)
  const given = Buffer.from(form.get(TOKEN) ?? '')
  const expected = Buffer.from(secret === undefined ? '' : tokenOf(request, secret))
  const isOurs = expected.length > 0 && given.length === expected.length && timingSafeEqual(given, expected)
  if (!isOurs) throw new ApiError('cross_site')
  return form
}

/** Names the browser at its address: owner of dialogues that no other may go on with. */
export function ownerOf(request: FastifyRequest, reply: FastifyReply): string {
  const browser = createHmac('sha256', secretOf(request, reply)).update('owner').digest('base64url')
  return `HTTPS ${addressOf(request)} ${browser}`
}

/** Returns the secret of the browser, which gets one if it has none. */
function secretOf(request: FastifyRequest, reply: FastifyReply): string {
  const known = knownSecretOf(request)
  if (known !== undefined) return known
  const value = randomBytes(SECRET_BYTES).toString('base64url')
  setCookie(request, reply, 'form', { value, isKept: false })
  return value
}

function knownSecretOf(request: FastifyRequest): string | undefined {
  const secret = cookieOf(request, 'form')
  return secret !== undefined && SECRET.test(secret) ? secret : undefined
}

function tokenOf({ cookies }: FastifyRequest, secret: string): string {
  return createHmac('sha256', secret)
    .update(`form ${cookies[SESSION_COOKIE] ?? ''}`)
    .digest('base64url')
}
