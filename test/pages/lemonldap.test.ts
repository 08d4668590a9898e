/** Sign-ins and sign-outs by OpenID Connect and by SAML at LemonLDAP::NG, in a browser without a script. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { ProviderCheck } from '../../src/identity/provider-check.ts'
import { type Harness, SITE, startHarness } from '../api/harness.ts'
import { CLIENT_SECRET, type LemonLdap, layLemonLdap } from '../peers/lemonldap.ts'
import type { Browser } from '../peers/oidc/browser.ts'
import { describeWithPeers } from '../peers/program.ts'
import { postedFields } from '../peers/simplesamlphp.ts'
import { FormBrowser, type Shown } from './browser.ts'

const ALICE = { name: 'Alice Ély', mail: 'alice@example.org', groups: ['admins', 'ops'] }
const CAROL = { name: 'Carol', mail: 'carol@example.org', groups: ['visitors'] }
/** Headers of a link of another site. */
const LINK = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

let h: Harness
let lemon: LemonLdap
let cookie: string

async function must(method: string, path: string, body?: object) {
  const answer = await h.call(method, path, { cookie, ...(body && { body }) })
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
  return answer.body
}
async function domain(name: string, auth: { type: string; [field: string]: unknown }) {
  await must('POST', '/externalauths', { authentication_name: name, timeout: 60, ...auth })
  const external_auths = [name]
  await must('POST', '/authdomains', { domain_name: `d-${name}`, type: auth.type, external_auths })
  for (const [user_group, external_group] of [
    ['linux', 'admins'],
    ['network', 'ops'],
  ])
    await must('POST', `/authdomains/d-${name}/mappings`, { user_group, external_group })
}
const location = ({ headers }: Shown) => String(headers['location'])
const inner = (url: string | URL) => String(url).slice(SITE.length)
const lastEvent = async (code: string) => (await h.events(code)).at(-1)
const person = async (name: string) => (await must('GET', `/authdomains/d-${name}/persons`))[0]
const account = async (browser: FormBrowser) => await browser.get('/account')

/** Goes to the portal and signs in; returns the page there, or the URL here that the portal leads to. */
async function atPortal(begin: string, browser: FormBrowser, window: Browser, user: string, password = user) {
  const begun = await browser.get(begin)
  expect(begun.status).toBe(303)
  return await lemon.signIn(window, location(begun), user, password, SITE)
}
async function byOidc(browser: FormBrowser, window: Browser, user = 'alice') {
  const { url } = await atPortal('/signin/oidc/login?return=/account', browser, window, user)
  return await browser.get(inner(url), LINK)
}
async function bySaml(browser: FormBrowser, window: Browser, user = 'alice') {
  const { text } = await atPortal('/signin/saml/corp?return=/account', browser, window, user)
  const headers = { ...LINK, origin: 'null' }
  return await browser.send('POST', '/signin/saml/corp/acs', { form: postedFields(text), headers })
}

