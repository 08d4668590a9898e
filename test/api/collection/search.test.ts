// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the grammar look like that
import { readFileSync } from 'node:fs'
import { StatementSync } from 'node:sqlite'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { ROUTES } from '../../../src/api/access/routes.ts'
import { EXAMPLES } from '../../../src/api/reference/search-page.ts'
import { SEARCHABLE } from '../../../src/api/reference/searchable.ts'
import { MAX_EXPRESSION, MAX_PATTERNS } from '../../../src/search/grammar.ts'
import { expressions, format } from '../../search/arbitrary.ts'
import { naive, valuesAt } from '../../search/naive.ts'
import { newAccount, newService, newUser } from '../../store/fixture.ts'
import { searchEstate } from '../estate.ts'
import { type Answer, type Harness, startHarness } from '../harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await searchEstate(h, cookie)
})
afterAll(() => h.close())

const get = (path: string, parameters: Record<string, string> = {}): Promise<Answer> =>
  h.call('GET', `${path}?${new URLSearchParams(parameters)}`, { cookie })
const search = (path: string, q: string) => get(path, { q, limit: '-1' })
const total = (answer: Answer) => Number(answer.headers['x-total-count'])
/** Returns an object's name, whatever its type. */
const label = (one: Record<string, unknown>) => {
  const names = [
    'target',
    'user_name',
    'device_name',
    'service_name',
    'domain_name',
    'key_name',
    'fingerprint',
  ]
  if (one['account_name'] !== undefined) return `${one['account_name']}@${one['domain']}`
  if (one['user_group'] !== undefined) return `${one['user_group']}:${one['target_group']}`
  return String(
    names.map((name) => one[name]).find((name) => name !== undefined) ?? one['group_name'] ?? one['begin'],
  )
}
const found = async (path: string, q: string) => {
  const answer = await search(path, q)
  expect(answer.status, answer.text).toBe(200)
  expect(total(answer)).toBe(answer.body.length)
  return answer.body.map(label).toSorted()
}

/** Returns the path of a collection in the estate. */
const placed = (path: string) =>
  path
    .replace('localdomains/:domain', 'localdomains/local')
    .replace('accounts/:ref', 'accounts/root@local@srv1')
    .replace('domains/:ref', 'domains/corp')
    .replace(':device', 'srv1')
    .replace(':domain', 'corp')

describe('the examples of the reference', () => {
  const EXPECTED: Record<string, string[]> = {
    'user_name=ops1': ['ops1'],
    'profile=auditor || profile=approver': ['Zoë', 'zoe'],
    'is_disabled=false && (expiration_date="" || expiration_date~2031)': ['admin', 'ops1', 'zoe'],
    'groups=linux-admins && email~*@example.com': ['ops1'],
    'users=${user}': ['dba'],
    'device_name~web*': ['WEB-db', 'web1'],
    'description~"rack 7"': ['srv1'],
    'description~"*50\\*"': ['web1'],
    'port=22': ['ssh'],
    'device=srv1 && credentials.type=ssh_key': [],
    'device=""': ['svc@corp%_@corp'],
    'session.accounts~root@*:srv1:*': ['servers'],
    'user_group=linux-admins && is_recorded=true': ['linux-admins:servers'],
    'user=ops1 && begin~2031-06': ['2031-06-30T12:00:00.000Z'],
    'user=ops1 && begin>=2031-05-30 && begin<2031-06': ['2031-05-30T12:00:00.000Z'],
    'bytes_out>1000000': [],
    'source_ip=${client_ip}': ['2031-05-30T12:00:00.000Z'],
    'srv*': ['root@local:srv1:ssh', 'svc@corp%_@corp:srv1:ssh2'],
    'root@local:srv1': ['root@local:srv1:ssh'],
    'device=srv1 && protocol=SSH': ['root@local:srv1:ssh', 'svc@corp%_@corp:srv1:ssh2'],
  }
  it.each(EXAMPLES)('$path $q', async ({ path, q }) => {
    expect(await found(path, q)).toEqual(EXPECTED[q]?.toSorted())
  })

  it('stand on the page and in docs/api.md', async () => {
    const page = (await h.call('GET', '/doc/Usage.html')).text
    const docs = readFileSync(new URL('../../../docs/api.md', import.meta.url), 'utf8')
    expect(page).toContain('<h2 id="search">')
    const shown = (text: string) =>
      text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    for (const { path, q, finds } of EXAMPLES) {
      expect(page).toContain(`<td>${shown(path)}</td><td>${shown(q)}</td><td>${shown(finds)}</td>`)
      expect(docs).toContain(`| \`${path}\` | \`${q.replaceAll('|', '\\|')}\` | ${finds} |`)
    }
    for (const [path, fields] of Object.entries(SEARCHABLE)) {
      const names = Object.entries(fields).map(([name, { kind }]) => `${name} (${kind})`)
      expect(page).toContain(`<td>${path}</td><td>${names.join(', ')}</td>`)
    }
  })
})

