/** Servers of sign-ins tried by administrators, with a real directory behind. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MAX_TRIALS } from '../../src/identity/trials.ts'
import { LDAP_ADMIN, type Slapd, SUFFIX, startSlapd } from '../peers/directory.ts'
import { type FakeDirectory, fakeDirectory } from '../peers/fake-directory.ts'
import { certificateFiles } from '../peers/vnc/certificate.ts'
import { until } from '../until.ts'
import { type Harness, startHarness } from './harness.ts'

const PASSWORD = 'canary-of-alice'
let h: Harness
let cookie: string
let slapd: Slapd
let liar: FakeDirectory
let isSilent = false
beforeAll(async () => {
  const files = await certificateFiles()
  slapd = await startSlapd({ alice: PASSWORD, bob: PASSWORD }, files)
  const { cert } = files.pem
  files.remove()
  // It repeats the password that it is given.
  liar = await fakeDirectory((request) => {
    if (isSilent) return undefined
    if (request.op === 'search')
      return { entries: [{ dn: `uid=alice,${SUFFIX}`, attributes: { uid: ['alice'], entryUUID: ['1'] } }] }
    return request.op === 'bind' && request.dn !== ''
      ? { code: 80, words: `it is ${request.password}` }
      : { code: 0 }
  })
  h = await startHarness()
  cookie = await h.signIn()
  await must('/usergroups', { group_name: 'dba' })
  const ldap = { base_dn: SUFFIX, security: 'ldaps', bind_dn: LDAP_ADMIN.login, ca_certificates: cert }
  const common = { type: 'LDAP', host: '127.0.0.1', timeout: 2 }
  await must('/externalauths', {
    ...{ ...common, ldap, authentication_name: 'directory', port: slapd.ldaps },
    bind_password: LDAP_ADMIN.password,
  })
  await must('/externalauths', {
    ...{ ...common, ldap, authentication_name: 'wrong', port: slapd.ldaps },
    bind_password: 'canary-of-bind',
  })
  const { ca_certificates: _, bind_dn: _dn, ...plain } = { ...ldap, security: 'none' }
  await must('/externalauths', {
    ...common,
    timeout: 1,
    ldap: plain,
    authentication_name: 'liar',
    port: liar.port,
  })
  await must('/authdomains', {
    ...{ domain_name: 'corp', type: 'LDAP', external_auths: ['directory'], secondary_auth: ['wrong'] },
    group_attribute: 'cn',
  })
  await must('/authdomains/corp/mappings', { user_group: 'dba', external_group: 'alice' })
})
afterAll(async () => {
  await h.close()
  await slapd.stop()
  await liar.stop()
})

async function must(path: string, body: object) {
  const answer = await h.call('POST', path, { cookie, body })
  if (answer.status >= 300) throw new Error(`${path}: ${answer.text}`)
}
/** Each call is a minute after the one before. */
async function tryOn(path: string, body: object) {
  h.clock.now += 61_000
  cookie = await h.signIn()
  const answer = await h.call('POST', `${path}/test`, { cookie, body })
  expect(answer.status).toBe(200)
  expect(answer.text).not.toContain('canary')
  return answer.body as {
    ok: boolean
    steps: { server: string; step: string; ok: boolean; detail: string }[]
  }
}
const shortly = ({ steps }: Awaited<ReturnType<typeof tryOn>>) =>
  steps.map(({ server, step, ok }) => `${server} ${step}${ok ? '' : ' failed'}`)

test('a directory is tried up to the password of a user', async () => {
  const bare = await tryOn('/externalauths/directory', {})
  expect([bare.ok, ...shortly(bare)]).toEqual([true, 'directory reached', 'directory tls', 'directory bound'])
  const whole = await tryOn('/externalauths/directory', { user_name: 'alice', password: PASSWORD })
  expect([whole.ok, ...shortly(whole).slice(3)]).toEqual([
    true,
    'directory user_found',
    'directory groups',
    'directory signed_in',
  ])
  const wrong = await tryOn('/externalauths/directory', { user_name: 'alice', password: 'canary' })
  expect([wrong.ok, shortly(wrong).at(-1), wrong.steps.at(-1)?.detail]).toEqual([
    false,
    'directory signed_in failed',
    'wrong_password',
  ])
  const unknown = await tryOn('/externalauths/directory', { user_name: 'mallory' })
  expect(shortly(unknown).at(-1)).toBe('directory user_found failed')
  const unbound = await tryOn('/externalauths/wrong', { user_name: 'alice' })
  expect(shortly(unbound)).toEqual(['wrong reached', 'wrong tls', 'wrong bound failed'])
})

