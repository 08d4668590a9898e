/** Control characters and lone surrogates in the texts of bodies, over JSON and in tables. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { characterFlaws } from '../../../src/api/schema/characters.ts'
import { newSshKey } from '../../../src/host/ssh-keys.ts'
import { ADMIN, type Harness, startHarness } from '../harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await h.call('POST', '/devices', { cookie, body: { device_name: 'srv1', host: '192.0.2.1' } })
})
afterAll(() => h.close())

const post = (path: string, body: object) => h.call('POST', path, { cookie, body })
const refused = (field: string, code: string) => ({
  error: 'invalid_field',
  details: [{ field, message: `expected text without control characters, got U+${code}` }],
})
const password = (text: string) => ({
  account_name: 'a',
  device: 'srv1',
  credentials: [{ type: 'password', password: text }],
})

describe('a text with a character that nobody means is refused by its field', () => {
  it.each([
    ['/devices', { device_name: 'd', host: 'h', description: 'a\ud800b' }, 'description', 'D800'],
    ['/devices', { device_name: 'd', host: 'h', description: 'a\u0000' }, 'description', '0000'],
    ['/devices', { device_name: 'd', host: 'h', description: '\u001b[31m' }, 'description', '001B'],
    ['/devices', { device_name: 'd', host: 'h', description: 'a\rb' }, 'description', '000D'],
    ['/users', { user_name: 'u', display_name: 'a\nb' }, 'display_name', '000A'],
    ['/users', { user_name: 'u\udc00' }, 'user_name', 'DC00'],
    ['/users', { user_name: 'u', password: 'p\u0000' }, 'password', '0000'],
    ['/users', { user_name: 'u', password: 'p\ud800' }, 'password', 'D800'],
    ['/users', { user_name: 'u', email: 'a@b\u0085' }, 'email', '0085'],
    ['/users', { user_name: 'u', groups: ['x', 'y\u0007'] }, 'groups/1', '0007'],
    ['/accounts', password('a\u0000b'), 'credentials/0/password', '0000'],
    ['/accounts', password('a\nb'), 'credentials/0/password', '000A'],
    ['/targetgroups', { group_name: 'g', session: { accounts: ['a\t'] } }, 'session/accounts/0', '0009'],
    ['/session', { user: 'admin\u0000', password: ADMIN.password }, 'user', '0000'],
  ])('%s %j', async (path, body, field, code) => {
    const answer = await post(path, body)
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject(refused(field, code))
  })

  it('also in an update, and nothing is changed', async () => {
    const answer = await h.call('PUT', '/devices/srv1', { cookie, body: { description: '\udfff' } })
    expect(answer.body).toMatchObject(refused('description', 'DFFF'))
    expect((await h.call('GET', '/devices/srv1', { cookie })).body.description).toBe('')
  })

  it('and so is each of several', async () => {
    const { body } = await post('/users', { user_name: 'u', display_name: '\u0001', email: 'a@b\u0002' })
    expect(body.details.map(({ field }: { field: string }) => field)).toEqual(['display_name', 'email'])
  })
})

it('lines are for descriptions and keys, and all other characters for every text', async () => {
  const description = 'one\n\ttwo\r\n𝒳 é \u200d ok'
  const device = await post('/devices', { device_name: 'lines', host: '192.0.2.2', description })
  expect(device.body.description).toBe(description)
  const key = newSshKey('ed25519')
  const user = { user_name: 'lines', ssh_public_keys: [`${key.public.trim()}\n`], password: '𝒳 päss=\\"' }
  expect((await post('/users', user)).status).toBe(201)
  await h.signIn('lines', user.password)
  const credentials = [{ type: 'ssh_key', private_key: key.private.replaceAll('\n', '\r\n') }]
  expect((await post('/accounts', { account_name: 'k', device: 'srv1', credentials })).status).toBe(201)
})

describe('a table', () => {
  const take = (name: string, raw: string) =>
    h.call('POST', `/import/${name}`, { cookie, raw, headers: { 'content-type': 'text/csv' } })

  it.each([
    ['devices', '#device_name;host;description\nx;h;\ny;h;a\u0000\n', 3, 3, 'description'],
    ['users', '#user_name;display_name\nx;"a\nb"\n', 2, 2, 'display_name'],
    ['users', '#user_name;password\nx;a\u0000\n', 2, 2, 'password'],
    ['accounts', '#account_name;device;password\nx;srv1;a\u0000b\n', 2, 3, 'password'],
    ['targetgroups', '#group_name;session.accounts\nx;a|b\u0001\n', 2, 2, 'session.accounts'],
  ])('of %s is refused with row and column', async (name, text, row, column, field) => {
    const answer = await take(name, text)
    expect(answer.body).toMatchObject({ error: 'invalid_csv', details: [{ row, column, field }] })
    expect(answer.body.details[0].message).toMatch(/^expected text without control characters, got U\+/)
  })
})

it('is found wherever it stands', () => {
  const text = fc.string({ unit: 'grapheme' }).filter((one) => !/[\p{Cc}\p{Cs}]/u.test(one))
  const bad = fc.constantFrom('\u0000', '\u0007', '\u001b', '\u007f', '\u009b', '\ud800', '\udc00')
  fc.assert(
    fc.property(text, bad, text, fc.boolean(), (before, one, after, inLines) => {
      const field = inLines ? 'description' : 'x'
      expect(characterFlaws({ [field]: before + after })).toEqual([])
      expect(characterFlaws({ a: [{ [field]: before + one + after }] })).toMatchObject([
        { field: `a/0/${field}` },
      ])
    }),
  )
})
