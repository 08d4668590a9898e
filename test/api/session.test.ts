import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SignIns } from '../../src/api/access/sign-ins.ts'
import { MAX_SIGN_INS_PER_USER, SIGN_IN_IDLE, SIGN_IN_LIFETIME } from '../../src/api/http/limits.ts'
import { ADMIN, type Harness, startHarness } from './harness.ts'

let h: Harness
beforeAll(async () => {
  h = await startHarness()
})
afterAll(() => h.close())

describe('signing in by password', () => {
  it('answers with a cookie that only HTTPS and no script gets to see', async () => {
    const answer = await h.call('POST', '/session', { body: ADMIN })
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ user: 'admin', profile: 'product_administrator' })
    const cookie = String(answer.headers['set-cookie'])
    expect(cookie).toMatch(/^sallyport_session=[A-Za-z0-9_-]{43}; /)
    expect(cookie).toContain('; Secure')
    expect(cookie).toContain('; HttpOnly')
    expect(cookie).toContain('; SameSite=Lax')
    expect(answer.headers['cache-control']).toBe('no-store')
  })

  it('has an event if it was one, and leaves nothing without', async () => {
    const { audit, signIns } = h.store
    const signedIn = async () => [
      (await h.events('auth.success')).length,
      ...(await h.sql('select count(*) as total from sign_ins')),
    ]
    const before = await signedIn()
    const failing: [object, string][] = [
      [signIns, 'begin'],
      [audit, 'append'],
    ]
    for (const [repository, name] of failing) {
      const undo = Object.getOwnPropertyDescriptor(repository, name)!
      Object.defineProperty(repository, name, { ...undo, value: () => Promise.reject(new Error('it fails')) })
      const answer = await h.call('POST', '/session', { body: ADMIN })
      Object.defineProperty(repository, name, undo)
      expect(answer.status).toBeGreaterThanOrEqual(500)
      expect(await signedIn()).toEqual(before)
    }
  })

  it('makes a new cookie each time, and the one before is worth nothing any more', async () => {
    const first = await h.signIn()
    const again = await h.call('POST', '/session', { body: ADMIN, cookie: first })
    const second = String(again.headers['set-cookie']).split(';')[0] ?? ''
    expect(second).not.toBe(first)
    expect((await h.call('GET', '/session', { cookie: first })).status).toBe(401)
    expect((await h.call('GET', '/session', { cookie: second })).status).toBe(200)
  })

  it('ignores a cookie that the client made up before signing in', async () => {
    const planted = `sallyport_session=${'A'.repeat(43)}`
    const answer = await h.call('POST', '/session', { body: ADMIN, cookie: planted })
    expect(String(answer.headers['set-cookie'])).not.toContain(planted)
    expect((await h.call('GET', '/session', { cookie: planted })).status).toBe(401)
  })

  it('gives one answer for an unknown user, a disabled one and a wrong password, and tells the audit which', async () => {
    await h.addUser('gone', 'user')
    const gone = await h.store.users.find('gone')
    await h.store.users.update(gone?.id ?? '', { isDisabled: true })
    const bodies = [
      { user: 'nobody', password: 'x' },
      { user: 'gone', password: 'gone password' },
      { user: 'admin', password: 'wrong' },
    ]
    const answers = []
    for (const body of bodies) answers.push(await h.call('POST', '/session', { body }))
    for (const answer of answers) {
      expect(answer.status).toBe(401)
      expect(answer.text).toBe(answers[0]?.text)
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
    const failures = (await h.events('auth.failure')).slice(-3)
    expect(failures.map(({ reason }) => reason)).toEqual(['unknown_user', 'disabled', 'wrong_password'])
    expect(failures.every((event) => event['method'] === 'api_password')).toBe(true)
  })

  it('ends with DELETE /session', async () => {
    const cookie = await h.signIn()
    expect((await h.call('DELETE', '/session', { cookie })).status).toBe(204)
    expect((await h.call('GET', '/session', { cookie })).status).toBe(401)
  })

  it('is not given without its event', async () => {
    h.audit.broken = true
    const answer = await h.call('POST', '/session', { body: ADMIN })
    h.audit.broken = false
    expect(answer.body.error).toBe('audit_unavailable')
    expect(answer.headers['set-cookie']).toBeUndefined()
  })

  it('is stored as a hash, which is no cookie', async () => {
    const cookie = await h.signIn()
    const rows = await h.sql('select * from sign_ins')
    const token = cookie.split('=')[1]!
    const hash = createHash('sha256').update(token).digest()
    expect(rows.some((row) => hash.equals(row['token_hash'] as Uint8Array))).toBe(true)
    for (const row of rows) {
      for (const value of Object.values(row).filter((one) => one !== null)) {
        const bytes = Buffer.from(typeof value === 'number' ? String(value) : (value as string))
        expect(bytes.includes(token) || bytes.includes(Buffer.from(token, 'base64url'))).toBe(false)
        for (const encoding of ['hex', 'base64url', 'base64', 'latin1'] as const) {
          const stolen = `sallyport_session=${encodeURIComponent(bytes.toString(encoding))}`
          expect((await h.call('GET', '/session', { cookie: stolen })).status).toBe(401)
        }
      }
    }
  })

  it('is noted as used each minute, and counted per user over all processes', async () => {
    const other = await h.open()
    const cookie = await h.signIn()
    const hash = createHash('sha256').update(cookie.split('=')[1]!).digest()
    const lastUse = async () => (await other.signIns.find(hash))?.lastUse
    const begin = h.clock.now
    h.clock.now += 59_999
    expect((await h.call('GET', '/session', { cookie })).status).toBe(200)
    expect(await lastUse()).toBe(begin)
    h.clock.now += 1
    expect((await h.call('GET', '/session', { cookie })).status).toBe(200)
    expect(await lastUse()).toBe(begin + 60_000)
    const elsewhere = new SignIns(other.signIns, randomBytes)
    const admin = (await other.users.find('admin'))!
    for (let n = 0; n < MAX_SIGN_INS_PER_USER; n++) await elsewhere.begin(admin, h.clock.now)
    expect((await h.call('GET', '/session', { cookie })).status).toBe(401)
    const kept = await elsewhere.begin(admin, h.clock.now)
    expect((await h.call('GET', '/session', { cookie: `sallyport_session=${kept}` })).status).toBe(200)
    await elsewhere.end(kept)
    expect((await h.call('GET', '/session', { cookie: `sallyport_session=${kept}` })).status).toBe(401)
    await other.close()
  })

  it('ends after a time without requests, and after a longer one whatever happens', async () => {
    const idle = await h.signIn()
    h.clock.now += SIGN_IN_IDLE - 1
    expect((await h.call('GET', '/session', { cookie: idle })).status).toBe(200)
    h.clock.now += SIGN_IN_IDLE
    expect((await h.call('GET', '/session', { cookie: idle })).status).toBe(401)

    const busy = await h.signIn()
    const end = h.clock.now + SIGN_IN_LIFETIME
    while (h.clock.now + SIGN_IN_IDLE / 2 < end) {
      h.clock.now += SIGN_IN_IDLE / 2
      expect((await h.call('GET', '/session', { cookie: busy })).status).toBe(200)
    }
    h.clock.now = end
    expect((await h.call('GET', '/session', { cookie: busy })).status).toBe(401)
  })

  it('ends at once when the user is disabled, expires, changes the password or is removed', async () => {
    const admin = await h.signIn()
    await h.addUser('ops2', 'operator')
    const changes = [
      { is_disabled: true },
      { is_disabled: false, expiration_date: '2030-01-01T00:00:00Z' },
      { expiration_date: null, password: 'another one' },
    ]
    for (const [index, body] of changes.entries()) {
      const ops2 = await h.store.users.find('ops2')
      await h.store.users.update(ops2?.id ?? '', { isDisabled: false, expirationDate: undefined })
      const cookie = await h.signIn('ops2')
      expect((await h.call('GET', '/users', { cookie })).status, String(index)).toBe(200)
      expect((await h.call('PUT', '/users/ops2', { cookie: admin, body })).status).toBe(200)
      expect((await h.call('GET', '/users', { cookie })).status, String(index)).toBe(401)
    }
    const cookie = await h.signIn('ops2', 'another one')
    expect((await h.call('DELETE', '/users/ops2', { cookie: admin })).status).toBe(204)
    expect((await h.call('GET', '/session', { cookie })).status).toBe(401)
  })

  it('ends when another process sets the password, or signing in by one is no longer allowed', async () => {
    await h.addUser('ops3', 'operator')
    const { id } = (await h.store.users.find('ops3'))!
    const status = async (cookie: string) => (await h.call('GET', '/session', { cookie })).status
    const before = await h.signIn('ops3')
    await h.store.users.setPasswordHash(id, (await h.store.users.secretsOf(id)).passwordHash!)
    expect(await status(before)).toBe(401)
    const after = await h.signIn('ops3')
    expect(await status(after)).toBe(200)
    await h.store.users.update(id, { userAuths: ['local_sshkey'] })
    expect(await status(after)).toBe(401)
  })

  it('with an old password fails, also when the new one is set meanwhile', async () => {
    const admin = await h.signIn()
    await h.addUser('racer', 'user')
    const passwords = ['racer password', ...Array.from({ length: 10 }, (_, n) => `passage ${n} of many`)]
    for (const [n, password] of passwords.slice(1).entries()) {
      const [changed, signedIn] = await Promise.all([
        h.call('PUT', '/users/racer', { cookie: admin, body: { password } }),
        h.call('POST', '/session', { body: { user: 'racer', password: passwords[n] } }),
      ])
      expect(changed.status).toBe(200)
      const cookie = String(signedIn.headers['set-cookie'] ?? '').split(';')[0]!
      if (signedIn.status === 200) expect((await h.call('GET', '/session', { cookie })).status).toBe(401)
    }
  })

  it('stays when the whole object is sent back as it was', async () => {
    const cookie = await h.signIn()
    const { profile, user_auths, is_disabled, groups } = (await h.call('GET', '/users/admin', { cookie }))
      .body
    const body = { profile, user_auths, is_disabled, groups, display_name: 'Adm' }
    expect((await h.call('PUT', '/users/admin', { cookie, body })).status).toBe(200)
    expect((await h.call('GET', '/session', { cookie })).status).toBe(200)
  })

  it('is held up after too many failures, which the audit calls locked', async () => {
    await h.addUser('locky', 'user')
    for (let i = 0; i < 12; i++) await h.call('POST', '/session', { body: { user: 'locky', password: 'no' } })
    const right = await h.call('POST', '/session', { body: { user: 'locky', password: 'locky password' } })
    expect(right.status).toBe(401)
    expect(await h.events('auth.locked')).toMatchObject([{ user: 'locky', method: 'api_password' }])
  })
})

