/** The sign-in page without a script: forms, cookies and header fields. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { codeOf, stepAt } from '../../src/identity/second-factor/totp.ts'
import { ADMIN, type Harness, startHarness } from '../api/harness.ts'

import { FormBrowser, type Shown } from './browser.ts'

let h: Harness
beforeAll(async () => {
  h = await startHarness()
})
afterAll(() => h.close())

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const bytesOfBase32 = (text: string) =>
  Buffer.from(
    [...text]
      .map((one) => ALPHABET.indexOf(one).toString(2).padStart(5, '0'))
      .join('')
      .match(/.{8}/g)!
      .map((bits) => parseInt(bits, 2)),
  )
const location = ({ headers, status }: Shown) => [status, headers['location']]
const signedIn = async (credentials = ADMIN) => {
  const browser = new FormBrowser(h.api)
  const done = await browser.submit(await browser.get('/signin'), '/signin', credentials)
  expect(location(done)).toEqual([303, '/account'])
  return browser
}

describe('signing in', () => {
  it('works by name and password, and leads to the page that was asked for', async () => {
    const browser = new FormBrowser(h.api)
    expect(location(await browser.get('/'))).toEqual([303, '/account'])
    expect(location(await browser.get('/account'))).toEqual([303, '/signin?return=%2Faccount'])
    const page = await browser.get('/signin?return=/account?x=1')
    const done = await browser.submit(page, '/signin', ADMIN)
    expect(location(done)).toEqual([303, '/account?x=1'])
    expect((await browser.get('/account')).text).toContain('<dd>admin</dd>')
    expect(location(await browser.get('/signin'))).toEqual([303, '/account'])
    const [event] = (await h.events('auth.success')).slice(-1)
    expect(event).toMatchObject({ user: 'admin', method: 'page_password', protocol: 'HTTPS' })
  })

  it('leads to no other site, whatever the form says', async () => {
    const browser = new FormBrowser(h.api)
    const fields = { ...ADMIN, return: '//evil.example/account' }
    const done = await browser.submit(await browser.get('/signin'), '/signin', fields)
    expect(location(done)).toEqual([303, '/account'])
  })

  it('is refused in one way for an unknown user, a disabled one and a wrong password', async () => {
    await h.addUser('gone', 'user')
    await h.store.users.update((await h.store.users.find('gone'))!.id, { isDisabled: true })
    const browser = new FormBrowser(h.api)
    const page = await browser.get('/signin')
    const texts = new Set<string>()
    for (const [user, password] of [
      ['nobody', 'x'],
      ['gone', 'gone password'],
      ['admin', 'wrong'],
    ] as const) {
      const refused = await browser.submit(page, '/signin', { user, password })
      expect(refused.status).toBe(401)
      expect(refused.text).toContain('The user name or the password is wrong, or the user may not sign in.')
      expect(refused.headers['set-cookie']).toBeUndefined()
      texts.add(refused.text.replace(`value="${user}"`, ''))
    }
    expect(texts.size).toBe(1)
    const failures = (await h.events('auth.failure')).slice(-3)
    expect(failures.map(({ reason }) => reason)).toEqual(['unknown_user', 'disabled', 'wrong_password'])
  })

  it('ends an earlier sign-in of the same browser, and takes no cookie that was planted', async () => {
    const browser = new FormBrowser(h.api)
    const page = await browser.get('/signin')
    const cookie = await h.signIn()
    const [name = '', token = ''] = cookie.split('=')
    browser.cookies.set(name, token)
    // The form of before is none of this sign-in.
    expect((await browser.submit(page, '/signin', ADMIN)).status).toBe(403)
    browser.cookies.delete(name)
    const planted = 'A'.repeat(43)
    browser.cookies.set(name, planted)
    const fresh = await browser.get('/signin')
    await browser.submit(fresh, '/signin', ADMIN)
    expect(browser.cookies.get(name)).not.toBe(planted)
  })

  it('has an event, or is none', async () => {
    const browser = new FormBrowser(h.api)
    const page = await browser.get('/signin')
    h.audit.broken = true
    const failed = await browser.submit(page, '/signin', ADMIN)
    h.audit.broken = false
    expect(failed.status).toBe(503)
    expect(failed.headers['content-type']).toContain('text/html')
    expect(browser.cookies.has('sallyport_session')).toBe(false)
  })

  it('asks for a one-time code, and enrols a person that has to have one', async () => {
    await h.addUser('tina', 'user')
    const cookie = await h.signIn()
    const body = { group_name: 'codes', users: ['tina'], second_factor: 'required' }
    expect((await h.call('POST', '/usergroups', { cookie, body })).status).toBe(201)
    const browser = new FormBrowser(h.api)
    const credentials = { user: 'tina', password: 'tina password' }
    const enrol = await browser.submit(await browser.get('/signin'), '/signin', credentials)
    expect(enrol.text).toContain('<svg class="qr" role="img"')
    const [, shown = ''] = /<code>([A-Z2-7 ]+)<\/code>/.exec(enrol.text) ?? []
    const secret = bytesOfBase32(shown.replaceAll(' ', ''))
    const again = await browser.submit(enrol, '/signin', { answer0: '000000' })
    expect(again.text).toContain('That was not its current code.')
    const codes = await browser.submit(again, '/signin', { answer0: codeOf(secret, stepAt(h.clock.now)) })
    expect(codes.text.match(/<li>[a-z2-7-]+<\/li>/gi)).toHaveLength(10)
    expect(location(await browser.submit(codes, '/signin'))).toEqual([303, '/account'])

    h.clock.now += 60_000
    const next = new FormBrowser(h.api)
    const code = await next.submit(await next.get('/signin'), '/signin', credentials)
    expect(code.text).toContain('autocomplete="one-time-code"')
    // The round is this browser's alone.
    const thief = new FormBrowser(h.api)
    const [, challenge = ''] = /name="challenge" value="([^"]+)"/.exec(code.text) ?? []
    const stolen = { challenge, answer0: codeOf(secret, stepAt(h.clock.now)) }
    expect((await thief.submit(await thief.get('/signin'), '/signin', stolen)).status).toBe(401)
    expect(location(await next.submit(code, '/signin', { answer0: stolen.answer0 }))).toEqual([
      303,
      '/account',
    ])
  })
})

describe('signing out', () => {
  it('ends the sign-in, by a form of the page only', async () => {
    const browser = await signedIn()
    const token = browser.cookies.get('sallyport_session')
    expect((await browser.send('POST', '/signout', { form: {} })).status).toBe(403)
    expect((await browser.get('/account')).status).toBe(200)
    const out = await browser.submit(await browser.get('/account'), '/signout')
    expect(out.text).toContain('You are signed out.')
    browser.cookies.set('sallyport_session', token!)
    expect(location(await browser.get('/account'))[0]).toBe(303)
  })
})

describe('the ways in', () => {
  it('begin with the one of the last time, and the browser keeps no name', async () => {
    const browser = await signedIn()
    expect(browser.cookies.get('__Host-sallyport_way')).toBe('password')
    for (const value of browser.cookies.values()) expect(value).not.toContain('admin')
  })
})

describe('languages', () => {
  it('are by the browser, or by a choice that is kept', async () => {
    const browser = new FormBrowser(h.api)
    browser.headers = { 'accept-language': 'de-CH, en;q=0.5' }
    const german = await browser.get('/signin')
    expect(german.text).toContain('<html lang="de">')
    expect(german.text).toContain('Benutzername')
    expect((await browser.get('/signin?lang=fr')).text).toContain('<html lang="fr">')
    expect((await browser.get('/signin')).text).toContain('<html lang="fr">')
    expect((await browser.get('/signin?lang=<b>')).text).toContain('<html lang="fr">')
  })
})

describe('header fields and cookies', () => {
  it('let no script, no frame and no other site near', async () => {
    const browser = new FormBrowser(h.api)
    const { headers, text } = await browser.get('/signin')
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    )
    expect(headers).toMatchObject({
      'x-frame-options': 'DENY',
      'referrer-policy': 'same-origin',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'cross-origin-opener-policy': 'same-origin',
    })
    expect(text).not.toMatch(/<script|<style| style=| on\w+=/)
    expect(String(headers['set-cookie'])).toMatch(
      /^__Host-sallyport_form=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    )
  })

  it('cache the style sheet, whose address changes with it', async () => {
    const browser = new FormBrowser(h.api)
    const [, url = ''] =
      /<link rel="stylesheet" href="([^"]+)"/.exec((await browser.get('/signin')).text) ?? []
    const style = await browser.get(url)
    expect(style.headers['content-type']).toBe('text/css; charset=utf-8')
    expect(style.headers['cache-control']).toContain('immutable')
  })
})

describe('requests from elsewhere', () => {
  it('are refused: forms without a token, with one of another browser, and of another site', async () => {
    const [own, other] = [new FormBrowser(h.api), new FormBrowser(h.api)]
    const page = await own.get('/signin')
    await other.get('/signin')
    const before = (await h.events()).length
    expect((await other.submit(page, '/signin', ADMIN)).status).toBe(403)
    expect((await own.send('POST', '/signin', { form: ADMIN })).status).toBe(403)
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
    ] as Record<string, string>[]) {
      own.headers = headers
      const refused = await own.submit(page, '/signin', ADMIN)
      expect([refused.status, refused.headers['content-type']]).toEqual([403, 'text/html; charset=utf-8'])
    }
    expect((await h.events()).length).toBe(before)
  })

  it('may follow a link, but not show a page in a frame', async () => {
    const browser = await signedIn()
    const from = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
    expect((await browser.get('/account', { ...from, 'sec-fetch-dest': 'document' })).status).toBe(200)
    for (const dest of ['iframe', 'frame', 'object', 'embed'])
      expect((await browser.get('/account', { ...from, 'sec-fetch-dest': dest })).status).toBe(403)
    expect(
      (await browser.get('/account', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })).status,
    ).toBe(403)
  })

  it('are of one kind: pages take forms, the API takes JSON, and pages know the cookie alone', async () => {
    const browser = new FormBrowser(h.api)
    await browser.get('/signin')
    const json = { 'content-type': 'application/json' }
    expect(
      (await browser.send('POST', '/signin', { headers: json, raw: JSON.stringify(ADMIN) })).status,
    ).toBe(415)
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const wrong = await h.call('POST', '/session', { headers: form, raw: 'user=admin&password=x' })
    expect(wrong.body.error).toBe('unsupported_media_type')
    const cookie = await h.signIn()
    const made = await h.call('POST', '/apikeys', { cookie, body: { key_name: 'k', profile: 'auditor' } })
    const key = { 'x-auth-key': made.body.api_key, 'x-auth-user': 'admin' }
    expect((await browser.get('/account', key)).status).toBe(303)
    expect((await browser.get('/account', { authorization: 'Bearer a.b.c' })).status).toBe(303)
  })

  it('are bounded: bodies, fields, and names that stand twice', async () => {
    const browser = new FormBrowser(h.api)
    await browser.get('/signin')
    const statusOf = async (raw: string) => (await browser.send('POST', '/signin', { raw })).status
    expect(await statusOf(`user=${'a'.repeat(70_000)}`)).toBe(413)
    expect(await statusOf(Array.from({ length: 40 }, (_, index) => `f${index}=1`).join('&'))).toBe(400)
    expect(await statusOf('user=admin&user=root')).toBe(400)
    expect(await statusOf('user=admin%00')).toBe(400)
  })

  it('find no page beside the table', async () => {
    const browser = new FormBrowser(h.api)
    const html = { accept: 'text/html' }
    for (const path of ['/nothing', '/signin/../api/nothing', '/account/nothing', '//account', '/api'])
      expect((await browser.get(path, html)).status, path).toBe(404)
    expect((await browser.get('/api/signin')).status).toBe(404)
    expect((await browser.get('/session')).status).toBe(404)
    // Another spelling of the API's is the API.
    const spelled = await browser.get('/%61pi/users', html)
    expect([spelled.status, spelled.headers['content-type']]).toEqual([
      401,
      'application/json; charset=utf-8',
    ])
  })
})

describe('what a page shows', () => {
  it('is text, whatever stands in it', async () => {
    const evil = `"><img src=x onerror=attack()>`
    const browser = new FormBrowser(h.api)
    const page = await browser.get(
      `/signin?return=${encodeURIComponent(evil)}&lang=${encodeURIComponent(evil)}`,
    )
    const refused = await browser.submit(page, '/signin', {
      user: evil,
      password: evil,
      return: evil,
      way: evil,
    })
    for (const { text } of [page, refused]) expect(text).not.toContain('<img')
    expect(refused.text).toContain('&quot;&gt;&lt;img src=x onerror=attack()&gt;')
  })
})