test('a domain is tried up to its mappings, and its second factors without the user', async () => {
  const mapped = await tryOn('/authdomains/corp', { user_name: 'alice' })
  expect(shortly(mapped).slice(3)).toEqual([
    'directory user_found',
    'directory groups',
    'wrong reached',
    'wrong tls',
    'wrong bound failed',
    ' mapped',
  ])
  expect(mapped.steps.at(-1)?.detail).toBe('the user groups dba, with the profile user')
  const unmapped = await tryOn('/authdomains/corp', { user_name: 'bob' })
  expect([shortly(unmapped).at(-1), unmapped.steps.at(-1)?.detail]).toEqual([
    ' mapped failed',
    expect.stringContaining('expected a mapping'),
  ])
  await h.addUser('alice@corp', 'user')
  const taken = await tryOn('/authdomains/corp', { user_name: 'alice' })
  expect(taken.steps.at(-1)).toMatchObject({ ok: false, detail: expect.stringContaining('local user') })
  // Trials make no persons.
  expect((await h.store.users.list()).items.map(({ userName }) => userName).sort()).toEqual([
    'admin',
    'alice@corp',
  ])
})

test('a server that repeats the password shows it to no administrator', async () => {
  const told = await tryOn('/externalauths/liar', { user_name: 'alice', password: PASSWORD })
  expect(told.steps.at(-1)).toMatchObject({ ok: false, detail: expect.stringContaining('[secret]') })
})

test('each trial is an event before it runs, and nothing runs without', async () => {
  const before = liar.connections()
  await tryOn('/externalauths/liar', { user_name: 'alice', password: PASSWORD })
  expect((await h.events('sign_in.test')).at(-1)).toMatchObject({
    ...{ user: 'admin', object_type: 'externalauth', object: 'liar', account: 'alice' },
  })
  expect(liar.connections()).toBeGreaterThan(before)
  h.audit.broken = true
  const [count, refused] = [
    liar.connections(),
    await h.call('POST', '/externalauths/liar/test', { cookie, body: {} }),
  ]
  h.audit.broken = false
  expect([refused.body.error, liar.connections()]).toEqual(['audit_unavailable', count])
  expect(JSON.stringify([await h.events(), h.log])).not.toContain('canary')
})

test('trials are few, and one at a time', async () => {
  h.clock.now += 61_000
  cookie = await h.signIn()
  const once = () => h.call('POST', '/externalauths/liar/test', { cookie, body: { user_name: 'alice' } })
  isSilent = true
  const before = liar.requests.length
  const first = once()
  await until('the trial that waits', () => before < liar.requests.length)
  expect((await once()).body.error).toBe('busy')
  expect((await first).body.ok).toBe(false)
  isSilent = false
  for (let at = 1; at < MAX_TRIALS; at++) expect((await once()).status).toBe(200)
  expect((await once()).body.error).toBe('busy')
  h.clock.now += 61_000
  expect((await once()).status).toBe(200)
})

test('a password without a user, and a name that is unknown, are refused', async () => {
  const body = { password: 'x' }
  const nobodys = await h.call('POST', '/externalauths/liar/test', { cookie, body })
  expect(nobodys.body.details[0].field).toBe('user_name')
  for (const path of ['/externalauths/none/test', '/authdomains/none/test'])
    expect((await h.call('POST', path, { cookie, body: {} })).status).toBe(404)
})

test('a server that is gone is said to be', async () => {
  await slapd.stop()
  const gone = await tryOn('/authdomains/corp', { user_name: 'alice' })
  expect([gone.ok, ...shortly(gone)]).toEqual([false, 'directory reached failed', 'wrong reached failed'])
  expect(gone.steps[0]?.detail).toMatch(/ECONNREFUSED|refused/)
})