describe('signing in by API key', () => {
  async function newKey(body: object): Promise<string> {
    const answer = await h.call('POST', '/apikeys', { cookie: await h.signIn(), body })
    expect(answer.status, answer.text).toBe(201)
    return String(answer.body.api_key)
  }

  it('shows the key once and keeps its hash only', async () => {
    const key = await newKey({ key_name: 'once', profile: 'auditor' })
    expect(key).toMatch(/^sallyport_[A-Za-z0-9_-]{43}$/)
    const cookie = await h.signIn()
    for (const path of ['/apikeys/once', '/apikeys']) {
      expect((await h.call('GET', path, { cookie })).text).not.toContain(key)
    }
    expect(JSON.stringify(await h.events())).not.toContain(key)
    expect(h.log.join('')).not.toContain(key)
    expect((await h.call('GET', '/users', { headers: { 'x-auth-key': key } })).status).toBe(200)
    expect((await h.call('GET', '/users', { headers: { 'x-auth-key': `${key}x` } })).status).toBe(401)
  })

  it('intersects the profiles of key and user, the lower right wins', async () => {
    await h.addUser('aud1', 'auditor')
    const admin = await newKey({ key_name: 'strong', profile: 'product_administrator' })
    const weak = await newKey({ key_name: 'weak', profile: 'user' })
    const as = (key: string, user: string) => ({ 'x-auth-key': key, 'x-auth-user': user })
    expect((await h.call('GET', '/users', { headers: as(admin, 'aud1') })).status).toBe(200)
    const post = { headers: as(admin, 'aud1'), body: { group_name: 'g' } }
    expect((await h.call('POST', '/usergroups', post)).status).toBe(403)
    expect((await h.call('GET', '/users', { headers: as(weak, 'admin') })).status).toBe(403)
    expect((await h.call('GET', '/targets', { headers: as(weak, 'admin') })).status).toBe(200)
  })

  it('refuses unknown and disabled users, and ids as names, with 401', async () => {
    const key = await newKey({ key_name: 'k1', profile: 'product_administrator' })
    const admin = await h.store.users.find('admin')
    for (const user of ['nobody', 'gone', admin?.id ?? '']) {
      const headers = { 'x-auth-key': key, 'x-auth-user': user }
      expect((await h.call('GET', '/users', { headers })).status, user).toBe(401)
    }
  })

  it('refuses X-Auth-User beside a cookie alone: it would not act as that user', async () => {
    const cookie = await h.signIn()
    expect((await h.call('GET', '/users', { cookie, headers: { 'x-auth-user': 'aud1' } })).status).toBe(401)
  })

  it('enforces the addresses and the expiry of a key', async () => {
    const elsewhere = await newKey({ key_name: 'k2', profile: 'auditor', ip_source: ['192.0.2.0/24'] })
    const here = await newKey({ key_name: 'k3', profile: 'auditor', ip_source: ['127.0.0.0/8'] })
    const until = new Date(h.clock.now + 60_000).toISOString()
    const brief = await newKey({ key_name: 'k4', profile: 'auditor', expiration_date: until })
    const status = async (key: string) =>
      (await h.call('GET', '/users', { headers: { 'x-auth-key': key } })).status
    expect(await status(elsewhere)).toBe(401)
    expect(await status(here)).toBe(200)
    expect(await status(brief)).toBe(200)
    h.clock.now += 60_000
    expect(await status(brief)).toBe(401)
    expect((await h.events('auth.failure')).slice(-2)).toMatchObject([
      { method: 'api_key', reason: 'key k2 is not for this address' },
      { method: 'api_key', reason: 'key k4 has expired' },
    ])
  })

  it('of a key that is bound does not reach beyond its bounds by another key', async () => {
    const bound = { key_name: 'bound', profile: 'product_administrator', ip_source: ['127.0.0.0/8'] }
    const headers = { 'x-auth-key': await newKey(bound) }
    const loosen = { ip_source: [] }
    const make = { key_name: 'unbound', profile: 'product_administrator' }
    for (const answer of [
      await h.call('PUT', '/apikeys/bound', { headers, body: loosen }),
      await h.call('POST', '/apikeys', { headers, body: make }),
    ])
      expect([answer.status, answer.body.error]).toEqual([403, 'key_is_bound'])
  })

  it('needs a user context for what only a user can do', async () => {
    const key = await newKey({ key_name: 'k5', profile: 'product_administrator' })
    const answer = await h.call('GET', '/targets', { headers: { 'x-auth-key': key } })
    expect([answer.status, answer.body.error]).toEqual([403, 'user_context_required'])
  })

  it('is no sign-in: a key gets no cookie, in whatever place it is sent', async () => {
    const key = await newKey({ key_name: 'k7', profile: 'product_administrator' })
    const signedIn = async () =>
      (await h.events('auth.success')).filter(({ method }) => method === 'api_password').length
    const before = await signedIn()
    const withKey = { 'x-auth-key': key, 'x-auth-user': 'admin' }
    const tries = [
      { headers: withKey },
      { headers: withKey, body: {} },
      { headers: withKey, body: { user: 'admin', password: '' } },
      { headers: withKey, body: { user: 'admin', password: key } },
      { headers: { 'x-auth-key': key }, body: { user: 'k7', password: key } },
      { body: { user: 'key:k7', password: key } },
      { body: { user: 'admin', password: 'x', key } },
      { headers: { authorization: `Bearer ${key}` }, body: { user: 'admin', password: key } },
    ]
    for (const sent of tries) {
      const answer = await h.call('POST', '/session', sent)
      expect([400, 401]).toContain(answer.status)
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
    for (const sent of [
      { cookie: `sallyport_session=${key}` },
      { headers: { authorization: `Bearer ${key}` } },
      { headers: { authorization: `Basic ${btoa(`admin:${key}`)}` } },
    ]) {
      expect((await h.call('GET', '/session', sent)).status).toBe(401)
    }
    // A request with a key gets the user's answer, but no cookie.
    const who = await h.call('GET', '/session', { headers: withKey })
    expect([who.status, who.headers['set-cookie']]).toEqual([200, undefined])
    expect(await signedIn()).toBe(before)
  })

  it('signs nobody in beside a good password: the cookie is the user’s, with all their rights and no more', async () => {
    await h.addUser('plain', 'user')
    const key = await newKey({ key_name: 'k8', profile: 'product_administrator' })
    const headers = { 'x-auth-key': key, 'x-auth-user': 'admin' }
    const body = { user: 'plain', password: 'plain password' }
    const answer = await h.call('POST', '/session', { headers, body })
    expect(answer.body).toMatchObject({ user: 'plain', profile: 'user' })
    const cookie = String(answer.headers['set-cookie']).split(';')[0] ?? ''
    expect((await h.call('GET', '/users', { cookie })).status).toBe(403)
  })

  it('writes its use to the audit once in a while, not at every request', async () => {
    const key = await newKey({ key_name: 'k6', profile: 'auditor' })
    for (let i = 0; i < 5; i++) await h.call('GET', '/users', { headers: { 'x-auth-key': key } })
    const uses = (await h.events('auth.success')).filter(({ user }) => user === 'key:k6')
    expect(uses).toMatchObject([{ method: 'api_key', profile: 'auditor' }])
  })
})

describe('cross-site requests', () => {
  it.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ])('are refused: %o', async (headers) => {
    const cookie = await h.signIn()
    const get = await h.call('GET', '/users', { cookie, headers })
    expect([get.status, get.body.error]).toEqual([403, 'cross_site'])
    expect((await h.call('POST', '/session', { body: ADMIN, headers })).status).toBe(403)
  })

  it('of the same origin pass, and a link may lead to the reference', async () => {
    const cookie = await h.signIn()
    const own = {
      'sec-fetch-site': 'same-origin',
      origin: 'https://bastion.example',
      host: 'bastion.example',
    }
    expect((await h.call('GET', '/users', { cookie, headers: own })).status).toBe(200)
    const link = { 'sec-fetch-site': 'cross-site' }
    expect((await h.call('GET', '/doc/Usage.html', { headers: link })).status).toBe(200)
  })
})
