/**
 * The certificate authority of a domain: a write-only key, shown by its public half, that no answer or event
 * contains.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { opensshKey } from '../../identity/keys.ts'
import { type Answer, type Harness, startHarness } from '../harness.ts'

let h: Harness
let cookie: string
const first = opensshKey('ed25519')
const second = opensshKey('ecdsa', 256)
const locked = opensshKey('ed25519', undefined, 'sesame')
const lineOf = ({ line }: { line: string }) => line.split(' ').slice(0, 2).join(' ')

beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await call('POST', '/devices', { device_name: 'srv1', host: '192.0.2.1' })
})
afterAll(() => h.close())

const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
  h.call(method, path, { cookie, ...(body === undefined ? {} : { body }) })

describe.each([
  ['/domains', 'domain', 'corp'],
  ['/devices/srv1/localdomains', 'localdomain', 'corp@srv1'],
])('of %s', (path, object_type, object) => {
  const one = `${path}/corp`
  beforeEach(async () => {
    await call('DELETE', one)
    const made = await call('POST', path, { domain_name: 'corp', ca_private_key: first.file })
    expect([made.status, made.body.ca_public_key]).toEqual([201, lineOf(first)])
  })

  it('is shown by its public key only', async () => {
    for (const answer of [await call('GET', one), await call('GET', path)]) {
      expect(answer.text).toContain(lineOf(first))
      expect(answer.text).not.toContain('PRIVATE')
      expect(answer.text).not.toContain('ca_private_key')
    }
    expect((await call('PUT', one, { ca_public_key: lineOf(second) })).body.error).toBe('unknown_field')
  })

  it('is changed, kept and taken away; each change changes the ETag and is an event', async () => {
    const tag = async () => (await call('GET', one)).headers['etag']
    const tags = [await tag()]
    const changed = await call('PUT', one, { ca_private_key: second.file, description: 'x' })
    expect(changed.body).toMatchObject({ ca_public_key: lineOf(second), description: 'x' })
    tags.push(await tag())
    expect((await call('PUT', one, { ca_private_key: locked.file, ca_passphrase: 'sesame' })).status).toBe(
      200,
    )
    tags.push(await tag())
    expect((await call('PUT', one, { description: 'y' })).body.ca_public_key).toBe(lineOf(locked))
    tags.push(await tag())
    expect((await call('PUT', one, { ca_private_key: null })).body.ca_public_key).toBeNull()
    tags.push(await tag())
    expect(new Set(tags).size).toBe(5)
    const events = (await h.events('secret.change')).filter((event) => event['object_type'] === object_type)
    expect(events.at(-1)).toMatchObject({ object, reason: 'it has no authority any more' })
    expect(events.at(-2)!['reason']).toMatch(/^authority SHA256:[A-Za-z0-9+/]{43}$/)
    const updates = (await h.events('object.update')).filter((event) => event['object_type'] === object_type)
    expect(updates.at(-1)!['changes']).toBe('{"ca_private_key":["[secret]","[secret]"]}')
    const all = JSON.stringify([...events, ...updates, ...(await h.events('object.create'))])
    expect(all).not.toContain('PRIVATE KEY')
    expect(all).not.toContain('sesame')
  })

  it.each([
    [{ ca_private_key: 'nonsense' }, 'ca_private_key'],
    [{ ca_private_key: first.line }, 'ca_private_key'],
    [{ ca_private_key: locked.file }, 'ca_passphrase'],
    [{ ca_private_key: locked.file, ca_passphrase: 'wrong' }, 'ca_passphrase'],
    [{ ca_passphrase: 'sesame' }, 'ca_passphrase'],
    [{ ca_private_key: null, ca_passphrase: 'sesame' }, 'ca_passphrase'],
  ])('%#: that cannot be used is refused, and nothing is changed', async (body, field) => {
    const answer = await call('PUT', one, body)
    expect([answer.status, answer.body.details?.[0]?.field]).toEqual([400, field])
    expect((await call('GET', one)).body.ca_public_key).toBe(lineOf(first))
  })
})

it('of a table: comes in, is kept by an empty cell, and does not go out', async () => {
  const cell = `"${first.file}"`
  const take = (text: string) =>
    h.call('POST', '/import/domains', { cookie, raw: text, headers: { 'content-type': 'text/csv' } })
  const answer = await take(`#domain_name;device;ca_private_key\ntabled;;${cell}\ntabled;srv1;${cell}\n`)
  expect(answer.body.map((row: { result: string }) => row.result)).toEqual(['created', 'created'])
  for (const path of ['/domains/tabled', '/devices/srv1/localdomains/tabled']) {
    expect((await call('GET', path)).body.ca_public_key).toBe(lineOf(first))
  }
  await take('#domain_name;device;description;ca_private_key\ntabled;;new;\n')
  expect((await call('GET', '/domains/tabled')).body).toMatchObject({
    description: 'new',
    ca_public_key: lineOf(first),
  })
  const wrong = await take('#domain_name;ca_private_key\nother;nonsense\n')
  expect(wrong.body.details[0]).toMatchObject({ row: 2, column: 2, field: 'ca_private_key' })
  const text = (await call('GET', '/export/domains')).text
  expect(text).toContain('tabled')
  expect(text).not.toContain('ca_private_key')
})

it('of a policy: the methods are a list without repetition, in their order', async () => {
  const made = await call('POST', '/connectionpolicies', { policy_name: 'own', protocol: 'SSH' })
  expect(made.body.authentication_methods).toEqual([
    'PUBKEY_VAULT',
    'PASSWORD_VAULT',
    'PASSWORD_MAPPING',
    'PASSWORD_INTERACTIVE',
  ])
  const put = (authentication_methods: string[]) =>
    call('PUT', '/connectionpolicies/own', { authentication_methods })
  const given = ['PUBKEY_AGENT_FORWARDING', 'PASSWORD_VAULT', 'PASSWORD_VAULT']
  expect((await put(given)).body.authentication_methods).toEqual(given.slice(0, 2))
  for (const bad of [[], ['PASSWORD'], ['pubkey_vault']]) expect((await put(bad)).status).toBe(400)
})
