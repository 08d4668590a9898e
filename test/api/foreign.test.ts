/**
 * Ids of existing objects of other users, in every route of the document that has one, for every role: a
 * caller without the right learns nothing, not even that they exist (CVE-2023-42442, CVE-2024-29024).
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROUTES, routeOf } from '../../src/api/access/routes.ts'
import { openApiDocument } from '../../src/api/reference/document.ts'
import { PROFILES, type ProfileName } from '../../src/model/objects.ts'
import { FACTORY_PROFILES, reaches } from '../../src/model/profiles.ts'
import { searchEstate } from './estate.ts'
import { type Answer, type CallOptions, type Harness, startHarness } from './harness.ts'

const NOBODYS = '01K9T5RZ8Q4W6X2C3V1B0N7M5Z'

let h: Harness
/** Sign-in of each role: by cookie, and by a key with all rights in a user's name. */
const roles = new Map<string, { profile: ProfileName; as: CallOptions }>()
/** Path of a collection with its parents' ids → the id of an object in it. */
const existing = new Map<string, string>()
let checkout: { account: string; id: string }

beforeAll(async () => {
  h = await startHarness()
  const cookie = await h.signIn()
  await searchEstate(h, cookie)
  const must = async (path: string, body: object): Promise<Answer> => {
    const answer = await h.call('POST', path, { cookie, body })
    expect(answer.status, answer.text).toBe(201)
    return answer
  }
  await h.addUser('owner', 'user')
  await must('/usergroups', { group_name: 'owners', users: ['owner'] })
  const rights = { authorize_password_retrieval: true }
  await must('/authorizations', { user_group: 'owners', target_group: 'vault', ...rights })
  const account = (await h.call('GET', '/accounts/root@local@srv1', { cookie })).body.id
  const out = await h.call('POST', `/accounts/${account}/checkout`, { cookie: await h.signIn('owner') })
  checkout = { account, id: out.body.checkout_id }

  const key = (await must('/apikeys', { key_name: 'all', profile: 'product_administrator' })).body.api_key
  for (const profile of PROFILES) {
    await h.addUser(`u-${profile}`, profile)
    roles.set(profile, { profile, as: { cookie: await h.signIn(`u-${profile}`) } })
    const headers = { 'x-auth-key': key, 'x-auth-user': `u-${profile}` }
    roles.set(`a key for ${profile}`, { profile, as: { headers } })
  }
  const device = (await h.call('GET', '/devices/srv1', { cookie })).body.id
  const local = (await h.call('GET', '/devices/srv1/localdomains/local', { cookie })).body.id
  const global = (await h.call('GET', '/domains/corp', { cookie })).body.id
  const authDomain = (await h.call('GET', '/authdomains/corp', { cookie })).body.id
  for (const { path } of routes()) {
    const collection = /^(.*?)\/\{ref\}/.exec(path)?.[1] ?? ''
    const ofDomain = collection.startsWith('/domains') ? global : local
    const domain = collection.startsWith('/authdomains') ? authDomain : ofDomain
    const parent = collection.replace('{device}', device).replace('{domain}', domain)
    const { body } = await h.call('GET', parent, { cookie })
    if (collection === '/accounts') existing.set(collection, account)
    else if (body.length > 0) existing.set(collection, body[0].id)
    if (parent !== collection) parents.set(collection, parent)
  }
})
afterAll(() => h.close())
const parents = new Map<string, string>()

interface Listed {
  route: string
  method: string
  path: string
}
function routes(): Listed[] {
  const { paths } = openApiDocument(h.api.swagger()) as { paths: Record<string, object> }
  return Object.entries(paths)
    .filter(([path]) => path.includes('{ref}'))
    .flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({
        route: routeOf(method, path),
        method: method.toUpperCase(),
        path,
      })),
    )
}

function urlOf(path: string, ref?: string): string {
  const collection = /^(.*?)\/\{ref\}/.exec(path)?.[1] ?? ''
  const id = ref ?? existing.get(collection) ?? NOBODYS
  return path.replace(collection, parents.get(collection) ?? collection).replace('{ref}', id)
}

async function ask({ method, path }: Listed, as: CallOptions, ref?: string): Promise<Answer> {
  const body = method === 'PUT' || method === 'POST' ? { body: { description: 'mine', reason: 'mine' } } : {}
  return h.call(method, urlOf(path, ref), { ...as, ...body })
}

const mayUse = (route: string, profile: ProfileName): boolean => {
  const need = ROUTES[route]!
  return typeof need === 'string' || reaches(FACTORY_PROFILES[profile][need.feature], need.level)
}

