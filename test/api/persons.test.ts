/** Persons of authentication domains over the API: listed, searched and forgotten. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Id } from '../../src/model/objects.ts'
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

test('one who is forgotten with a second factor, of whichever kind, is an event of its own', async () => {
  const { persons, secondFactors, securityKeys, authDomains } = h.store
  const corp = (await authDomains.find('corp'))!
  const withCodes = async (id: Id) => {
    const sealed = Uint8Array.of(1)
    await secondFactors.begin(id, sealed, 1)
    await secondFactors.confirm(id, { sealed, time: 2, step: 5, drift: 0, digests: [] })
  }
  const withKey = async (id: Id) => {
    const key = { name: 'blue', credentialId: Uint8Array.of(1), publicKey: Uint8Array.of(1) }
    expect(await securityKeys.add(id, { ...key, signCount: 0, transports: [], created: 1 }, 16)).toBe('added')
  }
  for (const [userName, enrol, events] of [
    ['fay', withCodes, 1],
    ['gus', withKey, 1],
    ['hal', async () => undefined, 0],
  ] as const) {
    const before = (await h.events('factor.reset')).length
    const person = await persons.signedIn(corp.id, {
      userName,
      stableId: userName,
      groups: ['cn=admins,dc=lab'],
    })
    await enrol(person!.id)
    expect((await call('DELETE', `${PATH}/${userName}@corp`)).status).toBe(204)
    const reset = { user: 'admin', object_type: 'user', object: `${userName}@corp` }
    expect((await h.events('factor.reset')).slice(before)).toMatchObject(Array(events).fill(reset))
    expect(await secondFactors.find(person!.id)).toBeUndefined()
    expect(await securityKeys.list(person!.id)).toEqual([])
  }
})

test('the last sign-in is shown of users and persons, to the minute, in lists too', async () => {
  const { id } = (await h.store.users.find('ben@corp'))!
  const seen = async (path: string) => (await call('GET', path)).body.last_sign_in
  expect(await seen(`${PATH}/ben@corp`)).toBeNull()
  const at = (ms: number) => new Date(ms).toISOString()
  const begin = h.clock.now
  await h.store.users.noteSignIn(id, begin)
  await h.store.users.noteSignIn(id, begin + 59_999)
  expect(await seen(`${PATH}/ben@corp`)).toBe(at(begin))
  await h.store.users.noteSignIn(id, begin + 60_000)
  const listed = (await call('GET', PATH)).body as { user_name: string; last_sign_in: string }[]
  expect(listed.find((one) => one.user_name === 'ben@corp')?.last_sign_in).toBe(at(begin + 60_000))
  // A clock that was set back is followed.
  await h.store.users.noteSignIn(id, begin)
  expect(await seen(`${PATH}/ben@corp`)).toBe(at(begin))

  await h.addUser('u-late', 'user')
  expect(await seen('/users/u-late')).toBeNull()
  const wrong = { user: 'u-late', password: 'wrong' }
  expect((await h.call('POST', '/session', { body: wrong })).status).toBe(401)
  expect(await seen('/users/u-late')).toBeNull()
  await h.signIn('u-late')
  expect(await seen('/users/u-late')).toBe(at(h.clock.now))
  const users = (await call('GET', '/users?q=user_name=u-late')).body
  expect(users[0].last_sign_in).toBe(at(h.clock.now))
})

test('a domain is not made, nor renamed, beside users that are called like its persons', async () => {
  await h.addUser('joe@Beside', 'user')
  const send = (method: string, path: string, body: object) => h.call(method, path, { cookie, body })
  const domain = (domain_name: string) => ({ domain_name, type: 'LDAP', external_auths: ['directory'] })
  for (const name of ['beside', 'BESIDE']) {
    const answer = await send('POST', '/authdomains', domain(name))
    expect([answer.status, answer.body.details[0].field]).toEqual([400, 'domain_name'])
    expect(answer.text).toContain('joe@Beside')
  }
  expect((await send('POST', '/authdomains', domain('side'))).status).toBe(201)
  expect((await send('PUT', '/authdomains/side', { domain_name: 'beside' })).status).toBe(400)
  const named = { user_name: 'ina@side', password: 'a long pass phrase', profile: 'user' }
  expect((await send('POST', '/users', named)).body.details[0].field).toBe('user_name')
  expect((await call('DELETE', '/users/joe@Beside')).status).toBe(204)
  expect((await send('PUT', '/authdomains/side', { domain_name: 'beside' })).status).toBe(200)
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
