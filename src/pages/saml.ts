/** Sign-ins by browser at identity providers of SAML 2.0, and sign-outs of both sides. */
import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { addressOf, record } from '../api/access/events.ts'
import type { Api } from '../api/http/deps.ts'
import { ApiError } from '../api/http/errors.ts'
import { MAX_MESSAGE } from '../identity/methods/saml/message.ts'
import type { Incoming, Outgoing } from '../identity/methods/saml/service-provider.ts'
import type { BrowserClient } from '../identity/saml-sign-ins.ts'
import { cookieOf, setCookie } from './cookies.ts'
import { finishSignIn } from './finish.ts'
import { ownerOf } from './forms.ts'
import { html } from './html.ts'
import { messagesOf } from './languages/languages.ts'
import { sendPage } from './page.ts'
import { HOME, returnPath } from './return-path.ts'
import { sendSignIn, sendSignOut } from './sign-in-views.ts'
import type { PageContext, WaysOfKind } from './ways.ts'

const METHOD = 'saml'
/** Bytes of a form: characters of base64 are escaped, at the worst all of them. */
const MAX_FORM = MAX_MESSAGE * 3 + 4096
const SECRET_BYTES = 32
const SECRET = /^[A-Za-z0-9_-]{43}$/
const hide = { schema: { hide: true } }

/** Each identity provider is a way of its own. */
export const samlWays: WaysOfKind = async ({ deps }) =>
  (await deps.samlSignIns.providers()).map(({ auth: { authenticationName: name } }) => ({
    id: wayOf(name),
    path: `/signin/saml/${encodeURIComponent(name)}`,
    label: ({ signIn }) => signIn.provider(name),
  }))

export function registerSamlPages(app: Api, context: PageContext): void {
  const { samlSignIns } = context.deps

  app.get('/signin/saml/:name', hide, async (request, reply) => {
    const name = nameOf(request)
    const wish = new URLSearchParams(queryOf(request)).get('return') ?? undefined
    const begun = await samlSignIns.begin(name, returnPath(wish), clientOf(request, reply))
    if (begun.result === 'unknown') throw new ApiError('not_found')
    if (begun.result === 'sent') return sendOn(request, reply, begun.message)
    const finish = { return: begun.return, way: wayOf(name) }
    return await finishSignIn(context, request, reply, { ...begun, method: METHOD }, finish)
  })

  app.get('/signin/saml/:name/metadata', hide, async (request, reply) => {
    const metadata = await samlSignIns.metadata(nameOf(request))
    if (metadata === undefined) throw new ApiError('not_found')
    return reply.type('application/samlmetadata+xml; charset=utf-8').send(metadata)
  })

  app.get('/signin/saml/:name/slo', hide, async (request, reply) =>
    signedOut(context, request, reply, { query: queryOf(request) }),
  )

  // Messages are longer than other forms, and may be broken into lines.
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: MAX_FORM },
      async (_request: FastifyRequest, body: string) => new URLSearchParams(body),
    )

    scope.post('/signin/saml/:name/acs', hide, async (request, reply) => {
      const name = nameOf(request)
      const form = formOf(request)
      const posted = {
        response: only(form, 'SAMLResponse') ?? '',
        relayState: only(form, 'RelayState') ?? '',
      }
      const finished = await samlSignIns.finish(name, posted, clientOf(request, reply))
      if (finished.result === 'unknown') throw new ApiError('not_found')
      if (finished.result === 'stale') {
        const alert = messagesOf(request).signIn.stale
        return await sendSignIn(context, request, reply, { return: HOME, alert, status: 403 })
      }
      const finish = { return: finished.return, way: wayOf(name) }
      return await finishSignIn(context, request, reply, { ...finished, method: METHOD }, finish)
    })

    scope.post('/signin/saml/:name/slo', hide, async (request, reply) => {
      const form = formOf(request)
      const asked = only(form, 'SAMLRequest')
      const parameter = asked === undefined ? 'SAMLResponse' : 'SAMLRequest'
      const relayState = only(form, 'RelayState')
      return await signedOut(context, request, reply, {
        parameter,
        message: asked ?? only(form, 'SAMLResponse') ?? '',
        ...(relayState !== undefined && { relayState }),
      })
    })
  })
}

