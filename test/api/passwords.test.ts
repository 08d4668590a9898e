/** The policy for passwords, in every request that sets one. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
})
afterAll(() => h.close())

const call = (method: string, path: string, body: unknown) => h.call(method, path, { cookie, body })
const weak = (message: string) => ({
  status: 400,
  body: { error: 'weak_password', details: [{ field: 'password', message }] },
})

describe('a weak password', () => {
  it('makes no user', async () => {
    const user = { user_name: 'mjones', display_name: 'Mary Jones', email: 'mary.jones@example.com' }
    for (const [password, message] of [
      ['short', 'expected 8 characters at least'],
      ['Password123!', 'it is one that many people have'],
      ['MaryJones1', 'it is little more than a name of the user'],
      ['mjones-99', 'it is little more than a name of the user'],
    ] as const) {
      expect(await call('POST', '/users', { ...user, password })).toMatchObject(weak(message))
    }
    expect((await h.call('GET', '/users/mjones', { cookie })).status).toBe(404)
    expect((await call('POST', '/users', { ...user, password: 'known at the first door' })).status).toBe(201)
  })

  it('changes none: names are those that the user has and is to have', async () => {
    expect(await call('PUT', '/users/mjones', { password: 'Jones2026' })).toMatchObject(
      weak('it is little more than a name of the user'),
    )
    expect(await call('PUT', '/users/mjones', { user_name: 'msmith', password: 'msmith99' })).toMatchObject(
      weak('it is little more than a name of the user'),
    )
    expect((await call('PUT', '/users/mjones', { password: 'another at the door' })).status).toBe(200)
    expect(await h.signIn('mjones', 'another at the door')).toContain('=')
  })

  it('comes in with no table', async () => {
    const table = '#user_name;password\nnew1;passage one\nnew2;password\n'
    const answer = await h.call('POST', '/import/users', {
      cookie,
      raw: table,
      headers: { 'content-type': 'text/csv' },
    })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('it is one that many people have')
    expect((await h.call('GET', '/users/new1', { cookie })).status).toBe(404)
  })

  it('of an account on a target is the target’s business', async () => {
    await call('POST', '/domains', { domain_name: 'corp' })
    const credentials = [{ type: 'password', password: 'x' }]
    const made = await call('POST', '/domains/corp/accounts', { account_name: 'root', credentials })
    expect(made.status).toBe(201)
  })
})

it('nobody finds a password or its hash in the database', async () => {
  const rows = await h.sql('select * from users')
  expect(rows.length).toBeGreaterThan(1)
  expect(Buffer.from(JSON.stringify(rows)).toString()).not.toContain('argon2')
  expect(rows.every((row) => row['password_hash'] === null)).toBe(true)
})
