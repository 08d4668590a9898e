/** Sign-in at a provider by the pages, with a provider that this project did not write, and each kind of logout. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { passwordProof } from '../../src/identity/basis.ts'
import { ADMIN, type Harness, SITE, startHarness } from '../api/harness.ts'
import { groundsOn } from '../gate/grounds.ts'
import { CLIENT_SECRET, type LoginProvider, startLogins } from '../peers/oidc/logins.ts'
import { FormBrowser, type Shown } from './browser.ts'

const BELOW = `${SITE}/signin/oidc/login`
const CALLBACK = `${BELOW}/callback`

let h: Harness
let peer: LoginProvider
beforeAll(async () => {
  ;[h, peer] = await Promise.all([
    startHarness(),
    startLogins([
      {
        client_id: 'bastion',
        redirect_uris: [CALLBACK],
        post_logout_redirect_uris: [`${SITE}/signin`],
        backchannel_logout_uri: `${BELOW}/backchannel`,
        backchannel_logout_session_required: true,
      },
    ]),
  ])
  // Tokens are of the real time.
  h.clock.now = Date.now()
  peer.persons.set('u1', { name: 'alice', groups: ['ops'] })
  peer.persons.set('u2', { name: 'mallory', groups: [] })
  peer.deliver = async (url, body) => {
    const raw = await new FormBrowser(h.api).send('POST', url.pathname, { raw: body })
    delivered.push(raw.status)
    return new Response(raw.text, { status: raw.status })
  }
  const cookie = await h.signIn()
  const must = async (path: string, body: object) => {
    const answer = await h.call('POST', path, { cookie, body })
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
  }
  await must('/usergroups', { group_name: 'staff' })
  await must('/externalauths', {
    authentication_name: 'login',
    type: 'OIDC',
    timeout: 60,
    client_secret: CLIENT_SECRET,
    oidc: {
      issuer: peer.issuer,
      client_id: 'bastion',
      user_claim: 'preferred_username',
      ca_certificates: peer.ca,
    },
  })
  await must('/authdomains', { domain_name: 'corp', type: 'OIDC', external_auths: ['login'] })
  await must('/authdomains/corp/mappings', { user_group: 'staff', external_group: 'ops' })
}, 300_000)
afterAll(() => Promise.all([h?.close(), peer?.stop()]))
const delivered: number[] = []
beforeEach(() => {
  delivered.length = 0
})

/** Headers of a link of another site. */
const LINK = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
const place = ({ headers, status }: Shown) => [status, headers['location']]
/** Goes to the provider and returns the page that its answer leads to. */
async function atProvider(browser: FormBrowser, window = peer.newBrowser(), sub = 'u1'): Promise<Shown> {
  const begun = await browser.get('/signin/oidc/login?return=/account')
  expect(begun.status).toBe(303)
  const back = await peer.signIn(window, new URL(String(begun.headers['location'])), sub, CALLBACK)
  return await browser.get(back.pathname + back.search, LINK)
}
const isSignedIn = async (browser: FormBrowser) => (await browser.get('/account')).status === 200
/** Returns the sessions, the newest last. */
const newestSessions = async () =>
  (await h.store.providerSessions.list()).sort((a, b) => (a.id < b.id ? -1 : 1))
const last = async (code: string) => (await h.events(code)).at(-1)

test('the page offers the provider, and a person signs in there', async () => {
  const browser = new FormBrowser(h.api)
  expect((await browser.get('/signin')).text).toContain('href="/signin/oidc/login">Sign in with login')
  expect(place(await atProvider(browser))).toEqual([303, '/account'])
  expect((await browser.get('/account')).text).toContain('<dd>alice@corp</dd>')
  expect(await last('auth.success')).toMatchObject({ user: 'alice@corp', method: 'oidc', protocol: 'HTTPS' })
  const cookie = `sallyport_session=${browser.cookies.get('sallyport_session')}`
  expect((await h.call('GET', '/session', { cookie })).body.user).toBe('alice@corp')
})

test('the way of the last time stands first, and is marked', async () => {
  const browser = new FormBrowser(h.api)
  const order = async () => {
    const { text } = await browser.get('/signin')
    const places = [text.indexOf('<input id="user"'), text.indexOf('href="/signin/oidc/login')]
    return [places[0]! < places[1]! ? 'password' : 'provider', text.includes('used last')]
  }
  expect(await order()).toEqual(['password', false])
  await atProvider(browser)
  await browser.submit(await browser.get('/account'), '/signout')
  expect(await order()).toEqual(['provider', true])
  await browser.submit(await browser.get('/signin'), '/signin', ADMIN)
  await browser.submit(await browser.get('/account'), '/signout')
  expect(await order()).toEqual(['password', false])
})

test('a person whom no mapping knows is refused as on every front', async () => {
  const page = await atProvider(new FormBrowser(h.api), peer.newBrowser(), 'u2')
  expect([page.status, page.headers['set-cookie']]).toEqual([401, undefined])
  expect(page.text).toContain('or the user may not sign in')
  expect(await last('auth.failure')).toMatchObject({
    user: 'mallory@corp',
    reason: 'unmapped',
    method: 'oidc',
  })
})