/** Obeys an identity provider that ends sessions, and says so; each user is in the audit log before. */
async function signedOut(
  context: PageContext,
  request: FastifyRequest,
  reply: FastifyReply,
  incoming: Incoming,
): Promise<FastifyReply> {
  const { audit, samlSignIns, store } = context.deps
  const name = nameOf(request)
  const announce = async (userIds: readonly string[]) => {
    for (const id of userIds) {
      const user = (await store.users.find(id))?.userName
      const fields = { ...(user !== undefined && { user }), protocol: 'HTTPS' }
      await record(audit, request, 'auth.withdraw', { ...fields, reason: `a sign-out at ${name}` })
    }
  }
  const ended = await samlSignIns.loggedOut(name, incoming, knownSecretOf(request), announce)
  if (ended.result === 'unknown') throw new ApiError('not_found')
  if (ended.result === 'refused') {
    const fields = { method: METHOD, protocol: 'HTTPS', object_type: 'externalauth', object: name }
    await record(audit, request, 'auth.failure', { ...fields, reason: `a sign-out: ${ended.detail}` })
    throw new ApiError('invalid_field')
  }
  if (ended.result === 'obeyed' && ended.message) return sendOn(request, reply, ended.message)
  const notice = messagesOf(request).signIn.signedOut
  return await sendSignIn(context, request, reply, { return: HOME, notice })
}

/** Sends the browser to the sign-out of the identity provider of a session, if it has one. */
export async function leaveSaml(
  { deps }: PageContext,
  request: FastifyRequest,
  reply: FastifyReply,
  sessionId: string,
): Promise<FastifyReply | undefined> {
  const message = await deps.samlSignIns.signOut(sessionId, secretOf(request, reply))
  if (!message) return undefined
  return message.binding === 'redirect'
    ? sendSignOut(request, reply, new URL(message.url))
    : sendOn(request, reply, message)
}

/** Sends the browser on with a message: by a redirect, or by a form that the person sends. */
function sendOn(request: FastifyRequest, reply: FastifyReply, message: Outgoing): FastifyReply {
  if (message.binding === 'redirect') return reply.redirect(message.url, 303)
  const { signIn } = messagesOf(request)
  const { host, origin } = new URL(message.url)
  const fields = message.fields.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
  const body = html`<div class="sheet">
<h1>${signIn.provider(host)}</h1>
<form method="post" action="${message.url}">${fields}<button autofocus>${signIn.goOn}</button></form>
</div>`
  return sendPage(request, reply, { title: signIn.title, body, formsTo: [origin] })
}

/** Returns the secret of the browser, which gets one if it has none: it comes back with a form of the identity provider. */
function secretOf(request: FastifyRequest, reply: FastifyReply): string {
  const known = knownSecretOf(request)
  if (known !== undefined) return known
  const value = randomBytes(SECRET_BYTES).toString('base64url')
  setCookie(request, reply, 'provider', { value, isKept: false, isForeign: true })
  return value
}

function knownSecretOf(request: FastifyRequest): string | undefined {
  const secret = cookieOf(request, 'provider')
  return secret !== undefined && SECRET.test(secret) ? secret : undefined
}

const wayOf = (name: string): string => `saml/${name}`

const nameOf = ({ params }: FastifyRequest): string => (params as { name: string }).name

const clientOf = (request: FastifyRequest, reply: FastifyReply): BrowserClient => ({
  source: addressOf(request),
  owner: ownerOf(request, reply),
  browser: secretOf(request, reply),
})

/** Returns the query as it came: signatures cover it in that form. */
const queryOf = ({ originalUrl: url }: FastifyRequest): string =>
  url.includes('?') ? url.slice(url.indexOf('?') + 1) : ''

const formOf = ({ body }: FastifyRequest): URLSearchParams =>
  body instanceof URLSearchParams ? body : new URLSearchParams()

/** @throws ApiError `malformed_body` for a field that stands twice */
function only(form: URLSearchParams, name: string): string | undefined {
  const values = form.getAll(name)
  if (values.length > 1) throw new ApiError('malformed_body')
  return values[0]
}
