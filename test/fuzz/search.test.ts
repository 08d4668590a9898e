// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the grammar look like that
/**
 * Any text in `q`, `sort` and `fields`: the response is a list, or a 400 of the catalogue that names the
 * place.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { SEARCHABLE } from '../../src/api/reference/searchable.ts'
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

const FIELDS = [...new Set(Object.values(SEARCHABLE).flatMap((fields) => Object.keys(fields)))]
const PATHS = Object.keys(SEARCHABLE).map((path) =>
  path
    .replace('localdomains/:domain', 'localdomains/local')
    .replace('accounts/:ref', 'accounts/root@local@srv1')
    .replace('domains/:ref', 'domains/corp')
    .replace(':device', 'srv1')
    .replace(':domain', 'corp'),
)

function expectSane(answer: Answer, q?: string): void {
  expect([200, 400], answer.text).toContain(answer.status)
  if (answer.status === 200) {
    expect(Array.isArray(answer.body)).toBe(true)
    return
  }
  expect(['invalid_search', 'unknown_field', 'invalid_field']).toContain(answer.body.error)
  const [{ field, position }] = answer.body.details
  if (q === undefined || field !== 'q' || position === undefined) return
  expect(position).toBeGreaterThanOrEqual(0)
  expect(position).toBeLessThanOrEqual(q.length)
}

const path = fc.constantFrom(...PATHS)
const token = fc.oneof(
  fc.constantFrom(
    ...'()=~<>&|"*\\%_$ '.split(''),
    '&&',
    '||',
    '${user}',
    '${client_ip}',
    '""',
    "'",
    '--',
    ';',
  ),
  fc.constantFrom(...FIELDS),
  fc.constantFrom('true', 'false', '22', '-1', '2031', '2031-06-30T12:00:00Z', 'ops1', 'srv1', 'null', '*'),
  fc.string({ unit: 'binary', maxLength: 4 }),
)
const tokens = fc.array(token, { maxLength: 14 }).map((all) => all.join(''))
/** Comparisons of any field by any operator with any value: past the parser in most cases. */
const comparison = fc
  .tuple(
    fc.constantFrom(...FIELDS),
    fc.constantFrom('=', '~', '<', '<=', '>', '>='),
    fc.oneof(token, fc.string({ maxLength: 8 })),
  )
  .map(([field, sign, value]) => `${field}${sign}"${value.replace(/["\\]/g, '\\$&')}"`)
const comparisons = fc
  .array(fc.tuple(comparison, fc.constantFrom(' && ', ' || ')), { minLength: 1, maxLength: 4 })
  .map((all) => all.map(([one, sign], index) => (index === 0 ? one : sign + one)).join(''))

it('of tokens of the grammar in any order', async () => {
  await fc.assert(
    fc.asyncProperty(path, tokens, async (where, q) => {
      expectSane(await h.call('GET', `${where}?${new URLSearchParams({ q })}`, { cookie }), q.toWellFormed())
    }),
    { numRuns: 1500 },
  )
}, 300_000)

it('of comparisons with any field and value', async () => {
  await fc.assert(
    fc.asyncProperty(path, comparisons, async (where, q) => {
      expectSane(await h.call('GET', `${where}?${new URLSearchParams({ q })}`, { cookie }), q.toWellFormed())
    }),
    { numRuns: 1500 },
  )
}, 300_000)

it('of any page, order and selection', async () => {
  const words = fc.array(fc.oneof(fc.constantFrom(...FIELDS), token), { maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(
      path,
      fc.record(
        {
          q: tokens,
          sort: words.map((all) => all.map((one, index) => (index % 2 ? `-${one}` : one)).join(',')),
          fields: words.map((all) => all.join(',')),
          limit: fc.oneof(fc.integer({ min: -2, max: 5 }), fc.integer()).map(String),
          offset: fc.oneof(fc.integer({ min: -1, max: 5 }), fc.integer()).map(String),
        },
        { requiredKeys: [] },
      ),
      async (where, query) => {
        expectSane(await h.call('GET', `${where}?${new URLSearchParams(query)}`, { cookie }))
      },
    ),
    { numRuns: 1000 },
  )
}, 300_000)

it('of any bytes after the question mark', async () => {
  const raw = fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    maxLength: 60,
  })
  await fc.assert(
    fc.asyncProperty(path, raw, async (where, query) => {
      const answer = await h.call('GET', `${where}?q=${query.replaceAll('#', '')}`, { cookie })
      expect(answer.status, answer.text).toBeLessThan(500)
    }),
    { numRuns: 500 },
  )
}, 300_000)
