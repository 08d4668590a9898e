/**
 * Builds the HTTPS server of the API and the pages: transport limits, sign-in and guard before any body, then the
 * resources.
 */

import { createServer, type Server } from 'node:https'
import cookie from '@fastify/cookie'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { type FastifyReply, type FastifyRequest, fastify, LogController } from 'fastify'
import { isTrusted } from '../balancers/forwarded.ts'
import { jsonText } from '../model/json-text.ts'
import { answerErrorPage } from '../pages/errors.ts'
import { registerPages } from '../pages/pages.ts'
import { LongAnswers } from './access/answers.ts'
import { authenticate, authenticateBrowser } from './access/authenticate.ts'
import { bearerOf } from './access/bearer.ts'
import { holderOf } from './access/caller.ts'
import type { Context } from './access/context.ts'
import { isPage, needOf, pageNeedOf, satisfies } from './access/guard.ts'
import { SignIns } from './access/sign-ins.ts'
import { sourceOf } from './access/source.ts'
import { withOperators } from './collection/search.ts'
import { registerExport } from './csv/export-routes.ts'
import { registerImport } from './csv/import-routes.ts'
import { PROBES, registerHealth } from './health.ts'
import { pathOfUrl, refuseAmbiguous } from './http/ambiguity.ts'
import { Connections } from './http/connections.ts'
import { isLinkFollowed, refuseCrossSite } from './http/cross-site.ts'
import type { Api, ApiDeps, BodyParser } from './http/deps.ts'
import { ApiError } from './http/errors.ts'
import { answerClientError, answerError, errorCodeOf, isGone } from './http/failures.ts'
import { jsonFlaw } from './http/json.ts'
import {
  CONNECTIONS_KEPT,
  HANDSHAKE_TIMEOUT,
  HEADERS_TIMEOUT,
  IDLE_CONNECTION,
  KEEP_ALIVE,
  MAX_ANONYMOUS,
  MAX_ANONYMOUS_PER_ADDRESS,
  MAX_BODY,
  MAX_CONNECTIONS,
  MAX_CONNECTIONS_OF_HOLDER,
  MAX_HEADERS,
  MAX_PATH_PART,
  MAX_REFUSED,
  REQUEST_TIMEOUT,
} from './http/limits.ts'
import { OneByOne } from './http/one-by-one.ts'
import { Turns } from './http/turns.ts'
import { withoutVersion } from './http/version.ts'
import { isWebSocketRequest, WebSockets } from './http/websockets.ts'
import { registerOpenApi, registerReference } from './reference/reference.ts'
import { registerAccounts } from './resources/accounts.ts'
import { registerApiKeys } from './resources/api-keys.ts'
import { registerApprovals } from './resources/approvals.ts'
import { registerAuthDomains } from './resources/auth-domains.ts'
import { registerAuthorizations } from './resources/authorizations.ts'
import { registerCheckout } from './resources/checkout.ts'
import { registerCheckoutPolicies } from './resources/checkout-policies.ts'
import { registerCheckouts } from './resources/checkouts.ts'
import { registerConnectionPolicies } from './resources/connection-policies.ts'
import { registerDevices } from './resources/devices.ts'
import { registerDomains, registerLocalDomains } from './resources/domains.ts'
import { registerEvents } from './resources/events.ts'
import { registerExternalAuths } from './resources/external-auths.ts'
import { registerHostKeys } from './resources/host-keys.ts'
import { registerInvitations } from './resources/invitations.ts'
import { registerLive } from './resources/live.ts'
import { registerMatches } from './resources/matches.ts'
import { registerNotifications } from './resources/notifications.ts'
import { registerOwnSignIns } from './resources/own-sign-ins.ts'
import { registerPasswordChangePolicies } from './resources/password-change-policies.ts'
import { registerPersons } from './resources/persons.ts'
import { registerProfiles } from './resources/profiles.ts'
import { registerRecordings } from './resources/recordings.ts'
import { registerRetention } from './resources/retention.ts'
import { registerScimTokens } from './resources/scim-tokens.ts'
import { registerSecondFactors } from './resources/second-factors.ts'
import { registerSecretChanges } from './resources/secret-changes.ts'
import { registerSecurityKeys } from './resources/security-keys.ts'
import { registerServices } from './resources/services.ts'
import { registerSessions } from './resources/sessions.ts'
import { registerSignIn } from './resources/sign-in.ts'
import { registerSignInTrials } from './resources/sign-in-trials.ts'
import { registerTargetGroups } from './resources/target-groups.ts'
import { registerTargets } from './resources/targets.ts'
import { registerTickets } from './resources/tickets.ts'
import { registerTimeframes } from './resources/timeframes.ts'
import { registerUserCertificates } from './resources/user-certificates.ts'
import { registerUserGroups } from './resources/user-groups.ts'
import { registerUsers } from './resources/users.ts'
import { validatorCompiler, withQuery } from './schema/validation.ts'
import { holderOfToken, scimCaller } from './scim/caller.ts'
import { registerScim, withScimPrefix } from './scim/scim.ts'

