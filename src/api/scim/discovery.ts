/** The service's description of itself (RFC 7644 section 4), searches of all resources, and the refusal of bulk operations. */
import type { FastifyRequest } from 'fastify'
import { badRequest, ScimError } from '../../scim/error.ts'
import { objectOf, requireSchema } from '../../scim/resource.ts'
import {
  type Attribute,
  attributesOf,
  GROUP_SCHEMA,
  type ResourceType,
  schemaOf,
  USER_SCHEMA,
} from '../../scim/schema.ts'
import type { Context } from '../access/context.ts'
import type { UntypedApi } from '../http/deps.ts'
import { scimCallerOf } from './caller.ts'
import { send } from './changes.ts'
import { HIDDEN, type Queried } from './routes.ts'
import { listResponse, MAX_PAGE, queryOf, searchGroups, searchUsers } from './search.ts'
import { baseOf } from './views.ts'

const SEARCH_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:SearchRequest'
const CORE = 'urn:ietf:params:scim:schemas:core:2.0'
const TYPES = ['User', 'Group'] as const

export function registerScimDiscovery(app: UntypedApi, context: Context): void {
  const refuseFilter = (request: FastifyRequest) => {
    if ((request.query as Queried)['filter'] !== undefined)
      throw new ScimError(403, undefined, 'this list takes no filter')
  }
  const all = (resources: readonly object[]) =>
    listResponse(queryOf({}), { total: resources.length, resources: [...resources] })

  app.get('/scim/v2/ServiceProviderConfig', { schema: HIDDEN }, async (request, reply) =>
    send(reply, serviceProvider(baseOf(request))),
  )

  app.get('/scim/v2/ResourceTypes', { schema: HIDDEN }, async (request, reply) => {
    refuseFilter(request)
    return send(reply, all(TYPES.map((type) => resourceType(baseOf(request), type))))
  })

  app.get('/scim/v2/ResourceTypes/:ref', { schema: HIDDEN }, async (request, reply) => {
    const { ref } = request.params as { ref: string }
    const type = TYPES.find((one) => one === ref)
    if (!type) throw new ScimError(404, undefined, 'there is no such type of resource')
    return send(reply, resourceType(baseOf(request), type))
  })

  app.get('/scim/v2/Schemas', { schema: HIDDEN }, async (request, reply) => {
    refuseFilter(request)
    return send(reply, all(TYPES.map((type) => schema(baseOf(request), type))))
  })

  app.get('/scim/v2/Schemas/:ref', { schema: HIDDEN }, async (request, reply) => {
    const { ref } = request.params as { ref: string }
    const type = TYPES.find((one) => schemaOf(one) === ref)
    if (!type) throw new ScimError(404, undefined, 'there is no such schema')
    return send(reply, schema(baseOf(request), type))
  })

  app.post('/scim/v2/Bulk', { schema: HIDDEN }, async () => {
    throw new ScimError(501, undefined, 'bulk operations are not supported: send the requests one by one')
  })

  const bodyQuery = (request: FastifyRequest) => {
    const body = objectOf(request.body, 'the body')
    requireSchema(body, SEARCH_SCHEMA)
    return queryOf(body)
  }

  app.post('/scim/v2/Users/.search', { schema: HIDDEN }, async (request, reply) => {
    const query = bodyQuery(request)
    const { domain } = scimCallerOf(request)
    return send(reply, listResponse(query, await searchUsers(context, domain.id, baseOf(request), query)))
  })

  app.post('/scim/v2/Groups/.search', { schema: HIDDEN }, async (request, reply) => {
    const query = bodyQuery(request)
    const { domain } = scimCallerOf(request)
    return send(reply, listResponse(query, await searchGroups(context, domain.id, baseOf(request), query)))
  })

  app.post('/scim/v2/.search', { schema: HIDDEN }, async (request, reply) => {
    const query = bodyQuery(request)
    const { filter } = query
    if (!filter) throw badRequest('invalidFilter', 'a search of all resources needs a filter')
    const { domain } = scimCallerOf(request)
    const users = await searchUsers(context, domain.id, baseOf(request), query, true)
    // Users come first: the page goes on among the groups.
    const rest = {
      ...query,
      startIndex: Math.max(1, query.startIndex - users.total),
      count: query.count - users.resources.length,
    }
    const groups = await searchGroups(context, domain.id, baseOf(request), rest, true)
    const resources = [...users.resources, ...groups.resources]
    return send(reply, listResponse(query, { total: users.total + groups.total, resources }))
  })
}

function serviceProvider(base: string): object {
  return {
    schemas: [`${CORE}:ServiceProviderConfig`],
    patch: { supported: true },
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults: MAX_PAGE },
    changePassword: { supported: false },
    sort: { supported: false },
    etag: { supported: true },
    authenticationSchemes: [
      {
        type: 'oauthbearertoken',
        name: 'Bearer token',
        description: 'Authorization: Bearer, with a token that an administrator has made for the domain',
        specUri: 'https://www.rfc-editor.org/info/rfc6750',
        primary: true,
      },
    ],
    meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
  }
}

function resourceType(base: string, type: ResourceType): object {
  return {
    schemas: [`${CORE}:ResourceType`],
    id: type,
    name: type,
    endpoint: `/${type}s`,
    description: type === 'User' ? 'persons of the domain' : 'external groups of the domain',
    schema: schemaOf(type),
    schemaExtensions: [],
    meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${type}` },
  }
}

const COMMON = ['schemas', 'id', 'externalId', 'meta']

function schema(base: string, type: ResourceType): object {
  const id = type === 'User' ? USER_SCHEMA : GROUP_SCHEMA
  return {
    schemas: [`${CORE}:Schema`],
    id,
    name: type,
    description: type === 'User' ? 'a person of the domain' : 'an external group of the domain',
    attributes: attributesOf(type)
      .filter(({ name }) => !COMMON.includes(name))
      .map(attributeShown),
    meta: { resourceType: 'Schema', location: `${base}/Schemas/${id}` },
  }
}

function attributeShown({ subAttributes, referenceTypes, ...one }: Attribute): object {
  return {
    name: one.name,
    type: one.type,
    multiValued: one.multiValued ?? false,
    description: one.description,
    required: one.required ?? false,
    ...(one.type === 'string' || one.type === 'reference' ? { caseExact: one.caseExact ?? false } : {}),
    mutability: one.mutability ?? 'readWrite',
    returned: one.returned ?? 'default',
    uniqueness: one.uniqueness ?? 'none',
    ...(referenceTypes && { referenceTypes }),
    ...(subAttributes && { subAttributes: subAttributes.map(attributeShown) }),
  }
}
