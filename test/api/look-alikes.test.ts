/** Names of users that look like those of others. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newUser } from '../store/fixture.ts'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
})
afterAll(() => h.close())

const add = async (user_name: string) => {
  const { status, body } = await h.call('POST', '/users', { cookie, body: { user_name } })
  return [status, body.error]
}

it('are refused, whichever was there first, and by renaming too', async () => {
  expect(await add('сор')).toEqual([201, undefined])
  expect(await add('cop')).toEqual([409, 'duplicate'])
  expect(await add('COP')).toEqual([409, 'duplicate'])
  expect(await add('bob')).toEqual([201, undefined])
  expect(await add('ВОВ')).toEqual([409, 'duplicate'])
  expect(await add('Вова')).toEqual([201, undefined])
  const renamed = await h.call('PUT', '/users/Вова', { cookie, body: { user_name: 'ВОВ' } })
  expect([renamed.status, renamed.body.error]).toEqual([409, 'duplicate'])
  expect((await h.call('PUT', '/users/сор', { cookie, body: { user_name: 'Сор' } })).status).toBe(200)
  expect(await add('cop')).toEqual([409, 'duplicate'])
  expect((await h.call('DELETE', '/users/сор', { cookie })).status).toBe(204)
  expect(await add('cop')).toEqual([201, undefined])
})

it('are refused in one table, too', async () => {
  const table = '#user_name;profile\nроса;user\npoca;user\n'
  const headers = { 'content-type': 'text/csv' }
  const { status } = await h.call('POST', '/import/users?separator=;', { cookie, headers, raw: table })
  expect(status).toBe(409)
  expect(await h.store.users.find('роса')).toBeUndefined()
})

it('may stay as they are, if they were there before', async () => {
  const { id } = await h.store.users.create(newUser('ol\u200dd'))
  const whole = (await h.call('GET', `/users/${id}`, { cookie })).body
  expect(whole.user_name).toBe('ol\u200dd')
  const { id: _id, url: _url, last_sign_in: _last, ...body } = whole
  expect(
    (await h.call('PUT', `/users/${id}`, { cookie, body: { ...body, display_name: 'Old' } })).status,
  ).toBe(200)
  const other = await h.call('PUT', `/users/${id}`, { cookie, body: { user_name: 'ol\u200dder' } })
  expect([other.status, other.body.error]).toEqual([400, 'invalid_field'])
  expect(await add('ne\u200dw')).toEqual([400, 'invalid_field'])
  expect(await add('аdmin')).toEqual([400, 'invalid_field'])
})

it('sign in nobody', async () => {
  for (const user of ['аdmin', 'admin\u200d', 'ａｄｍｉｎ']) {
    const answer = await h.call('POST', '/session', {
      body: { user, password: 'correct horse battery staple' },
    })
    expect([answer.status, answer.body.error]).toEqual([401, 'invalid_credentials'])
  }
})