/** Only forward secrecy and authenticated encryption; TLS 1.3 has nothing else (RFC 9325 4.2). */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
]

const RESOURCES = [
  registerSignIn,
  registerOwnSignIns,
  registerUserCertificates,
  registerUsers,
  registerSecondFactors,
  registerSecurityKeys,
  registerUserGroups,
  registerDevices,
  registerServices,
  registerLocalDomains,
  registerDomains,
  registerAccounts,
  registerCheckout,
  registerCheckouts,
  registerSecretChanges,
  registerTargetGroups,
  registerAuthorizations,
  registerApiKeys,
  registerProfiles,
  registerCheckoutPolicies,
  registerConnectionPolicies,
  registerPasswordChangePolicies,
  registerTimeframes,
  registerExternalAuths,
  registerAuthDomains,
  registerNotifications,
  registerSignInTrials,
  registerPersons,
  registerScimTokens,
  registerExport,
  registerImport,
  registerHostKeys,
  registerTargets,
  registerTickets,
  registerApprovals,
  registerSessions,
  registerMatches,
  registerEvents,
  registerRecordings,
  registerLive,
  registerInvitations,
  registerRetention,
]

const READING = ['GET', 'HEAD']

/** Returns the API, not yet listening: `await api.listen({ host, port })`. */
export async function createApi(deps: ApiDeps): Promise<Api> {
  const context: Context = {
    deps,
    signIns: new SignIns(deps.store.signIns, deps.randomBytes),
    keyUses: new Map(),
    turns: new Turns(),
    webSockets: new WebSockets(),
    watchers: new Set(),
    answers: new LongAnswers(),
  }
  const requests = new OneByOne((request, response) => app.routing(request, response))
  const app: Api = fastify({
    serverFactory: () => serverOf(deps, requests),
    loggerInstance: deps.logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MAX_BODY,
    exposeHeadRoutes: true,
    forceCloseConnections: true,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: MAX_PATH_PART },
    rewriteUrl: (request) => withOperators(withScimPrefix(withoutVersion(pathOfUrl(request.url ?? '/')))),
    frameworkErrors: answerError,
    clientErrorHandler: answerClientError,
  }).withTypeProvider<TypeBoxTypeProvider>()
  const connections = new Connections(
    {
      total: MAX_CONNECTIONS,
      anonymous: MAX_ANONYMOUS,
      perNetwork: MAX_ANONYMOUS_PER_ADDRESS,
      perHolder: MAX_CONNECTIONS_OF_HOLDER,
      kept: CONNECTIONS_KEPT,
      refusals: MAX_REFUSED,
    },
    requests.isBusy,
    (address) => isTrusted(address, deps.trustedProxies()),
  )
  connections.watch(app.server)
  deps.admit?.(app.server)
  context.webSockets.attach(app, (socket) => requests.leave(socket))

  app.setValidatorCompiler(validatorCompiler)
  // Types settle what a handler may return; a schema compiled into a serializer would be a second source of
  // truth.
  app.setSerializerCompiler(() => jsonText)
  app.setReplySerializer(jsonText)
  const count = (request: FastifyRequest, reply: FastifyReply) => {
    const { method, routeOptions } = request
    deps.metrics?.request(method, routeOptions.url ?? 'none', reply.statusCode, reply.elapsedTime / 1000)
  }
  const endWith = (request: FastifyRequest, reply: FastifyReply) => {
    reply.header('connection', 'close')
    requests.end(request.socket)
  }
  app.setErrorHandler((error, request, reply) => {
    if (!request.caller && connections.refused(request.socket)) endWith(request, reply)
    if (bearerOf(request) !== undefined && errorCodeOf(error) === 'authentication_required')
      reply.header('www-authenticate', 'Bearer error="invalid_token"')
    answerOf(request)(error, request, reply)
    // Fastify does not report an answer that cannot be sent: count it here.
    if (isGone(request)) count(request, reply)
  })
  app.setNotFoundHandler((request, reply) => answerOf(request)(new ApiError('not_found'), request, reply))
  const parse = acceptJsonOnly(app)

  app.decorateRequest('caller', null)
  app.decorateRequest('scim', null)
  app.decorateRequest('source')
  await app.register(cookie)
  await registerOpenApi(app, deps)

  app.addHook('onRequest', async (request, reply) => {
    request.source = sourceOf(request.raw, deps.trustedProxies())
    reply.headers({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'strict-transport-security': 'max-age=31536000',
    })
    refuseAmbiguous(request.raw, request.originalUrl)
    if (request.is404) return
    // Refused before a statement fails: an answer without the database would be audited out of its order.
    const { url = '' } = request.routeOptions
    if (deps.store.reach.away && !PROBES.includes(url)) throw new ApiError('store_unavailable')
    const isOfPage = isPage(url)
    const need = (isOfPage ? pageNeedOf : needOf)(request.method, url)
    // A link from another site may open the reference and the pages, and nothing else.
    const isLink = isOfPage ? isLinkFollowed(request) : need === 'public' && READING.includes(request.method)
    if (need !== 'foreign' && !isLink) refuseCrossSite(request)
    if (need === 'public' || need === 'foreign') return
    if (need === 'scim') {
      request.scim = await scimCaller(context, request)
      if (!connections.signedIn(request.socket, holderOfToken(request.scim))) {
        endWith(request, reply)
        throw new ApiError('too_many_connections')
      }
      return
    }
    request.caller = await (isOfPage ? authenticateBrowser : authenticate)(context, request)
    if (!connections.signedIn(request.socket, holderOf(request.caller))) {
      endWith(request, reply)
      throw new ApiError('too_many_connections')
    }
    if (!satisfies(request.caller.rights, need)) throw new ApiError('forbidden')
  })
  app.addHook('onRoute', (route) => {
    const needs = isPage(route.url) ? pageNeedOf : needOf
    for (const one of [route.method].flat()) needs(one, route.url)
    // Providers of identities add parameters of their own to the addresses of pages.
    if (needs === needOf) route.schema = withQuery(route.schema)
  })
  app.addHook('onResponse', async (request, reply) => count(request, reply))

  await app.register(
    async (scope) => {
      registerReference(scope as Api, deps)
      for (const register of RESOURCES) register(scope as Api, context)
      await registerScim(scope as Api, context, parse)
    },
    { prefix: '/api' },
  )
  await app.register(async (scope) => registerPages(scope as Api, context))
  registerHealth(app, deps)
  await app.ready()
  return app
}

