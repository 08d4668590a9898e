/** `secondary_auth` of local users, over the API. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  for (const authentication_name of ['codes', 'tokens'])
    await must('POST', '/externalauths', {
      authentication_name,
      type: 'RADIUS',
      host: '192.0.2.9',
      shared_secret: 'a long one',
    })
})
afterAll(() => h.close())

const call = (method: string, path: string, body?: object) =>
  h.call(method, path, { cookie, ...(body && { body }) })
async function must(method: string, path: string, body?: object) {
  const answer = await call(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
  return answer.body
}

test('names external authentications, which cannot be removed then, and follow their name', async () => {
  expect((await must('POST', '/users', { user_name: 'eve' })).secondary_auth).toEqual([])
  const ivy = await must('POST', '/users', {
    user_name: 'ivy',
    secondary_auth: ['TOKENS', 'codes', 'tokens'],
  })
  expect(ivy.secondary_auth).toEqual(['tokens', 'codes'])
  expect((await call('DELETE', '/externalauths/codes')).body).toMatchObject({ error: 'in_use' })
  await must('PUT', '/externalauths/codes', { authentication_name: 'otp' })
  expect((await must('GET', '/users/ivy')).secondary_auth).toEqual(['tokens', 'otp'])
  expect(await must('GET', '/users?q=secondary_auth=otp&fields=user_name')).toEqual([{ user_name: 'ivy' }])
  for (const [name, error] of [
    ['nowhere', 'unknown_reference'],
    ['local_password', 'unknown_reference'],
  ])
    expect((await call('PUT', '/users/ivy', { secondary_auth: ['otp', name] })).body).toMatchObject({
      error,
      details: [{ field: 'secondary_auth/1' }],
    })
  await must('PUT', '/users/ivy', { secondary_auth: ['tokens'] })
  await must('DELETE', '/externalauths/otp')
})

test('is not taken away by who may not change the user, nor moved with the server', async () => {
  const rights = { profiles: 'modify', users: 'view' }
  await must('POST', '/profiles', { profile_name: 'servers', rights })
  await must('POST', '/users', { user_name: 'keeper', profile: 'servers', password: 'keeper password' })
  const keeper = await h.signIn('keeper')
  await must('PUT', '/users/ivy', { secondary_auth: ['tokens'] })
  for (const [path, body] of [
    ['/users/ivy', { secondary_auth: [] }],
    ['/externalauths/tokens', { host: 'evil.lab' }],
  ] as const)
    expect((await h.call('PUT', path, { cookie: keeper, body })).status).toBe(403)
})

test('leaves one administrator with all rights who depends on no server', async () => {
  const root = { user_name: 'root', password: 'a very long one', profile: 'product_administrator' }
  await must('POST', '/users', { ...root, secondary_auth: ['tokens'] })
  const refused = await call('PUT', '/users/admin', { secondary_auth: ['tokens'] })
  expect([refused.status, refused.body.error]).toEqual([409, 'last_administrator'])
  await must('PUT', '/users/root', { secondary_auth: [] })
  await must('PUT', '/users/admin', { secondary_auth: ['tokens'] })
  await must('PUT', '/users/admin', { secondary_auth: [] })
})
