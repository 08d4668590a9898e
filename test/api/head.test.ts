/** HEAD: the answer of GET without the body (RFC 9110 9.3.2). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROUTES } from '../../src/api/access/routes.ts'
import { PROFILES } from '../../src/model/objects.ts'
import { APPROVAL, searchEstate } from './estate.ts'
import { type Harness, startHarness } from './harness.ts'

const SESSION = '01K9T5RZ8Q4W6X2C3V1B0N7M50'

let h: Harness
const cookies = new Map<string, string>()
let opened = 0
beforeAll(async () => {
  h = await startHarness({
    recordings: {
      open: async () => {
        opened++
        return undefined
      },
      close: async () => {},
    },
  })
  cookies.set('admin', await h.signIn())
  await searchEstate(h, cookies.get('admin')!)
  for (const profile of PROFILES) {
    await h.addUser(`u-${profile}`, profile)
    cookies.set(profile, await h.signIn(`u-${profile}`))
  }
})
afterAll(() => h.close())

const NAMES: Readonly<Record<string, string>> = {
  users: 'admin',
  usergroups: 'dba',
  devices: 'srv1',
  services: 'ssh',
  localdomains: 'local',
  domains: 'corp',
  accounts: 'root',
  targetgroups: 'servers',
  authorizations: 'dba:servers',
  apikeys: 'ci',
  profiles: 'user',
  checkoutpolicies: 'default',
  passwordchangepolicies: 'default',
  connectionpolicies: 'SSH',
  timeframes: 'allthetime',
  externalauths: 'directory',
  authdomains: 'corp',
  notifications: 'soc',
  mappings: 'none',
  persons: 'ann@corp',
  sessions: SESSION,
  approvals: APPROVAL,
}
const pathOf = (route: string) =>
  route
    .replace('GET ', '')
    .replaceAll(/(\w+)\/:\w+/g, (_, kind: string) => `${kind}/${NAMES[kind] ?? 'none'}`)
    .replace(/^\/accounts\/root(?=$|\/history$)/, '/accounts/root@local@srv1')
    .replace(/^\/domains\/corp\/accounts\/root$/, '/domains/corp/accounts/svc@corp%25_')

const reading = Object.keys(ROUTES).filter((route) => route.startsWith('GET ') && ROUTES[route] !== 'scim')
const recordings = reading.filter((route) => /\/(recording|live|events\/proof)/.test(route))

describe.each(reading.filter((route) => !recordings.includes(route)))('HEAD for %s', (route) => {
  it('answers as GET does, without the body', async () => {
    const cookie = cookies.get('admin')!
    const get = await h.call('GET', pathOf(route), { cookie })
    const head = await h.call('HEAD', pathOf(route), { cookie })
    const expected = /\/(hostkeys|checkouts|mappings|scimtokens)\/:ref/.test(route)
      ? 404
      : /\/matches$/.test(route)
        ? 400
        : 200
    expect(get.status).toBe(expected)
    expect([head.status, head.text]).toEqual([get.status, ''])
    const told = ({ headers: { date: _date, 'transfer-encoding': _how, ...rest } }: typeof get) => rest
    expect(told(head)).toEqual(told(get))
  })

  it('has the same guard', async () => {
    for (const cookie of [undefined, ...cookies.values()]) {
      const as = cookie === undefined ? {} : { cookie }
      const { status } = await h.call('GET', pathOf(route), as)
      expect((await h.call('HEAD', pathOf(route), as)).status).toBe(status)
    }
    const headers = { 'sec-fetch-site': 'cross-site' }
    const { status } = await h.call('GET', pathOf(route), { cookie: cookies.get('admin')!, headers })
    expect((await h.call('HEAD', pathOf(route), { cookie: cookies.get('admin')!, headers })).status).toBe(
      status,
    )
  })
})

it.each(recordings)(
  'HEAD for %s is none: nothing is opened, and nothing told to the audit',
  async (route) => {
    const before = (await h.events()).length
    expect((await h.call('HEAD', pathOf(route), { cookie: cookies.get('admin')! })).status).toBe(404)
    expect(opened).toBe(0)
    expect(await h.events()).toHaveLength(before)
  },
)

it('the use of a key is told once, by HEAD and by GET', async () => {
  const made = await h.call('POST', '/apikeys', {
    cookie: cookies.get('admin')!,
    body: { key_name: 'prober', profile: 'auditor' },
  })
  const headers = { 'x-auth-key': made.body.api_key }
  expect((await h.call('HEAD', '/users', { headers })).headers['x-total-count']).toBe('12')
  expect((await h.call('GET', '/users', { headers })).status).toBe(200)
  const uses = (await h.events('auth.success')).filter(({ user }) => user === 'key:prober')
  expect(uses).toHaveLength(1)
})

it('the document does not list it', async () => {
  const { paths } = (await h.call('GET', '/openapi.json')).body
  const methods = new Set(Object.values(paths as Record<string, object>).flatMap((one) => Object.keys(one)))
  expect([...methods].sort()).toEqual(['delete', 'get', 'post', 'put'])
})
