/**
 * Mass assignment: fields that only the broker sets, in the body of every route of the document that creates
 * or changes something, at every depth. None is stored, and none is ignored either.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routeOf } from '../../src/api/access/routes.ts'
import { openApiDocument } from '../../src/api/reference/document.ts'
import { BODY_EXAMPLES, bodyExample } from '../../src/api/reference/examples.ts'
import { ADMIN, type Answer, type Harness, startHarness } from './harness.ts'

interface Schema {
  type?: string
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
  $ref?: string
}
interface Operation {
  requestBody?: { content: Record<string, { schema: Schema }> }
}

let h: Harness
let cookie: string
/** Each changing route with a valid request, as far as one is known. */
const asked: {
  route: string
  path: string
  good: Record<string, unknown>
  schema: Schema
  forbidden: string[]
}[] = []

beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  const device = await h.store.devices.create({ deviceName: 'shown', host: '192.0.2.1', description: '' })
  const { paths, components } = openApiDocument(h.api.swagger()) as unknown as {
    paths: Record<string, Record<string, Operation>>
    components: { schemas: Record<string, Schema> }
  }
  const named = (schema: Schema): Schema =>
    schema.$ref ? components.schemas[schema.$ref.replace(/^.*\//, '')]! : schema
  for (const { path, body } of BODY_EXAMPLES) {
    if (path !== '/session') await h.call('POST', path, { cookie, body })
  }
  const service = (await h.store.services.ofDevice((await h.store.devices.find('srv1'))!.id))[0]!
  await h.store.hostKeys.create({
    deviceId: device.id,
    serviceId: service.id,
    keyType: 'ssh-ed25519',
    fingerprint: 'SHA256:x',
    key: 'x',
    firstSeen: h.clock.now,
    state: 'offered',
  })
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const schema = operation.requestBody?.content['application/json']?.schema
      if (!schema) continue
      const route = routeOf(method, path)
      const body = named(schema)
      const collection = bodyExample(`POST ${routeOf('', path).trim().replace('/:ref', '')}`)
      const good = method === 'put' ? {} : { ...(GOOD[route] ?? bodyExample(route)?.body) }
      // Fields that answers have and bodies do not accept.
      const view = components.schemas[viewOf(path)]
      const known = Object.keys(body.properties ?? {})
      const forbidden = [...Object.keys(view?.properties ?? {}), ...BROKERS].filter(
        (one) => !known.includes(one),
      )
      const url = await placeOf(path, collection?.path)
      asked.push({ route, path: url, good, schema: body, forbidden: [...new Set(forbidden)] })
    }
  }
})
afterAll(() => h.close())

/** Fields of rows and nested objects, in both spellings, and names with a meaning in JavaScript. */
const BROKERS = [
  'id',
  'url',
  'is_locked',
  'isLocked',
  'password_hash',
  'passwordHash',
  'secretRevision',
  'secret_revision',
  'is_factory',
  'isFactory',
  'created_at',
  'createdAt',
  'api_key',
  'hash',
  'device_id',
  'deviceId',
  'domain_id',
  'domainId',
  'credential_types',
  'group_ids',
  'groupIds',
  'user_ids',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
]
const GOOD: Readonly<Record<string, object>> = {
  'POST /session': ADMIN,
  'POST /accounts/:ref/checkout': { duration: 60, comment: 'why' },
  'POST /accounts/:ref/change': { wait: 0 },
  'POST /domains/:ref/change': { force: false },
  'POST /accounts/:ref/checkin': { checkout_id: 'x' },
  'POST /accounts/:ref/extend': { checkout_id: 'x' },
  'POST /checkouts/:ref/checkin': { comment: 'enough' },
  'POST /sessions/:ref/kill': { reason: 'enough' },
  'POST /sessions/:ref/suspend': { reason: 'wait' },
  'POST /approvals': { target: 'root@srv1' },
  'POST /approvals/:ref/accept': { comment: 'go on' },
  'POST /approvals/:ref/reject': { comment: 'no' },
  'POST /approvals/:ref/cancel': { comment: 'no' },
  'POST /sessions/:ref/invitations': { mode: 'view', duration: 300 },
  'POST /externalauths/:ref/test': { user_name: 'fritz' },
  'POST /authdomains/:ref/test': { user_name: 'fritz' },
  'POST /users/:ref/totp': { password: 'x' },
  'POST /users/:ref/totp/confirm': { code: '123456' },
  'POST /users/:ref/totp/recoverycodes': { code: '123456' },
  'POST /targets/:ref/ticket': { protocol: 'VNC' },
  'POST /signins/end': { with_sessions: false },
  'POST /session/certificate': {
    public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJ',
  },
  'POST /sessions/:ref/hold': { reason: 'a case' },
  'POST /sessions/:ref/release': { reason: 'the case is closed' },
}
const VIEWS: Readonly<Record<string, string>> = {
  users: 'User',
  usergroups: 'Usergroup',
  devices: 'Device',
  services: 'Service',
  localdomains: 'Localdomain',
  domains: 'Domain',
  accounts: 'Account',
  targetgroups: 'Targetgroup',
  authorizations: 'Authorization',
  apikeys: 'Apikey',
  profiles: 'Profile',
  checkoutpolicies: 'Checkoutpolicy',
  passwordchangepolicies: 'Passwordchangepolicy',
  connectionpolicies: 'Connectionpolicy',
  timeframes: 'Timeframe',
  externalauths: 'Externalauth',
  authdomains: 'Authdomain',
  notifications: 'Notification',
  mappings: 'Authdomainmapping',
  hostkeys: 'HostKey',
  sessions: 'Session',
  approvals: 'Approval',
  session: 'SignedIn',
}
function viewOf(path: string): string {
  const kind = path.split('/').findLast((part) => part !== '' && !part.startsWith('{')) ?? ''
  return VIEWS[kind] ?? ''
}