test('an answer that another browser has begun, or that came before, signs nobody in', async () => {
  const [one, two] = [new FormBrowser(h.api), new FormBrowser(h.api)]
  const begun = await one.get('/signin/oidc/login')
  const back = await peer.signIn(
    peer.newBrowser(),
    new URL(String(begun.headers['location'])),
    'u1',
    CALLBACK,
  )
  const path = back.pathname + back.search
  const stolen = await two.get(path)
  expect([stolen.status, stolen.text.includes('in another browser')]).toEqual([403, true])
  expect((await one.get(path)).status).toBe(303)
  expect((await one.get(path)).status).toBe(403)
  expect(await isSignedIn(two)).toBe(false)
})

test('words of the provider are shown as text', async () => {
  const browser = new FormBrowser(h.api)
  const begun = await browser.get('/signin/oidc/login')
  const state = new URL(String(begun.headers['location'])).searchParams.get('state')!
  const error = { error: 'access_denied', error_description: '<script>1</script>', state, iss: peer.issuer }
  const page = await browser.get(`/signin/oidc/login/callback?${new URLSearchParams(error)}`)
  expect([page.status, page.text.includes('<script>')]).toEqual([403, false])
  expect(page.text).toContain('access_denied &lt;script&gt;')
  expect((await last('auth.failure'))?.['reason']).toContain('access_denied')
})

test('an unknown provider is no page; one that is away is said so, and counts as no failure', async () => {
  const browser = new FormBrowser(h.api)
  expect((await browser.get('/signin/oidc/none')).status).toBe(404)
  peer.fault = (path) => (path === '/token' ? 503 : undefined)
  const page = await atProvider(browser)
  peer.fault = undefined
  expect([page.status, page.text.includes('cannot be reached')]).toEqual([503, true])
  expect(await last('auth.unavailable')).toMatchObject({ method: 'oidc', object: 'login' })
})

test('signing out here signs out at the provider, which leads back', async () => {
  const [browser, window] = [new FormBrowser(h.api), peer.newBrowser()]
  await atProvider(browser, window)
  const left = await browser.submit(await browser.get('/account'), '/signout')
  const [, url = ''] = /^0;url=(.*)$/.exec(String(left.headers['refresh'])) ?? []
  expect(Object.keys(Object.fromEntries(new URL(url).searchParams)).sort()).toEqual([
    'client_id',
    'id_token_hint',
    'post_logout_redirect_uri',
  ])
  expect(await isSignedIn(browser)).toBe(false)
  const page = await window.open(new URL(url), SITE)
  const done = await window.submit(page, { logout: 'yes' }, SITE)
  expect(done.url.href).toBe(`${SITE}/signin`)
})

test('a logout at the provider ends what rests on its session, by the back channel', async () => {
  const [browser, other, window] = [new FormBrowser(h.api), new FormBrowser(h.api), peer.newBrowser()]
  await atProvider(browser, window)
  await atProvider(other)
  const session = (await newestSessions()).at(-2)
  const user = (await h.store.users.find('alice@corp'))!
  const basis = {
    userId: user.id,
    address: '',
    proof: passwordProof(user, ['login'], { providerSession: session!.id }),
  }
  expect(await groundsOn(h.store)().flawOf(basis, '')).toBeUndefined()
  const page = await window.open(new URL(`${peer.issuer}/session/end`), SITE)
  await window.submit(page, { logout: 'yes' }, SITE)
  expect(delivered).toEqual([200])
  expect([await isSignedIn(browser), await isSignedIn(other)]).toEqual([false, true])
  expect(await last('auth.withdraw')).toMatchObject({ user: 'alice@corp', reason: 'a logout at login' })
  expect(await groundsOn(h.store)().flawOf(basis, '')).toBe('the provider has ended the sign-in')
})

test('a logout that is no token, or one of another kind, ends nothing', async () => {
  const browser = new FormBrowser(h.api)
  await atProvider(browser)
  const session = (await newestSessions()).at(-1)
  const { idToken = '' } = await tokensOf(session!.id)
  for (const raw of ['', 'logout_token=', 'logout_token=x.y.z', `logout_token=${idToken}`]) {
    const answer = await browser.send('POST', '/signin/oidc/login/backchannel', { raw })
    expect([answer.status, JSON.parse(answer.text)]).toEqual([400, { error: 'invalid_request' }])
  }
  expect(await isSignedIn(browser)).toBe(true)
  expect((await last('auth.failure'))?.['reason']).toMatch(/^a logout of login: token refused by event/)
})
const tokensOf = async (id: string) => {
  const session = (await h.store.providerSessions.find(id))!
  return h.providerSessions.tokensOf(session)
}

test('a page of the provider in a frame ends its session by iss and sid, without a cookie', async () => {
  const browser = new FormBrowser(h.api)
  await atProvider(browser)
  const { sid } = (await newestSessions()).at(-1)!
  const frame = async (query: Record<string, string>) => {
    const url = `/signin/oidc/login/frontchannel?${new URLSearchParams(query)}`
    return await new FormBrowser(h.api).get(url, {
      'sec-fetch-site': 'cross-site',
      'sec-fetch-dest': 'iframe',
    })
  }
  for (const query of [{}, { iss: peer.issuer }, { iss: 'https://evil.lab', sid }])
    expect((await frame(query as Record<string, string>)).status).toBe(400)
  expect((await frame({ iss: peer.issuer, sid: 'guessed' })).status).toBe(200)
  expect(await isSignedIn(browser)).toBe(true)
  const answer = await frame({ iss: peer.issuer, sid })
  expect(answer.status).toBe(200)
  expect(answer.headers['content-security-policy']).toContain(`frame-ancestors ${peer.issuer}`)
  expect(await isSignedIn(browser)).toBe(false)
})