describe('every collection', () => {
  // The audit log has pages of its own: test/api/events.test.ts.
  const paths = Object.keys(SEARCHABLE).filter((path) => path !== '/events')

  it('of the routes is one that can be searched', async () => {
    const lists = Object.keys(ROUTES)
      .filter(
        (route) =>
          route.startsWith('GET ') &&
          ROUTES[route] !== 'scim' &&
          !/:ref|\.json|\.html|\/version|\/session$|\/signins$|\/export|\/dashboard$|\/events/.test(route),
      )
      .map((route) => route.slice(4))
    expect(lists.filter((path) => !paths.includes(path))).toEqual([])
  })

  it.each(paths)('%s shows each field that it is searched by, and says which they are', async (path) => {
    const view = (await search(placed(path), '')).body
    expect(view.length).toBeGreaterThan(0)
    const fields = Object.keys(SEARCHABLE[path]!)
    for (const one of view) {
      for (const name of fields)
        expect(one, name).toHaveProperty(name.replace(/^(credentials|recording)\..*/, '$1'))
    }
    const known = fields.find((name) =>
      ['name', 'label', 'text', 'id'].includes(SEARCHABLE[path]![name]!.kind),
    )
    const refused = await search(placed(path), `${known}=x || no_such_field=1`)
    expect([refused.status, refused.body.error]).toEqual([400, 'unknown_field'])
    const [{ field, message, position }] = refused.body.details
    expect([field, position]).toEqual(['q', `${known}=x || `.length])
    expect(message).toContain(`one of the fields ${fields.join(', ')}, found "no_such_field"`)
  })

  it.each(paths)(
    '%s answers a page of what was found, sorted, with the fields that were asked for',
    async (path) => {
      const kinds = SEARCHABLE[path]!
      const all = (await search(placed(path), '')).body as Record<string, unknown>[]
      const sortable = Object.keys(kinds).filter((name) =>
        all.every((one) => !Array.isArray(one[name]) && one[name] !== undefined),
      )
      for (const name of sortable) {
        const first = await get(placed(path), {
          q: '',
          sort: `-${name}`,
          limit: '2',
          offset: '1',
          fields: name,
        })
        expect(first.status, first.text).toBe(200)
        expect(total(first)).toBe(all.length)
        const whole = await get(placed(path), { sort: `-${name}`, limit: '-1', fields: name })
        expect(first.body).toEqual(whole.body.slice(1, 3))
        expect(Object.keys(first.body[0] ?? { [name]: 1 })).toEqual([name])
      }
      expect(sortable).not.toEqual([])
    },
  )

  it.each(paths)('%s finds what a plain reading of random expressions finds', async (path) => {
    const kinds = SEARCHABLE[path]!
    const all = (await search(placed(path), '')).body as ({ id?: string } & Record<string, unknown>)[]
    const sign = fc.constantFrom('%', '_', '\\', '*', '"', "'", '%25', '--', 'ö', 'O\u0308', 'K', ')', '||')
    const texts = (field: string) => {
      const own = all.flatMap((one) => valuesAt(one, field)).map(String)
      const words = [...new Set(own.flatMap((value) => [value, ...value.split(/[^\p{L}\d]+/u)]))]
      return fc
        .tuple(
          fc.boolean(),
          fc.nat(12),
          fc.oneof({ weight: 7, arbitrary: fc.constantFrom('x', ...words) }, sign),
        )
        .map(([upper, cut, text]) => (upper ? text.toUpperCase() : text).slice(cut > 9 ? cut - 9 : 0))
    }
    const fields = Object.keys(kinds).filter((one) =>
      ['name', 'label', 'text', 'id'].includes(kinds[one]!.kind),
    )
    const variables = { user: 'admin', client_ip: '127.0.0.1' }
    const trees = expressions({ fields, texts, variables: Object.keys(variables) }, 2)
    let hits = 0
    await fc.assert(
      fc.asyncProperty(trees, async (tree) => {
        const q = format(tree)
        fc.pre(q.length <= MAX_EXPRESSION && q.split(/ ~ /).length <= MAX_PATTERNS)
        const expected = all.filter((one) => naive(tree, one, kinds, variables))
        const answer = await search(placed(path), q)
        expect(answer.status, `${q}: ${answer.text}`).toBe(200)
        expect(answer.body, q).toEqual(expected)
        if (expected.length > 0 && expected.length < all.length) hits += 1
      }),
      { numRuns: 120 },
    )
    // At least one expression matches some objects but not all.
    if (all.length > 1) expect(hits).toBeGreaterThan(0)
  })
})

