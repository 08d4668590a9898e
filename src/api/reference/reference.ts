/** The reference that the broker serves: `/version`, the OpenAPI document, and a page made from it. */
import { createHash } from 'node:crypto'
import swagger from '@fastify/swagger'
import { Type } from 'typebox'
import { sendText } from '../access/answers.ts'
import type { Api, ApiDeps } from '../http/deps.ts'
import { errorResponses } from '../http/failures.ts'
import { NEWEST_VERSION, OLDEST_VERSION } from '../http/version.ts'
import { exact, titled } from '../schema/fields.ts'
import { openApiDocument } from './document.ts'
import { referencePage, STYLE } from './page.ts'

/** Collects the routes that are registered later. */
export async function registerOpenApi(app: Api, { version }: ApiDeps): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Sallyport',
        version: NEWEST_VERSION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
        description: `REST API of sallyport ${version}. Versions ${OLDEST_VERSION} to ${NEWEST_VERSION} are served alike.`,
      },
      servers: [{ url: `/api/v${NEWEST_VERSION}` }],
      components: {
        securitySchemes: {
          cookie: {
            type: 'apiKey',
            in: 'cookie',
            name: 'sallyport_session',
            description: 'set by POST /session',
          },
          key: { type: 'apiKey', in: 'header', name: 'X-Auth-Key', description: 'made by POST /apikeys' },
          bearer: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'JWT',
            description: 'access token of an issuer of an authentication domain of type OIDC',
          },
          // Not secret, but sent with the key in every request, so that a client sets both in one place.
          user: {
            type: 'apiKey',
            in: 'header',
            name: 'X-Auth-User',
            description:
              'beside X-Auth-Key: name of the user to act for. The lower right of key and user counts; without it the key cannot do what only a user can',
          },
        },
      },
      security: [{ cookie: [] }, { key: [] }, { key: [], user: [] }, { bearer: [] }],
    },
    transform: ({ schema, url }) => ({ schema, url: url.replace(/^\/api(?=\/)/, '') }),
  })
}

const Version = titled(
  'Version',
  exact({
    version: Type.String({ description: 'of the API' }),
    oldest_version: Type.String({ description: 'oldest version of the API that is served' }),
    product: Type.String(),
    product_version: Type.String(),
  }),
)
const tags = ['Reference']

export function registerReference(app: Api, { version }: ApiDeps): void {
  const answer = {
    version: NEWEST_VERSION,
    oldest_version: OLDEST_VERSION,
    product: 'sallyport',
    product_version: version,
  }
  app.get(
    '/version',
    { schema: { tags, summary: 'Version', response: { 200: Version, ...errorResponses(404) } } },
    async () => answer,
  )

  // Made once each: the routes do not change, and requests need no sign-in.
  let document: Buffer | undefined
  let page: Buffer | undefined
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(openApiDocument(app.swagger())))
    return sendText(reply.type('application/json; charset=utf-8'), document)
  })

  const styleHash = createHash('sha256').update(STYLE).digest('base64')
  app.get('/doc/Usage.html', { schema: { hide: true } }, async (_request, reply) => {
    reply.header(
      'content-security-policy',
      `default-src 'none'; style-src 'sha256-${styleHash}'; frame-ancestors 'none'`,
    )
    page ??= Buffer.from(referencePage(app.swagger()))
    return sendText(reply.type('text/html; charset=utf-8'), page)
  })
}
