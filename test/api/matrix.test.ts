/** Every route with every profile, and without sign-in: allowed as the table says. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PAGES, ROUTES } from '../../src/api/access/routes.ts'
import { PROFILES } from '../../src/model/objects.ts'
import { FACTORY_PROFILES, intersection, reaches } from '../../src/model/profiles.ts'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
const cookies = new Map<string, string>()
const keys = new Map<string, string>()

beforeAll(async () => {
  h = await startHarness()
  await h.store.devices.create({ deviceName: 'srv1', host: '192.0.2.1', description: '' })
  const admin = await h.signIn()
  for (const profile of PROFILES) {
    await h.addUser(`u-${profile}`, profile)
    const body = { key_name: `k-${profile}`, profile }
    keys.set(profile, (await h.call('POST', '/apikeys', { cookie: admin, body })).body.api_key)
  }
})
afterAll(() => h.close())

/** Returns a path to nothing that exists: past the guard a request ends as 400 or 404. */
function pathOf(route: string): [method: string, path: string] {
  const [method = '', path = ''] = route.split(' ')
  return [method, path.replace(':device', 'srv1').replace(':ref', 'no-such-thing')]
}

async function statusOf(
  route: string,
  headers: { cookie?: string; headers?: Record<string, string> },
): Promise<number> {
  const [method, path] = pathOf(route)
  if (path.startsWith('/import/')) {
    const type = { 'content-type': 'text/csv' }
    return (
      await h.call(method, path, {
        ...headers,
        raw: '#no_such_field',
        headers: { ...headers.headers, ...type },
      })
    ).status
  }
  const body = method === 'GET' || method === 'DELETE' ? {} : { body: { no_such_field: 1 } }
  return (await h.call(method, path, { ...headers, ...body })).status
}

describe.each(Object.entries(ROUTES))('%s', (route, need) => {
  it.skipIf(need === 'public')('needs a sign-in', async () => {
    expect(await statusOf(route, {})).toBe(401)
    expect(await statusOf(route, { cookie: 'sallyport_session=nonsense' })).toBe(401)
    expect(await statusOf(route, { headers: { 'x-auth-key': 'nonsense' } })).toBe(401)
  })

  it.each(PROFILES)('with the profile %s', async (profile) => {
    cookies.set(profile, await h.signIn(`u-${profile}`))
    const status = await statusOf(route, { cookie: cookies.get(profile) ?? '' })
    const allowed = typeof need === 'string' || reaches(FACTORY_PROFILES[profile][need.feature], need.level)
    if (need === 'public' && route !== 'POST /session') expect(status).toBe(200)
    else if (allowed) expect([200, 204, 400, 404]).toContain(status)
    else expect(status).toBe(403)
  })

  it.skipIf(typeof need === 'string')('with a key of each profile for a user of each profile', async () => {
    if (typeof need === 'string') return
    for (const keyProfile of PROFILES) {
      for (const profile of PROFILES) {
        const both = intersection(FACTORY_PROFILES[keyProfile], FACTORY_PROFILES[profile])
        const headers = { 'x-auth-key': keys.get(keyProfile) ?? '', 'x-auth-user': `u-${profile}` }
        const refused = (await statusOf(route, { headers })) === 403
        expect(refused, `${keyProfile} for ${profile}`).toBe(!reaches(both[need.feature], need.level))
      }
    }
  })
})

it('has every route of the table, and the table every route', () => {
  const listed = h.api.printRoutes({ commonPrefix: false })
  for (const route of Object.keys(ROUTES)) {
    const [method = '', path = ''] = route.split(' ')
    expect(h.api.hasRoute({ method: method as 'GET', url: `/api${path}` }), route).toBe(true)
  }
  for (const page of Object.keys(PAGES)) {
    const [method = '', url = ''] = page.split(' ')
    expect(h.api.hasRoute({ method: method as 'GET', url }), page).toBe(true)
  }
  expect(
    listed
      .match(/\((?:GET|POST|PUT|DELETE|, |HEAD|OPTIONS)+\)/g)
      ?.join('')
      .match(/[A-Z]+/g)
      ?.filter((method) => method !== 'HEAD'),
  ).toHaveLength(Object.keys({ ...ROUTES, ...PAGES }).length)
})
