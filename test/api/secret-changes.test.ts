/** Changes of secrets by the API: the rights and comments that they need, their events, and the list of a domain. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Answer, type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
const call = (method: string, path: string, body?: unknown, as = cookie): Promise<Answer> =>
  h.call(method, path, { cookie: as, ...(body === undefined ? {} : { body }) })
const must = async (method: string, path: string, body?: unknown) => {
  const answer = await call(method, path, body)
  expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300)
  return answer.body
}
const refused = async (method: string, path: string, body: unknown, as?: string) => {
  const { status, body: told } = await call(method, path, body, as)
  return [status, told.error, told.details?.[0]?.field]
}

const CHANGING = {
  enable_password_change: true,
  password_change_plugin: 'Unix',
  password_change_plugin_parameters: { host: '192.0.2.1' },
}
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await must('POST', '/passwordchangepolicies', { password_change_policy_name: 'long', password_length: 40 })
  await must('POST', '/domains', {
    ...{ domain_name: 'corp', ...CHANGING },
    password_change_policy: 'long',
  })
  for (const account_name of ['a', 'b'])
    await must('POST', '/accounts', {
      ...{ account_name, domain: 'corp' },
      credentials: [{ type: 'password', password: `of ${account_name}` }],
    })
})
afterAll(() => h.close())

it('are announced with user, account and comment before they begin', async () => {
  await must('POST', '/accounts/a@corp/change', { wait: 0, comment: 'left the company' })
  await must('POST', '/domains/corp/change', {})
  const [one, all] = await h.events('secret.request')
  expect(one).toMatchObject({
    ...{ user: 'admin', client_ip: '127.0.0.1', method: 'demand', reason: 'left the company' },
    ...{ object_type: 'account', object: 'a@corp', account: 'a', domain: 'corp' },
  })
  expect(all).toMatchObject({ user: 'admin', object_type: 'domain', object: 'corp', domain: 'corp' })
  h.audit.broken = true
  const { status } = await call('POST', '/accounts/b@corp/change', { wait: 0 })
  h.audit.broken = false
  expect(status).toBe(503)
})

it('need a comment if they are forced, and the right to end sessions', async () => {
  for (const path of ['/accounts/a@corp/change', '/domains/corp/change']) {
    expect(await refused('POST', path, { force: true })).toEqual([400, 'invalid_field', 'comment'])
    expect(await refused('POST', path, { force: true, comment: ' ' })).toEqual([
      400,
      'invalid_field',
      'comment',
    ])
    await must('POST', path, { force: true, comment: 'stolen', ...(path.startsWith('/acc') && { wait: 0 }) })
    expect((await h.events('secret.request')).at(-1)).toMatchObject({ method: 'force', reason: 'stolen' })
  }
  await must('POST', '/profiles', { profile_name: 'keeper', rights: { accounts: 'modify' } })
  await h.addUser('keeper', 'user')
  await must('PUT', '/users/keeper', { profile: 'keeper' })
  const keeper = await h.signIn('keeper')
  const forced = { force: true, comment: 'x', wait: 0 }
  expect(await refused('POST', '/accounts/a@corp/change', forced, keeper)).toEqual([
    403,
    'forbidden',
    undefined,
  ])
})

it('are listed for a domain, account by account, in pages', async () => {
  const listed = await must('GET', '/domains/corp/history?sort=account')
  expect(listed.map(({ account, kind }: Record<string, string>) => [account, kind])).toEqual([
    ['a', 'change'],
    ['b', 'change'],
  ])
  expect(await must('GET', '/domains/corp/history?q=account%3DB&fields=account,cause')).toEqual([
    { account: 'b', cause: 'demand' },
  ])
  const second = await call('GET', '/domains/corp/history?sort=account&limit=1&offset=1')
  expect(second.body.map(({ account }: { account: string }) => account)).toEqual(['b'])
  expect((await call('GET', '/domains/none/history')).status).toBe(404)
})

it('of a policy that no password of its domains would meet is refused', async () => {
  const impossible = {
    ...{ lower_chars: null, upper_chars: null, digit_chars: null, special_chars: 1 },
    exclude_chars: '!#$%&()*+,-./;<=>@[]^_{|}~',
  }
  // Colons and question marks are enough, but no password of Unix has a colon.
  expect(await refused('PUT', '/passwordchangepolicies/long', impossible)).toEqual([
    400,
    'invalid_field',
    'password_length',
  ])
  const { body } = await call('PUT', '/passwordchangepolicies/long', impossible)
  expect(body.details[0].message).toContain('the plugin Unix')
  const own = { password_change_policy_name: 'own', password_length: 50, ...impossible }
  await must('POST', '/passwordchangepolicies', own)
  expect(await refused('PUT', '/domains/corp', { password_change_policy: 'own' })).toEqual([
    400,
    'invalid_field',
    'password_change_policy',
  ])
})

it('of a domain are set up only with the rights to change accounts and authorizations', async () => {
  const full = { devices: 'modify', accounts: 'modify', authorizations: 'modify' }
  for (const missing of ['accounts', 'authorizations'] as const) {
    const name = `without-${missing}`
    await must('POST', '/profiles', { profile_name: name, rights: { ...full, [missing]: 'view' } })
    await h.addUser(name, 'user')
    await must('PUT', `/users/${name}`, { profile: name })
    const as = await h.signIn(name)
    for (const [method, path, more] of [
      ['PUT', '/domains/corp', {}],
      ['POST', '/domains', { domain_name: 'other' }],
    ] as const) {
      expect(await refused(method, path, { ...more, ...CHANGING }, as)).toEqual([403, 'forbidden', undefined])
      expect(await refused(method, path, { ...more, admin_account: 'a@corp' }, as)).toEqual([
        403,
        'forbidden',
        undefined,
      ])
    }
    expect((await call('PUT', '/domains/corp', { description: name }, as)).status).toBe(200)
  }
})

it('hold checkouts up, which are 409 secret_changing after a while', async () => {
  await must('POST', '/usergroups', { group_name: 'all', users: ['admin'] })
  await must('POST', '/targetgroups', {
    group_name: 'all',
    password_retrieval: { accounts: ['b@corp'] },
  })
  await must('POST', '/authorizations', {
    ...{ user_group: 'all', target_group: 'all' },
    authorize_password_retrieval: true,
  })
  const begun = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<'valid'>()
  const { verify } = h.changer
  h.changer.verify = () => {
    begun.resolve()
    return answered.promise
  }
  await must('POST', '/accounts/b@corp/change', { wait: 0 })
  await begun.promise
  const path = '/accounts/b@corp/checkout'
  expect(await refused('POST', path, {})).toEqual([409, 'secret_changing', undefined])
  h.changer.verify = verify
  answered.resolve('valid')
})
