/** Provisioning by SCIM: the person of a user, the gifts of groups, and the end of both. */

import { afterEach, beforeEach, expect, test } from 'vitest'
import { newUser } from '../../store/fixture.ts'
import { patchOf, type Setting, scimSetting } from './setting.ts'

let s: Setting
beforeEach(async () => {
  s = await scimSetting()
})
afterEach(() => s.close())

const corp = async () => (await s.h.store.authDomains.find('corp'))!
const person = (name: string) => s.h.store.users.find(`${name}@corp`)
const signIn = async (userName: string, stableId: string, groups: string[] = []) =>
  s.h.store.persons.signedIn((await corp()).id, { userName, stableId, groups })
const groupsOf = async (name: string) => {
  const found = await person(name)
  const groups = await Promise.all((found?.groupIds ?? []).map((id) => s.h.store.userGroups.find(id)))
  return groups.map((group) => group!.groupName)
}

test('a user with a mapped group is a person, with its attributes; without one there is none', async () => {
  const ann = await s.user('ann', {
    name: { givenName: 'Ann', familyName: 'Lee' },
    emails: [{ value: 'old@corp.example' }, { value: 'ann@corp.example', primary: true }],
  })
  expect(await person('ann')).toBeUndefined()
  await s.group('Operators', [ann.id])
  expect(await person('ann')).toMatchObject({
    ...{ userName: 'ann@corp', displayName: 'Ann Lee', email: 'ann@corp.example', profile: 'user' },
    isDisabled: false,
  })
  expect(await groupsOf('ann')).toEqual(['ops'])
  expect((await s.scim('GET', `/Users/${ann.id}`)).body.groups).toMatchObject([{ display: 'Operators' }])
})

test('groups that a sign-in shows do not count, nor does a sign-in of somebody unknown', async () => {
  const ann = await s.user('ann')
  await s.group('Operators', [ann.id])
  const made = await person('ann')
  expect((await signIn('ann', 'stable-1', ['Chiefs']))?.id).toBe(made?.id)
  expect(await groupsOf('ann')).toEqual(['ops'])
  expect(await signIn('eve', 'stable-9', ['Chiefs'])).toBeUndefined()
  // The name is bound to the id of its first sign-in.
  expect(await signIn('ann', 'stable-2')).toBeUndefined()
  expect((await signIn('renamed', 'stable-1'))?.id).toBe(made?.id)
})

test.each([
  ['a text, as Entra ID sends it', [{ op: 'Replace', path: 'active', value: 'False' }]],
  ['without a path, as Okta sends it', [{ op: 'replace', value: { active: false } }]],
])('a user is made inactive by %s, and made active again', async (_, operations) => {
  const ann = await s.user('ann')
  await s.group('Operators', [ann.id])
  const before = await signIn('ann', 'stable-1')
  const answer = await s.scim('PATCH', `/Users/${ann.id}`, patchOf(...operations))
  expect([answer.status, answer.body.active]).toEqual([200, false])
  expect((await person('ann'))?.isDisabled).toBe(true)
  expect(await signIn('ann', 'stable-1')).toBeUndefined()
  await s.scim('PATCH', `/Users/${ann.id}`, patchOf({ op: 'replace', path: 'active', value: true }))
  expect((await signIn('ann', 'stable-1'))?.id).toBe(before?.id)
})

test('a person loses access with the last mapped group, by whichever way', async () => {
  const [ann, ben] = [await s.user('ann'), await s.user('ben')]
  const ops = await s.group('Operators', [ann.id, ben.id])
  const dba = await s.group('Databases', [ann.id])
  expect((await groupsOf('ann')).sort()).toEqual(['dba', 'ops'])
  const one = { op: 'remove', path: `members[value eq "${ann.id}"]` }
  expect((await s.scim('PATCH', `/Groups/${ops.id}`, patchOf(one))).status).toBe(204)
  expect(await groupsOf('ann')).toEqual(['dba'])
  expect((await person('ann'))?.profile).toBe('auditor')
  await s.scim('PATCH', `/Groups/${dba.id}`, patchOf({ op: 'Replace', path: 'displayName', value: 'Others' }))
  expect([await groupsOf('ann'), (await person('ann'))?.isDisabled]).toEqual([[], true])
  await s.scim('DELETE', `/Groups/${ops.id}`)
  expect((await person('ben'))?.isDisabled).toBe(true)
  expect((await s.scim('GET', `/Groups/${ops.id}`)).status).toBe(404)
})

test('a user that is removed takes the person along', async () => {
  const ann = await s.user('ann')
  const ops = await s.group('Operators', [ann.id])
  expect((await s.scim('DELETE', `/Users/${ann.id}`)).status).toBe(204)
  expect(await person('ann')).toBeUndefined()
  expect((await s.scim('GET', `/Groups/${ops.id}`)).body.members).toEqual([])
})

