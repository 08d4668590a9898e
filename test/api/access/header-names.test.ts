/** Names outside ASCII in X-Auth-User, as clients send their bytes. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../harness.ts'

let h: Harness
let key: string
beforeAll(async () => {
  h = await startHarness()
  // The bytes of the first are those of the second too, which Latin-1 reads otherwise.
  for (const name of ['jürgen', 'jÃ¼rgen', 'æsir']) await h.addUser(name, 'user')
  const body = { key_name: 'names', profile: 'user' }
  const made = await h.call('POST', '/apikeys', { cookie: await h.signIn(), body })
  key = made.body.api_key
})
afterAll(() => h.close())

const utf8 = (name: string) => Buffer.from(name).toString('latin1')

test.each([
  ['UTF-8', utf8('jürgen'), 'jürgen'],
  ['UTF-8 that is not composed', utf8('ju\u0308rgen'), 'jürgen'],
  ['Latin-1', 'jürgen', 'jürgen'],
  ['Latin-1', 'æsir', 'æsir'],
  ['either: UTF-8 counts', 'jÃ¼rgen', 'jürgen'],
  ['the other of these', utf8('jÃ¼rgen'), 'jÃ¼rgen'],
])('%s', async (_title, sent, user) => {
  const headers = { 'x-auth-key': key, 'x-auth-user': sent }
  const answer = await h.call('GET', '/session', { headers })
  expect([answer.status, answer.body.user]).toEqual([200, user])
})