/** Returns all stored data except the audit. */
async function everything(): Promise<string> {
  const cookie = await h.signIn()
  const lists = [...new Set([...existing.keys()].map((collection) => parents.get(collection) ?? collection))]
  const answers = await Promise.all(lists.map((list) => h.call('GET', `${list}?limit=-1`, { cookie })))
  return (
    answers.map(({ text }) => text).join('\n') + JSON.stringify(await h.store.checkouts.find(checkout.id))
  )
}

it('exist for every route', () => {
  const collections = new Set(routes().map(({ path }) => /^(.*?)\/\{ref\}/.exec(path)?.[1] ?? ''))
  expect([...collections].filter((one) => !existing.has(one))).toEqual([])
  expect(collections.size).toBeGreaterThan(15)
  const kinds = ['/users', '/apikeys', '/hostkeys', '/sessions', '/accounts']
  expect(kinds.filter((kind) => existing.has(kind))).toEqual(kinds)
})

describe('without the right', () => {
  it.each([...PROFILES, ...PROFILES.map((one) => `a key for ${one}`)])(
    '%s learns and changes nothing',
    async (role) => {
      const { profile, as } = roles.get(role)!
      const before = await everything()
      const refused = routes().filter(({ route }) => !mayUse(route, profile))
      if (profile === 'user') expect(refused.length).toBeGreaterThan(60)
      for (const one of refused) {
        const answer = await ask(one, as)
        expect([answer.status, answer.body.error], one.route).toEqual([403, 'forbidden'])
        expect((await ask(one, as, NOBODYS)).text, one.route).toBe(answer.text)
        expect(answer.headers['etag']).toBeUndefined()
      }
      expect(await everything()).toBe(before)
      expect((await h.events('session.kill')).concat(h.killed as never)).toEqual([])
    },
  )
})

describe('with it', () => {
  it.each(PROFILES)('%s reads what there is', async (profile) => {
    const { as } = roles.get(profile)!
    const read = routes().filter((one) => one.method === 'GET' && mayUse(one.route, profile))
    for (const one of read) {
      const answer = await ask(one, as)
      // No session runs that could be watched, and matches need a search.
      const other = one.path.endsWith('/live') ? 409 : one.path.endsWith('/matches') ? 400 : 200
      // Guests of another user's session are visible to callers that may end it.
      const isHidden = one.path.endsWith('/invitations') && !mayUse('POST /sessions/:ref/kill', profile)
      // Another user's checkout or request is visible to callers that may view sessions.
      const isOthers = /^\/(checkouts|approvals)/.test(one.path) && !mayUse('GET /sessions', profile)
      // Another user's second factors and certificates are visible to callers that may view users.
      const isFactor =
        /\/(totp|certificates|securitykeys)$/.test(one.path) && !mayUse('GET /users/:ref', profile)
      const isGone = isHidden || isOthers || isFactor
      expect(answer.status, one.route).toBe(isGone ? 404 : other)
      expect((await ask(one, as, NOBODYS)).status, one.route).toBe(404)
    }
  })
})

describe("another user's checkout", () => {
  const given = PROFILES.filter((profile) => mayUse('POST /accounts/:ref/checkout', profile))
  it.each(given)('is not for %s: neither the account nor the checkout id', async (profile) => {
    const { as } = roles.get(profile)!
    const before = await everything()
    const out = await h.call('POST', `/accounts/${checkout.account}/checkout`, as)
    const unknown = await h.call('POST', `/accounts/${NOBODYS}/checkout`, as)
    const mayKnow = reaches(FACTORY_PROFILES[profile].accounts, 'view')
    expect(out.status).toBe(mayKnow ? 403 : 404)
    expect(unknown.status).toBe(404)
    if (!mayKnow) expect(out.text).toBe(unknown.text)
    expect(out.text).not.toContain('canary')
    const checkin = (id: string) =>
      h.call('POST', `/accounts/${checkout.account}/checkin`, { ...as, body: { checkout_id: id } })
    const foreign = await checkin(checkout.id)
    expect(foreign.status).toBe(404)
    expect((await checkin(NOBODYS)).text).toBe(foreign.text)
    expect(await everything()).toBe(before)
  })
})

describe("another user's rights", () => {
  it.each(PROFILES)('%s asks for them by id and by name', async (profile) => {
    const { as } = roles.get(profile)!
    const { id } = (await h.store.users.find('owner'))!
    const own = (await h.store.users.find(`u-${profile}`))!.id
    const mayList = reaches(FACTORY_PROFILES[profile].targets, 'view')
    const mayKnow = mayList && reaches(FACTORY_PROFILES[profile].authorizations, 'view')
    const rights = async (user: string) => (await h.call('GET', `/sessionrights?user=${user}`, as)).status
    for (const user of [id, 'owner']) expect(await rights(user), user).toBe(mayKnow ? 200 : 403)
    expect(await rights(NOBODYS)).toBe(mayKnow ? 404 : 403)
    expect(await rights(own)).toBe(mayList ? 200 : 403)
  })
})