/** Returns the function that answers errors: as a page beside the API for browsers, else as JSON. */
const answerOf = ({ headers, is404, routeOptions, url }: FastifyRequest) =>
  isPage(is404 ? url : (routeOptions.url ?? url)) && (!is404 || headers.accept?.includes('text/html'))
    ? answerErrorPage
    : answerError

/** Makes the server below Fastify. */
function serverOf({ tls }: ApiDeps, requests: OneByOne): Server {
  const server = createServer(
    {
      cert: tls.cert,
      key: tls.key,
      minVersion: 'TLSv1.2',
      ciphers: CIPHERS.join(':'),
      honorCipherOrder: true,
      handshakeTimeout: HANDSHAKE_TIMEOUT,
      headersTimeout: HEADERS_TIMEOUT,
      requestTimeout: REQUEST_TIMEOUT,
      keepAliveTimeout: KEEP_ALIVE,
      connectionsCheckingInterval: 5000,
      maxHeaderSize: MAX_HEADERS,
      // Left to `refuseAmbiguous`, whose error explains it.
      requireHostHeader: false,
      shouldUpgradeCallback: isWebSocketRequest,
    },
    requests.take,
  )
  server.setTimeout(IDLE_CONNECTION)
  return server
}

/** Accepts only JSON bodies, and an empty body even if the client sends a content type. Returns their parser. */
function acceptJsonOnly(app: Api): BodyParser {
  const parse = app.getDefaultJsonParser('error', 'error')
  const parser: BodyParser = (request, body, done) => {
    if (body === '') done(null, undefined)
    else {
      parse(request, body, (error, value) => {
        const flaw = error ? undefined : jsonFlaw(body)
        if (flaw === undefined) done(error, value)
        else done(new ApiError('malformed_body', [{ message: flaw }]))
      })
    }
  }
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, parser)
  return parser
}