/** Returns the path of the first existing object, or of the collection. */
async function placeOf(path: string, example: string | undefined): Promise<string> {
  const collection = example ?? path.replace(/\/\{ref\}.*/, '')
  if (!path.includes('{ref}')) return collection
  const { body } = await h.call('GET', `${collection}?limit=-1`, { cookie })
  const own = body.filter((one: { is_factory?: boolean }) => one.is_factory !== true)
  return path.replace(/^.*\{ref\}/, `${collection}/${own.at(-1)?.id ?? 'none'}`)
}

/** Returns all that the store contains, as seen from outside. */
async function everything(): Promise<string> {
  const lists = [...new Set(asked.map(({ path }) => path))].filter(
    (path) => !/session|check(in|out)$/.test(path),
  )
  const answers = await Promise.all(lists.map((path) => h.call('GET', path, { cookie })))
  return answers.map(({ text }) => text).join('\n')
}

/** Returns the places of objects in a body: the body and nested ones, each with a value that fits. */
function within(schema: Schema, build: (inner: object) => object): ((inner: object) => object)[] {
  const deeper = Object.entries(schema.properties ?? {}).flatMap(([name, one]) => {
    if (one.type === 'object') return within(one, (inner) => build({ [name]: inner }))
    const branches = one.items?.anyOf ?? (one.items?.type === 'object' ? [one.items] : [])
    if (branches.length === 0) return []
    const good = name === 'credentials' ? { type: 'password', password: 'p' } : {}
    return [(inner: object) => build({ [name]: [{ ...good, ...inner }] })]
  })
  return [build, ...deeper]
}

const send = (route: string, path: string, raw: string): Promise<Answer> =>
  h.call(route.split(' ')[0]!, path, { cookie: route === 'POST /session' ? '' : cookie, raw })

it('every route with a body is asked, and takes its good body', async () => {
  expect(asked.length).toBeGreaterThan(30)
  expect(asked.filter(({ path }) => path.endsWith('/none')).map(({ route }) => route)).toEqual([])
  expect(
    asked.filter(({ route, good }) => route.startsWith('POST') && Object.keys(good).length === 0),
  ).toEqual([])
  for (const { route, forbidden } of asked) {
    expect(forbidden, route).toEqual(expect.arrayContaining(['id', 'url', 'password_hash', 'constructor']))
  }
  // An invitation exists only while its session runs.
  const changing = asked.filter(
    ({ route, path }) => route.startsWith('PUT') && !path.includes('{') && !route.includes('/hostkeys'),
  )
  for (const { path } of changing) {
    expect((await h.call('PUT', path, { cookie, body: {} })).status, path).toBe(200)
  }
})

describe('a field that only the broker sets', () => {
  it('is refused by name in every body, and nothing is changed', async () => {
    const before = await everything()
    for (const { route, path, good, forbidden } of asked) {
      for (const name of forbidden) {
        const answer = await send(route, path, JSON.stringify({ ...good, [name]: 'x' }))
        expect(answer.status, `${route} ${name}`).toBe(400)
        expect(['unknown_field', 'not_available_yet'], `${route} ${name}`).toContain(answer.body.error)
        expect(answer.body.details).toMatchObject([{ field: name }])
      }
    }
    expect(await everything()).toBe(before)
  }, 300_000)

  it('is refused within the objects of a body too', async () => {
    const before = await everything()
    let places = 0
    for (const { route, path, good, schema } of asked) {
      for (const place of within(schema, (inner) => inner).slice(1)) {
        places++
        for (const name of ['id', 'password_hash', 'constructor']) {
          const answer = await send(route, path, JSON.stringify({ ...good, ...place({ [name]: 'x' }) }))
          expect([answer.status, answer.body.error], `${route} ${name}`).toEqual([400, 'unknown_field'])
          expect(answer.body.details[0].field).toMatch(new RegExp(`/${name}$`))
        }
      }
    }
    expect(places).toBeGreaterThan(10)
    expect(await everything()).toBe(before)
  })

  it('is not brought in by a prototype', async () => {
    const before = await everything()
    for (const { route, path, good, schema } of asked) {
      for (const place of within(schema, (inner) => inner)) {
        for (const spelling of ['__proto__', '\\u005f_proto__']) {
          const text = JSON.stringify({ ...good, ...place({ HERE: { is_factory: true, id: 'x' } }) })
          const answer = await send(route, path, text.replace('HERE', spelling))
          expect([answer.status, answer.body.error], route).toEqual([400, 'malformed_body'])
        }
        const constructed = { ...good, ...place({ constructor: { prototype: { isFactory: true } } }) }
        expect((await send(route, path, JSON.stringify(constructed))).body.error, route).toBe(
          'malformed_body',
        )
      }
    }
    expect({}).not.toHaveProperty('isFactory')
    expect(await everything()).toBe(before)
  }, 300_000)
})
