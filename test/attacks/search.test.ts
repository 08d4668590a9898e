// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the grammar look like that
/** Case 34: SQL through `q`, `sort` and `fields`, secrets by search, expressions that cost. */
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SEARCHABLE } from '../../src/api/reference/searchable.ts'
import { MAX_EXPRESSION } from '../../src/search/grammar.ts'
import { searchEstate } from '../api/estate.ts'
import { type Answer, type Harness, startHarness } from '../api/harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await searchEstate(h, cookie)
})
afterAll(() => h.close())

const get = (path: string, parameters: Record<string, string>): Promise<Answer> =>
  h.call('GET', `${path}?${new URLSearchParams(parameters)}`, { cookie })
const PATHS = Object.keys(SEARCHABLE).map((path) =>
  path
    .replace('localdomains/:domain', 'localdomains/local')
    .replace(':device', 'srv1')
    .replace(':domain', 'corp')
    .replace('/accounts/:ref', '/accounts/root@local@srv1')
    .replace('/domains/:ref', '/domains/corp'),
)

const INJECTIONS = [
  "' or '1'='1",
  "x' or 1=1 --",
  "'; drop table users; --",
  "' union select password_hash from users --",
  '") or ("1"="1',
  "') or exists (select 1 from users) --",
  '%',
  '%%',
  '_',
  '__',
  '\\',
  '\\%',
  '%\\',
  "' escape '",
  '${jndi:ldap://x}',
  '(select 1)',
  '1)) or ((1=1',
  '?',
  ':a',
  '@a',
  '/*',
]

/** One field of an event for each kind of SQL that they are made of; all others are like `user` or `path`. */
const OF_EVENTS = ['event', 'severity', 'user', 'path', 'target', 'text', 'session']

/** Returns the whole database, to check that nothing has changed. */
function dump(): string {
  const database = new DatabaseSync(join(dirname(h.certPath), 'sallyport.db'), { readOnly: true })
  const tables = database.prepare("select name from sqlite_schema where type = 'table' order by name").all()
  const text = tables
    .filter(({ name }) => name !== 'audit')
    .map(({ name }) => JSON.stringify([name, database.prepare(`select * from "${name}"`).all()]))
    .join('\n')
  database.close()
  return text
}

describe('SQL in a value', () => {
  it('is text: it finds what has that text in it, and no more', async () => {
    const before = dump()
    for (const path of PATHS) {
      const names = Object.entries(SEARCHABLE[Object.keys(SEARCHABLE)[PATHS.indexOf(path)]!]!)
        .filter(([, { kind }]) => kind === 'name' || kind === 'text' || kind === 'label')
        .map(([name]) => name)
        .filter((name) => path !== '/events' || OF_EVENTS.includes(name))
      for (const name of names) {
        for (const injection of INJECTIONS) {
          const quoted = `"${injection.replace(/["\\*]/g, '\\$&')}"`
          for (const sign of ['=', '~']) {
            const limit = path === '/events' ? '1000' : '-1'
            const answer = await get(path, { q: `${name}${sign}${quoted}`, limit })
            expect(answer.status, `${path} ${name} ${injection}: ${answer.text}`).toBe(200)
            for (const one of answer.body)
              expect(JSON.stringify(one), `${path} ${name}${sign}${quoted}`).toContain(inJson(injection))
          }
        }
      }
    }
    expect(dump()).toBe(before)
  }, 300_000)

  const inJson = (text: string) => JSON.stringify(text).slice(1, -1)

  it('without quotes, as a field, an order or a selection is refused', async () => {
    const before = dump()
    for (const path of PATHS) {
      for (const injection of INJECTIONS) {
        for (const parameters of [
          { q: `${injection}=1` },
          { sort: injection },
          { sort: `id,-${injection}` },
          { fields: injection },
        ]) {
          const answer = await get(path, parameters as Record<string, string>)
          expect(answer.status, `${path} ${JSON.stringify(parameters)}`).toBe(400)
        }
      }
    }
    expect(dump()).toBe(before)
  }, 300_000)

  it('of a user name that is used as a variable stays text', async () => {
    const name = `ops" || user_name~"*'%`
    const body = { user_name: name, password: 'canary pass phrase', profile: 'auditor' }
    expect((await h.call('POST', '/users', { cookie, body })).status).toBe(201)
    const own = await h.signIn(name, 'canary pass phrase')
    for (const q of ['user_name=${user}', 'user_name~${user}']) {
      const answer = await h.call('GET', `/users?q=${encodeURIComponent(q)}`, { cookie: own })
      expect(answer.body.map((one: { user_name: string }) => one.user_name)).toEqual([name])
    }
  })
})

it('secrets are no fields, neither to search nor to sort by nor to show', async () => {
  const columns = [
    'password',
    'password_hash',
    'sealed',
    'sha256',
    'api_key',
    'name_key',
    'credentials',
    'credentials.password',
    'credentials.sealed',
    'users.password_hash',
    'constructor',
    'toString',
    'hasOwnProperty',
  ]
  for (const path of PATHS) {
    for (const column of columns) {
      // the name of the key that asked
      if (['/sessions', '/checkouts', '/approvals', '/events'].includes(path) && column === 'api_key')
        continue
      // the hash of a file
      if (path === '/events' && column === 'sha256') continue
      expect((await get(path, { q: `${column}~*` })).body.error, `${path} ${column}`).toBe('unknown_field')
      expect((await get(path, { sort: column })).status, `${path} ${column}`).toBe(400)
      if (column !== 'credentials' && column !== 'api_key')
        expect((await get(path, { fields: column })).status).toBe(400)
    }
  }
})

it('nobody searches what they may not list', async () => {
  await h.addUser('nobody', 'user')
  const own = await h.signIn('nobody')
  for (const path of PATHS.filter((one) => !['/targets', '/sessionrights'].includes(one))) {
    const answer = await h.call('GET', `${path}?q=id~*`, { cookie: own })
    expect([403, 200], path).toContain(answer.status)
    if (answer.status === 200) expect(answer.body).toEqual([])
  }
})

it('an expression that costs is refused, or answered in bounded time', async () => {
  const text = 'a'.repeat(1000)
  for (let one = 0; one < 20; one++) {
    const body = { device_name: `long${one}`, host: 'h', description: text }
    expect((await h.call('POST', '/devices', { cookie, body })).status).toBe(201)
  }
  const stars = `"${'a*'.repeat(8)}b"`
  const begin = performance.now()
  for (const q of [
    Array.from({ length: 8 }, () => `description~${stars}`).join(' || '),
    `description~"${'a*'.repeat(8)}${'a'.repeat(900)}b"`,
    `${'('.repeat(2000)}description=a${')'.repeat(2000)}`,
    'description=a||'.repeat(270),
    `description~"${'*'.repeat(3000)}"`,
    'x'.repeat(MAX_EXPRESSION * 2),
  ]) {
    expect([200, 400]).toContain((await get('/devices', { q })).status)
  }
  // a backtracking pattern would need centuries
  expect(performance.now() - begin).toBeLessThan(5000)
})
