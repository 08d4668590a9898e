/** Persons of authentication domains over the API: listed, searched and forgotten. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { searchEstate } from './estate.ts'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await searchEstate(h, cookie)
})
afterAll(() => h.close())

const PATH = '/authdomains/corp/persons'
const call = (method: string, path: string, as = cookie) => h.call(method, path, { cookie: as })

test('they are listed with what their mappings gave them, and searched like all else', async () => {
  const all = await call('GET', PATH)
  expect(all.headers['x-total-count']).toBe('2')
  expect(all.body[0]).toMatchObject({ user_name: 'ann@corp', profile: 'auditor', groups: ['dba'] })
  expect(all.body[0].url).toContain(`/persons/${all.body[0].id}`)
  const found = await call('GET', `${PATH}?q=groups=linux-admins`)
  expect(found.body.map((one: { user_name: string }) => one.user_name)).toEqual(['ben@corp'])
  expect((await call('GET', '/authdomains/Dmz/persons')).body).toEqual([])
  expect((await call('GET', `${PATH}/ann@corp`)).body).toEqual(all.body[0])
  expect((await call('GET', '/authdomains/Dmz/persons/ann@corp')).status).toBe(404)
  expect((await call('GET', `${PATH}/admin`)).status).toBe(404)
})

test('one is forgotten after its event, and only through its own domain', async () => {
  expect((await call('DELETE', '/authdomains/Dmz/persons/ann@corp')).status).toBe(404)
  expect((await call('DELETE', `${PATH}/admin`)).status).toBe(404)
  h.audit.broken = true
  expect((await call('DELETE', `${PATH}/ann@corp`)).body.error).toBe('audit_unavailable')
  h.audit.broken = false
  expect((await call('GET', `${PATH}/ann@corp`)).status).toBe(200)
  expect((await call('DELETE', `${PATH}/ann@corp`)).status).toBe(204)
  expect((await call('GET', `${PATH}/ann@corp`)).status).toBe(404)
  expect((await h.events('object.delete')).at(-1)).toMatchObject({
    ...{ user: 'admin', object_type: 'person', object: 'ann@corp' },
  })
})

test('one with rights beyond those of the caller stays', async () => {
  const rights = { users: 'modify' }
  const made = await h.call('POST', '/profiles', { cookie, body: { profile_name: 'desk', rights } })
  expect(made.status).toBe(201)
  const desk = { user_name: 'u-desk', password: 'u-desk password', profile: 'desk' }
  expect((await h.call('POST', '/users', { cookie, body: desk })).status).toBe(201)
  const corp = (await h.store.authDomains.find('corp'))!
  await h.store.persons.signedIn(corp.id, { userName: 'eve', stableId: 'eve', groups: ['cn=admins,dc=lab'] })
  const answer = await call('DELETE', `${PATH}/eve@corp`, await h.signIn('u-desk'))
  expect([answer.status, answer.body.error]).toEqual([403, 'profile_exceeds_own'])
  expect((await call('GET', `${PATH}/eve@corp`)).status).toBe(200)
})