const PEERS = ['plackup', 'lemonldap-ng', 'lasso', 'io-string', 'string-random', 'xml-simple'] as const
describeWithPeers('LemonLDAP::NG', PEERS, () => {
  beforeAll(async () => {
    ;[h, lemon] = await Promise.all([startHarness(), layLemonLdap()])
    h.clock.now = Date.now()
    cookie = await h.signIn()
    for (const group_name of ['linux', 'network']) await must('POST', '/usergroups', { group_name })
    const ca_certificates = lemon.ca
    await domain('login', {
      type: 'OIDC',
      client_secret: CLIENT_SECRET,
      oidc: {
        issuer: lemon.portal,
        client_id: 'bastion',
        client_authentication: 'client_secret_post',
        user_claim: 'preferred_username',
        requested_scopes: ['openid', 'profile', 'email', 'offline_access'],
        ca_certificates,
      },
    })
    const idp_metadata_url = `${lemon.portal}saml/metadata/idp`
    await domain('corp', { type: 'SAML', saml: { idp_metadata_url, user_attribute: 'uid', ca_certificates } })
    const { text: saml } = await new FormBrowser(h.api).get('/signin/saml/corp/metadata')
    await lemon.start({ oidc: `${SITE}/signin/oidc/login`, signedOut: `${SITE}/signin`, saml })
  })
  afterAll(() => Promise.all([h?.close(), lemon?.stop()]))
  beforeEach(() => {
    h.clock.now = Date.now()
    lemon.know({ alice: ALICE, carol: CAROL })
  })

  it.each([
    ['OpenID Connect', 'oidc', 'login', byOidc],
    ['SAML', 'saml', 'corp', bySaml],
  ] as const)('signs a person in by %s, with name, address and groups', async (_, method, name, signIn) => {
    const browser = new FormBrowser(h.api)
    const done = await signIn(browser, lemon.newBrowser())
    expect([done.status, location(done)]).toEqual([303, '/account'])
    expect((await account(browser)).text).toContain(`<dd>alice@d-${name}</dd>`)
    expect(await lastEvent('auth.success')).toMatchObject({ user: `alice@d-${name}`, method })
    expect(await person(name)).toMatchObject({
      user_name: `alice@d-${name}`,
      display_name: ALICE.name,
      email: ALICE.mail,
      groups: ['linux', 'network'],
    })
  })

  it.each([
    ['OpenID Connect', 'login', byOidc],
    ['SAML', 'corp', bySaml],
  ] as const)('lets no person without a mapped group in by %s', async (_, name, signIn) => {
    const browser = new FormBrowser(h.api)
    const refused = await signIn(browser, lemon.newBrowser(), 'carol')
    expect([refused.status, refused.headers['set-cookie']]).toEqual([401, undefined])
    expect(await lastEvent('auth.failure')).toMatchObject({ user: `carol@d-${name}`, reason: 'unmapped' })
  })

  it.each(['oidc/login', 'saml/corp'])(
    'keeps a person with a wrong password from coming back to %s',
    async (at) => {
      const page = await atPortal(
        `/signin/${at}`,
        new FormBrowser(h.api),
        lemon.newBrowser(),
        'alice',
        'wrong',
      )
      expect(page.url.href.startsWith(lemon.portal)).toBe(true)
      expect(page.text).not.toContain('SAMLResponse')
      expect(page.text).toContain('name="password"')
    },
  )

  it('is asked again by refresh: groups follow, and a person removed there is out', async () => {
    const browser = new FormBrowser(h.api)
    await byOidc(browser, lemon.newBrowser())
    const lost: string[] = []
    const check = new ProviderCheck({
      ...{ store: h.store, registry: h.registry, sessions: h.providerSessions },
      ...{ users: () => [], now: Date.now },
      onLost: (user, reason) => lost.push(`${user}: ${reason}`),
    })
    lemon.know({ alice: { ...ALICE, groups: ['ops'] } })
    await check.run()
    expect([lost, (await person('login')).groups, (await account(browser)).status]).toEqual([
      [],
      ['network'],
      200,
    ])
    lemon.know({})
    await check.run()
    expect(lost).toContainEqual(expect.stringContaining('alice@d-login: invalid_grant'))
    expect((await account(browser)).status).toBe(303)
  })

  it.each([
    ['OpenID Connect', '/signin/oidc/login', byOidc],
    ['SAML', '/signin/saml/corp', bySaml],
  ] as const)('ends its session after a sign-out here by %s, and leads back', async (_, begin, signIn) => {
    const [browser, window] = [new FormBrowser(h.api), lemon.newBrowser()]
    await signIn(browser, window)
    const left = await browser.submit(await account(browser), '/signout')
    const [, url = ''] = /<a class="button" href="([^"]+)"/.exec(left.text) ?? []
    expect((await account(browser)).status).toBe(303)
    const back = await window.open(new URL(url.replaceAll('&amp;', '&')), SITE)
    expect((await browser.get(inner(back.url), LINK)).status).toBe(200)
    const again = await window.open(new URL(location(await browser.get(begin))), SITE)
    expect(again.text).toContain('name="password"')
  })
})