test('a name of a local user, or one that looks like it, is not given', async () => {
  // From before there was the domain: the API gives such names to no user.
  await s.h.store.users.create({ ...newUser('eve@corp'), profile: 'product_administrator' })
  for (const userName of ['eve', 'EVE', 'е\u0076e']) {
    const answer = await s.scim('POST', '/Users', {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName,
    })
    expect([400, 409], userName).toContain(answer.status)
    expect(['uniqueness', 'invalidValue']).toContain(answer.body.scimType)
  }
  const mal = await s.user('mallory')
  const renamed = await s.scim(
    'PATCH',
    `/Users/${mal.id}`,
    patchOf({ op: 'replace', path: 'userName', value: 'Eve' }),
  )
  expect([renamed.status, renamed.body.scimType]).toEqual([409, 'uniqueness'])
  const ann = await s.user('ann')
  const taken = await s.scim(
    'PATCH',
    `/Users/${mal.id}`,
    patchOf({ op: 'replace', path: 'userName', value: 'ANN' }),
  )
  expect(taken.status).toBe(409)
  expect((await s.scim('GET', `/Users/${ann.id}`)).body.userName).toBe('ann')
})

test('each change is an event with the name of the token before it counts', async () => {
  const ann = await s.user('ann')
  const ops = await s.group('Operators', [ann.id])
  s.h.audit.broken = true
  for (const [method, path, body] of [
    ['DELETE', `/Users/${ann.id}`, undefined],
    ['DELETE', `/Groups/${ops.id}`, undefined],
    ['PATCH', `/Users/${ann.id}`, patchOf({ op: 'replace', path: 'active', value: false })],
  ] as const)
    expect((await s.scim(method, path, body)).status).toBe(503)
  s.h.audit.broken = false
  expect((await person('ann'))?.isDisabled).toBe(false)
  await s.scim('PATCH', `/Users/${ann.id}`, patchOf({ op: 'replace', path: 'active', value: false }))
  await s.scim('DELETE', `/Groups/${ops.id}`)
  const about = (await s.h.events()).filter(({ user }) => user === 'scim:idp@corp')
  expect(about.map(({ event, object_type, object }) => [event, object_type, object])).toEqual([
    ['auth.success', undefined, undefined],
    ['object.create', 'scimuser', 'ann@corp'],
    ['object.create', 'scimgroup', 'Operators@corp'],
    ['object.update', 'scimuser', 'ann@corp'],
    ['object.delete', 'scimgroup', 'Operators@corp'],
  ])
  expect(about[3]!['changes']).toBe('{"active":[true,false]}')
})

test('the last administrator stays one', async () => {
  const [ann, ben] = [await s.user('ann'), await s.user('ben')]
  const chiefs = await s.group('Chiefs', [ann.id, ben.id])
  expect((await person('ann'))?.profile).toBe('product_administrator')
  await s.h.sql("update users set is_disabled = 1 where user_name = 'admin'")
  const none = { op: 'remove', path: 'members' }
  const refused = await s.scim('PATCH', `/Groups/${chiefs.id}`, patchOf(none))
  expect([refused.status, refused.body.detail]).toEqual([
    409,
    expect.stringContaining('product_administrator'),
  ])
  expect([(await person('ann'))?.isDisabled, (await person('ben'))?.isDisabled]).toEqual([false, false])
  expect((await s.scim('DELETE', `/Users/${ann.id}`)).status).toBe(204)
  for (const [method, path, body] of [
    ['DELETE', `/Users/${ben.id}`, undefined],
    ['DELETE', `/Groups/${chiefs.id}`, undefined],
    ['PATCH', `/Groups/${chiefs.id}`, patchOf({ op: 'replace', path: 'displayName', value: 'x' })],
    ['PATCH', `/Users/${ben.id}`, patchOf({ op: 'replace', path: 'active', value: false })],
  ] as const)
    expect((await s.scim(method, path, body)).status, `${method} ${path}`).toBe(409)
  expect((await person('ben'))?.isDisabled).toBe(false)
})

test('a change of the binding forgets what was provisioned', async () => {
  const ann = await s.user('ann')
  await s.group('Operators', [ann.id])
  await s.must('PUT', '/authdomains/corp', { description: 'same' })
  expect(await person('ann')).toBeDefined()
  await s.must('PUT', '/authdomains/corp', { scim_identifier: null })
  expect(await person('ann')).toBeUndefined()
  expect((await s.scim('GET', '/Users')).status).toBe(401)
  expect((await signIn('ann', 'stable-1', ['Databases']))?.profile).toBe('auditor')
  await s.must('PUT', '/authdomains/corp', { scim_identifier: 'external_id' })
  expect((await s.scim('GET', '/Users')).body.totalResults).toBe(0)
  expect(await person('ann')).toBeUndefined()
})

test('bound by its external id, a user is the sign-in that shows it; another id is another person', async () => {
  await s.must('PUT', '/authdomains/corp', { scim_identifier: 'external_id' })
  const ann = await s.user('ann', { externalId: 'sub-1' })
  await s.group('Operators', [ann.id])
  const made = await person('ann')
  expect(await signIn('ann', 'sub-2')).toBeUndefined()
  // OpenID Connect shows the issuer, too.
  expect((await signIn('whatever', 'https://idp.example sub-1'))?.id).toBe(made?.id)
  expect(await signIn('ann', 'https://evil.example sub-1')).toBeUndefined()
  await s.scim('PATCH', `/Users/${ann.id}`, patchOf({ op: 'replace', path: 'externalId', value: 'sub-3' }))
  expect(await signIn('ann', 'https://idp.example sub-1')).toBeUndefined()
  const other = await signIn('ann', 'https://idp.example sub-3')
  expect(other?.id).not.toBe(made?.id)
  const bare = await s.scim('POST', '/Users', {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
    userName: 'x',
  })
  expect([bare.status, bare.body.scimType]).toEqual([400, 'invalidValue'])
})