describe('flags, numbers and times', () => {
  it.each([
    ['/users', 'is_disabled=true', ['Zoë']],
    ['/users', 'expiration_date=2031-06-30T14:00:00+02:00', ['ops1']],
    ['/users', 'expiration_date~2031-06-30T12', ['ops1']],
    ['/users', 'expiration_date~2031-07', []],
    ['/users', 'expiration_date>2031-06-30T11', ['ops1']],
    ['/users', 'expiration_date>2031-06', []],
    ['/users', 'expiration_date>=2031-06 && expiration_date<=2031-06-30T12:00:00Z', ['ops1']],
    ['/users', 'expiration_date=""', ['Zoë', 'admin', 'zoe']],
    ['/devices/srv1/services', 'port=2222', ['ssh2']],
    ['/devices/srv1/services', 'port>22 && port<=2222', ['ssh2']],
    ['/authorizations', 'is_recorded=false', ['linux-admins:vault']],
    ['/apikeys', 'expiration_date~2032*', ['CD']],
    ['/hostkeys', 'first_seen~2031-02', ['SHA256:bBb']],
    ['/sessions', 'killed=true', ['2031-06-30T12:00:00.000Z']],
    ['/sessions', 'killed=false && end=""', ['2031-07-30T12:00:00.000Z']],
    ['/sessions', 'bytes_in=100', ['2031-06-30T12:00:00.000Z']],
    ['/sessions', 'bytes_in>99 && bytes_in<101', ['2031-06-30T12:00:00.000Z']],
    ['/sessions', 'begin>=2031-06 && begin<2031-07', ['2031-06-30T12:00:00.000Z']],
    ['/sessions', 'recording.state=sealed', ['2031-05-30T12:00:00.000Z']],
    ['/sessions', 'recording.state="" && is_recorded=true', ['2031-06-30T12:00:00.000Z']],
    ['/sessionrights', 'is_recorded=true && device=web1', ['Root@local:web1:ssh']],
  ])('%s %s', async (path, q, expected) => {
    expect(await found(path, q)).toEqual(expected.toSorted())
  })
})

describe('the variables', () => {
  it('are those of the caller', async () => {
    expect(
      await found('/users', 'user_name=${user} && user_name=${subject_cn} && profile=${profile}'),
    ).toEqual(['admin'])
    const { api_key: key } = (
      await h.call('POST', '/apikeys', { cookie, body: { key_name: 'vars', profile: 'auditor' } })
    ).body
    const as = (headers: Record<string, string>, q: string) =>
      h.call('GET', `/users?q=${encodeURIComponent(q)}`, { headers: { 'x-auth-key': key, ...headers } })
    expect((await as({ 'x-auth-user': 'admin' }, 'user_name=${user}')).body).toHaveLength(1)
    expect((await as({ 'x-auth-user': 'admin' }, 'profile=${profile}')).body).toHaveLength(1)
    expect((await as({}, 'profile=${profile}')).body.map(label)).toEqual(['Zoë'])
    const none = await as({}, 'user_name=${user}')
    expect([none.status, none.body.error]).toEqual([400, 'invalid_search'])
    expect(none.body.details[0]).toMatchObject({ field: 'q', position: 10 })
  })

  it('that do not exist are named beside those that do', async () => {
    const answer = await search('/users', 'user_name=${password}')
    expect(answer.body).toMatchObject({ error: 'invalid_search', details: [{ field: 'q', position: 10 }] })
    expect(answer.body.details[0].message).toContain(
      'one of ${user}, ${subject_cn}, ${profile}, ${client_ip}',
    )
  })
})

describe('a bad expression', () => {
  it.each([
    ['user_name', 9, '"=", "~"'],
    ['user_name=a && ', 15, 'the name of a field'],
    ['is_disabled=maybe', 12, 'true or false'],
    ['expiration_date=2031', 16, 'a time such as'],
    ['user_name="a', 12, 'a closing "'],
    ['x'.repeat(MAX_EXPRESSION), MAX_EXPRESSION, '"=", "~"'],
  ])('%s is 400 at %d', async (q, position, expected) => {
    const answer = await search('/users', q)
    expect(answer.status).toBe(400)
    expect(answer.body.error).toBe('invalid_search')
    expect(answer.body.details).toEqual([
      { field: 'q', position, message: expect.stringContaining(expected) },
    ])
  })

  it('is refused also where nothing would be found, and so is an unknown sort key', async () => {
    for (const [path, parameters] of [
      ['/devices/web1/localdomains', { q: 'nobody=1' }],
      ['/targets', { q: 'nobody=1' }],
      ['/users', { q: 'user_name=nobody', sort: 'nobody' }],
      ['/targets', { q: 'device=nobody', sort: 'nobody' }],
      ['/targets', { q: 'nobody', sort: 'nobody' }],
    ] as const) {
      expect((await get(path, parameters)).status, path).toBe(400)
    }
  })

  it('is longer than the limit', async () => {
    expect((await search('/users', `user_name=${'x'.repeat(MAX_EXPRESSION)}`)).status).toBe(400)
    expect((await search('/targets', '*a'.repeat(20))).body.error).toBe('invalid_search')
  })
})

