/** Sign-ins by browser at providers of OpenID Connect, and logouts that come from them. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { addressOf, record } from '../api/access/events.ts'
import type { Api } from '../api/http/deps.ts'
import { ApiError } from '../api/http/errors.ts'
import { pathOf } from '../identity/methods/oidc/addresses.ts'
import { IssuerError } from '../identity/methods/oidc/issuer.ts'
import { TokenError } from '../identity/methods/oidc/signed.ts'
import { shown } from '../identity/methods/words.ts'
import { finishSignIn } from './finish.ts'
import { ownerOf } from './forms.ts'
import { messagesOf } from './languages/languages.ts'
import { returnPath } from './return-path.ts'
import { sendSignIn } from './sign-in-views.ts'
import type { PageContext, WaysOfKind } from './ways.ts'

/** Characters of a provider's words that are shown. */
const MAX_WORDS = 300
const METHOD = 'oidc'
const hide = { schema: { hide: true } }

/** Each provider is a way of its own. */
export const oidcWays: WaysOfKind = async ({ deps }) =>
  (await deps.oidcSignIns.providers()).map(({ auth }) => ({
    id: wayOf(auth.authenticationName),
    path: pathOf(auth.authenticationName),
    label: ({ signIn }) => signIn.provider(auth.authenticationName),
  }))

export function registerOidcPages(app: Api, context: PageContext): void {
  const { deps } = context
  const { audit, oidcSignIns } = deps

  app.get('/signin/oidc/:name', hide, async (request, reply) => {
    const name = nameOf(request)
    const path = returnPath(parametersOf(request).get('return'))
    const begun = await oidcSignIns.begin(name, path, clientOf(request, reply))
    if (begun.result === 'unknown') throw new ApiError('not_found')
    if (begun.result === 'redirect') return reply.redirect(begun.url.href, 303)
    const finish = { return: path, way: wayOf(name) }
    return await finishSignIn(context, request, reply, { ...begun, method: METHOD }, finish)
  })

  app.get('/signin/oidc/:name/callback', hide, async (request, reply) => {
    const name = nameOf(request)
    const finished = await oidcSignIns.finish(name, parametersOf(request), clientOf(request, reply))
    const { signIn } = messagesOf(request)
    const view = { return: returnPath(finished.return), status: 403 }
    if (finished.result === 'stale')
      return await sendSignIn(context, request, reply, { ...view, alert: signIn.stale })
    if (finished.result === 'denied') {
      const { error, description } = finished
      const words = shown(`${error} ${description}`.trim(), MAX_WORDS)
      const fields = { method: METHOD, protocol: 'HTTPS' }
      await record(audit, request, 'auth.failure', {
        ...fields,
        reason: `${name} has answered: ${words}`,
      })
      return await sendSignIn(context, request, reply, { ...view, alert: signIn.denied(name, words) })
    }
    const finish = { return: finished.return, way: wayOf(name) }
    return await finishSignIn(context, request, reply, { ...finished, method: METHOD }, finish)
  })

  /** OpenID Connect Back-Channel Logout 1.0 section 2.8: 200, or 400 with the error of RFC 6749. */
  app.post('/signin/oidc/:name/backchannel', hide, async (request, reply) => {
    const token = request.body instanceof Map ? request.body.get('logout_token') : undefined
    return await ended(request, reply, async (announce) =>
      token === undefined ? undefined : oidcSignIns.backChannel(nameOf(request), token, announce),
    )
  })

  /** A page of the provider shows it in a frame, to which browsers give no cookie: `sid` is what counts. */
  app.get('/signin/oidc/:name/frontchannel', hide, async (request, reply) => {
    const parameters = parametersOf(request)
    const named = { iss: parameters.get('iss') ?? '', sid: parameters.get('sid') ?? '' }
    reply.headers({
      'content-security-policy': `default-src 'none'; frame-ancestors ${await originsOf(nameOf(request))}`,
      'referrer-policy': 'no-referrer',
    })
    return await ended(request, reply, (announce) =>
      oidcSignIns.frontChannel(nameOf(request), named, announce),
    )
  })

  /** Answers a provider that ends sessions; each user is in the audit log before. */
  async function ended(
    request: FastifyRequest,
    reply: FastifyReply,
    run: (announce: (userIds: readonly string[]) => Promise<void>) => Promise<boolean | undefined>,
  ): Promise<FastifyReply> {
    const by = nameOf(request)
    const announce = async (userIds: readonly string[]) => {
      for (const id of userIds) {
        const user = (await deps.store.users.find(id))?.userName
        const fields = { ...(user !== undefined && { user }), protocol: 'HTTPS' }
        await record(audit, request, 'auth.withdraw', { ...fields, reason: `a logout at ${by}` })
      }
    }
    const answer = (status: number, error?: string) =>
      reply
        .code(status)
        .type('application/json')
        .send(error === undefined ? {} : { error })
    try {
      const known = await run(announce)
      return known === undefined ? answer(400, 'invalid_request') : answer(200)
    } catch (error) {
      if (error instanceof IssuerError) return answer(503, 'temporarily_unavailable')
      if (!(error instanceof TokenError)) throw error
      const fields = { method: METHOD, protocol: 'HTTPS' }
      await record(audit, request, 'auth.failure', {
        ...fields,
        reason: `a logout of ${by}: ${error.message}`,
      })
      return answer(400, 'invalid_request')
    }
  }

  /** Returns the origin of a provider, whose pages may show the frame. */
  async function originsOf(name: string): Promise<string> {
    const found = (await oidcSignIns.providers()).find(({ auth }) => auth.authenticationName === name)
    return found ? new URL(found.auth.options.issuer).origin : "'none'"
  }
}

const wayOf = (name: string): string => `oidc/${name}`

const nameOf = ({ params }: FastifyRequest): string => (params as { name: string }).name

const clientOf = (request: FastifyRequest, reply: FastifyReply) => ({
  source: addressOf(request),
  owner: ownerOf(request, reply),
})

/** Returns the parameters of the query as they came, those that stand twice included. */
const parametersOf = ({ url }: FastifyRequest): URLSearchParams =>
  new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?')) : '')