it('&& is understood without percent-encoding too', async () => {
  const raw = (query: string) => h.call('GET', `/users?${query}`, { cookie })
  expect((await raw('q=user_name=ops1&&profile=user&limit=5')).body.map(label)).toEqual(['ops1'])
  expect((await raw('limit=5&q=user_name=ops1&&profile=auditor')).body).toEqual([])
  expect((await raw('q=user_name=ops1%26%26profile=user')).body.map(label)).toEqual(['ops1'])
  expect((await raw('q=user_name=ops1&profile=user')).body.error).toBe('unknown_field')
})

describe('/targets without an operator', () => {
  it.each([
    ['*', 3],
    ['', 3],
    ['srv1', 2],
    ['SRV1', 2],
    ['srv*', 2],
    ['*1', 3],
    ['web*', 1],
    ['root@*', 2],
    ['*:ssh', 2],
    ['root@local:*:ssh', 2],
    ['local:srv1', 1],
    ['s*', 3],
    ['rv*', 0],
    ['oo', 2],
    ['%', 1],
    ['svc@corp%_', 1],
    ['nothing', 0],
  ])('%s finds %d', async (q, count) => {
    expect((await found('/targets', q)).length).toBe(count)
  })

  it('is a pattern for the page too', async () => {
    const answer = await get('/targets', { q: 'srv*', sort: '-target', limit: '1', fields: 'target' })
    expect(total(answer)).toBe(2)
    expect(answer.body).toEqual([{ target: 'svc@corp%_@corp:srv1:ssh2' }])
  })
})

it('a list is read in as many statements for many objects as for few', async () => {
  const all = vi.spyOn(StatementSync.prototype, 'all')
  const statements = async (path: string) => {
    all.mockClear()
    const { body } = await get(placed(path), { limit: '-1' })
    return { path, objects: body.length, statements: all.mock.calls.length }
  }
  const paths = Object.keys(SEARCHABLE)
  const few: Awaited<ReturnType<typeof statements>>[] = []
  for (const path of paths) few.push(await statements(path))
  await grow()
  const many: typeof few = []
  for (const path of paths) many.push(await statements(path))
  all.mockRestore()
  expect(many.map((one) => [one.path, one.statements])).toEqual(few.map((one) => [one.path, one.statements]))
  const grown = many.filter((one, index) => one.objects >= few[index]!.objects + 20).map(({ path }) => path)
  expect(grown).toEqual(
    expect.arrayContaining(['/users', '/accounts', '/targets', '/authorizations', '/hostkeys']),
  )
})

async function grow(): Promise<void> {
  const { store } = h
  const dba = (await store.userGroups.find('dba'))!
  const servers = (await store.targetGroups.find('servers'))!
  const targets = [...servers.sessionAccounts]
  for (let one = 0; one < 20; one++) {
    const user = await store.users.create(newUser(`many${one}`, { groupIds: [dba.id] }))
    const group = await store.userGroups.create({
      groupName: `many${one}`,
      description: '',
      userIds: [user.id],
    })
    const device = await store.devices.create({ deviceName: `many${one}`, host: 'h', description: '' })
    const service = await store.services.create(newService(device.id))
    const domain = await store.domains.create({ domainName: 'local', description: '', deviceId: device.id })
    const account = await store.accounts.create(newAccount(domain.id, 'root'))
    const place = { deviceId: device.id, serviceId: service.id }
    const shown = {
      keyType: 'ssh-ed25519',
      fingerprint: 'SHA256:x',
      key: 'x',
      firstSeen: 0,
      state: 'offered',
    } as const
    await store.hostKeys.create({ ...place, ...shown })
    targets.push({ accountId: account.id, serviceId: service.id })
    const rights = {
      authorizeSessions: true,
      authorizePasswordRetrieval: true,
      subprotocols: [],
      isRecorded: true,
      recordingMode: 'standard' as const,
    }
    await store.authorizations.create({
      userGroupId: group.id,
      targetGroupId: servers.id,
      description: '',
      ...rights,
    })
  }
  const passwordRetrievalAccountIds = targets.map(({ accountId }) => accountId)
  await store.targetGroups.update(servers.id, { sessionAccounts: targets, passwordRetrievalAccountIds })
}
