/** Sign-ins and sign-outs by SAML at SimpleSAMLphp, in a browser without a script, and in Chromium. */
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Harness, SITE, startHarness } from '../api/harness.ts'
import { describeWithPeers } from '../peers/program.ts'
import {
  IdpBrowser,
  type KnownService,
  postedFields,
  type SimpleSamlPhp,
  startSimpleSamlPhp,
} from '../peers/simplesamlphp.ts'
import { type CertificateFiles, certificateFiles } from '../peers/vnc/certificate.ts'
import { FormBrowser, fieldsOf, type Shown } from './browser.ts'

const ALICE = {
  password: 'Alice-Pass1',
  attributes: {
    uid: ['alice'],
    mail: ['alice@example.org'],
    displayName: ['Alice Ély'],
    groups: ['admins', 'ops'],
  },
}
const CAROL = { password: 'Carol-Pass1', attributes: { uid: ['carol'], groups: ['visitors'] } }
const FOREIGN = {
  origin: 'null',
  'sec-fetch-site': 'cross-site',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
}

let h: Harness
let idp: SimpleSamlPhp
let cookie: string

async function must(method: string, path: string, body?: object) {
  const answer = await h.call(method, path, { cookie, ...(body && { body }) })
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
  return answer.body
}
const location = ({ headers }: Shown) => String(headers['location'])
const at = (name: string, place: string) => `/signin/saml/${name}${place}`

describeWithPeers('SAML at SimpleSAMLphp', ['php', 'simplesamlphp'], () => {
  beforeAll(async () => {
    ;[h, idp] = await Promise.all([startHarness(), startSimpleSamlPhp({ alice: ALICE, carol: CAROL })])
    h.clock.now = Date.now()
    cookie = await h.signIn()
    const idp_metadata = await (await fetch(idp.metadataUrl)).text()
    const common = { type: 'SAML', saml: { idp_metadata, user_attribute: 'uid' } }
    await must('POST', '/usergroups', { group_name: 'linux' })
    for (const [name, saml] of [
      ['corp', {}],
      [
        'crypt',
        { require_encryption: true, name_id_format: 'transient', id_attribute: 'uid', idp_initiated: true },
      ],
    ] as const) {
      await must('POST', '/externalauths', {
        ...common,
        authentication_name: name,
        saml: { ...common.saml, ...saml },
      })
      await must('POST', '/authdomains', { domain_name: `d-${name}`, type: 'SAML', external_auths: [name] })
      await must('POST', `/authdomains/d-${name}/mappings`, { user_group: 'linux', external_group: 'admins' })
    }
    idp.know([
      await service('corp', {}),
      await service('crypt', { nameIdFormat: 'transient', isEncrypted: true, isResponseSigned: true }),
    ])
  }, 300_000)
  afterAll(async () => {
    await Promise.all([h?.close(), idp?.stop()])
  })
  beforeEach(() => {
    h.clock.now = Date.now()
  })

  async function service(name: string, more: Partial<KnownService>): Promise<KnownService> {
    const { saml } = await must('GET', `/externalauths/${name}`)
    const [entityId, acs, slo] = ['/metadata', '/acs', '/slo'].map((place) => `${SITE}${at(name, place)}`)
    return { entityId: entityId!, acs: acs!, slo: slo!, certificate: saml.own_certificate, ...more }
  }
  /** Signs in at the identity provider; returns what it posts. */
  async function respond(browser: FormBrowser, person: IdpBrowser, name = 'corp', wish = '', user = 'alice') {
    const begun = await browser.get(`${at(name, '')}${wish}`)
    expect(begun.status).toBe(303)
    const { password } = user === 'alice' ? ALICE : CAROL
    const { text } = await person.signIn(location(begun), user, password)
    expect(text).toContain('SAMLResponse')
    return postedFields(text)
  }
  const post = (browser: FormBrowser, form: Record<string, string>, name = 'corp') =>
    browser.send('POST', at(name, '/acs'), { form, headers: FOREIGN })
  const lastEvent = async (code: string) => (await h.events(code)).at(-1)

  it('is offered on the sign-in page', async () => {
    const page = await new FormBrowser(h.api).get('/signin')
    expect(page.text).toContain('href="/signin/saml/corp"')
  })

  it('signs a person in, with groups, and leads to the page that was asked for', async () => {
    const browser = new FormBrowser(h.api)
    const done = await post(browser, await respond(browser, new IdpBrowser(), 'corp', '?return=/account?x=1'))
    expect([done.status, location(done)]).toEqual([303, '/account?x=1'])
    expect((await browser.get('/account')).text).toContain('<dd>alice@d-corp</dd>')
    expect(await lastEvent('auth.success')).toMatchObject({
      user: 'alice@d-corp',
      method: 'saml',
      protocol: 'HTTPS',
    })
    const [person] = await must('GET', '/authdomains/d-corp/persons')
    expect(person).toMatchObject({
      user_name: 'alice@d-corp',
      display_name: 'Alice Ély',
      email: 'alice@example.org',
    })
  })

  it('reads an encrypted assertion, and one that was not asked for where that is allowed', async () => {
    const browser = new FormBrowser(h.api)
    const done = await post(browser, await respond(browser, new IdpBrowser(), 'crypt'), 'crypt')
    expect([done.status, location(done)]).toEqual([303, '/account'])
    expect((await browser.get('/account')).text).toContain('<dd>alice@d-crypt</dd>')
    const unasked = async (name: string) => {
      const begin = `${idp.base}/saml2/idp/SSOService.php?spentityid=${encodeURIComponent(SITE + at(name, '/metadata'))}&RelayState=https://evil.lab`
      const { text } = await new IdpBrowser().signIn(begin, 'alice', ALICE.password)
      return await post(new FormBrowser(h.api), postedFields(text), name)
    }
    const taken = await unasked('crypt')
    expect([taken.status, location(taken)]).toEqual([303, '/account'])
    expect((await unasked('corp')).status).toBe(401)
    expect((await lastEvent('auth.failure'))?.['reason']).toContain('idp_initiated')
  })

  it('takes a response once, from the browser that has begun, for its own path', async () => {
    const browser = new FormBrowser(h.api)
    const fields = await respond(browser, new IdpBrowser())
    expect((await post(new FormBrowser(h.api), fields)).text).toContain('begun in another browser')
    expect((await post(browser, { ...fields, RelayState: '/s/ABCD' })).status).toBe(403)
    expect((await post(browser, fields, 'crypt')).status).toBe(403)
    expect((await post(browser, fields)).status).toBe(303)
    expect((await post(browser, fields)).status).toBe(401)
    expect((await lastEvent('auth.failure'))?.['reason']).toContain('refused by replay')
  })

  it('refuses a changed response, by the name of the check', async () => {
    const browser = new FormBrowser(h.api)
    const fields = await respond(browser, new IdpBrowser())
    const xml = Buffer.from(fields['SAMLResponse']!, 'base64').toString()
    const changed = Buffer.from(xml.replace('>alice<', '>admin<')).toString('base64')
    expect((await post(browser, { ...fields, SAMLResponse: changed })).status).toBe(401)
    expect((await lastEvent('auth.failure'))?.['reason']).toContain('refused by signature')
  })

  it('refuses a person without a mapping, in the same words', async () => {
    const browser = new FormBrowser(h.api)
    const refused = await post(browser, await respond(browser, new IdpBrowser(), 'corp', '', 'carol'))
    expect(refused.status).toBe(401)
    expect(await lastEvent('auth.failure')).toMatchObject({ user: 'carol@d-corp', reason: 'unmapped' })
  })

  it('asks by a form without a script, where the identity provider wants one', async () => {
    const known = {
      entity_id: 'https://idp.lab',
      sso_url: 'https://idp.lab/sso',
      certificates: idp.certificate,
    }
    const body = { authentication_name: 'form', type: 'SAML', saml: { ...known, binding: 'post' } }
    await must('POST', '/externalauths', body)
    await must('POST', '/authdomains', { domain_name: 'd-form', type: 'SAML', external_auths: ['form'] })
    const page = await new FormBrowser(h.api).get(at('form', '?return=/account'))
    expect(page.headers['content-security-policy']).toContain("form-action 'self' https://idp.lab;")
    const { SAMLRequest: message = '', RelayState: state } = fieldsOf(page.text, 'https://idp.lab/sso')
    expect(state).toBe('/account')
    expect(Buffer.from(message, 'base64').toString()).toContain('<SignatureValue>')
  })

  it('reads the metadata of the identity provider at their URL, by HTTPS and no redirect', async () => {
    const files: CertificateFiles = await certificateFiles()
    const asked: string[] = []
    const metadata = await (await fetch(idp.metadataUrl)).text()
    const server: Server = createServer(files.pem, ({ url = '', headers }, answer) => {
      asked.push(`${url} ${headers.accept}`)
      if (url === '/moved') answer.writeHead(302, { location: '/metadata' }).end()
      else if (url === '/long') answer.end('x'.repeat(300_000))
      else answer.end(metadata)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    try {
      const base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
      const saml = { user_attribute: 'uid', ca_certificates: files.pem.cert }
      const at = (idp_metadata_url: string, more: object = {}) => ({
        saml: { ...saml, idp_metadata_url, ...more },
      })
      const auth = { authentication_name: 'byurl', type: 'SAML', timeout: 60 }
      await must('POST', '/externalauths', { ...auth, ...at(`${base}/metadata`) })
      await must('POST', '/authdomains', { domain_name: 'd-byurl', type: 'SAML', external_auths: ['byurl'] })
      await must('POST', '/authdomains/d-byurl/mappings', { user_group: 'linux', external_group: 'admins' })
      idp.know([await service('corp', {}), await service('byurl', {})])
      const browser = new FormBrowser(h.api)
      const done = await post(browser, await respond(browser, new IdpBrowser(), 'byurl'), 'byurl')
      expect([done.status, location(done)]).toEqual([303, '/account'])
      expect(asked).toEqual(['/metadata application/samlmetadata+xml, application/xml, text/xml'])
      for (const [change, words] of [
        [at(`${base}/moved`), 'expected status 200, got 302'],
        [at(`${base}/long`), 'longer than'],
        [at(`${base}/metadata`, { ca_certificates: null }), 'certificate'],
      ] as const) {
        await must('PUT', '/externalauths/byurl', change)
        const { steps } = await must('POST', '/externalauths/byurl/test', {})
        expect(steps).toMatchObject([{ step: 'reached', ok: false, detail: expect.stringContaining(words) }])
      }
    } finally {
      server.closeAllConnections()
      server.close()
      files.remove()
    }
  })

  it('says what to register, and what is wrong', async () => {
    const { steps } = await must('POST', '/externalauths/corp/test', {})
    expect(steps).toMatchObject([
      { step: 'reached', ok: true, detail: expect.stringContaining(idp.metadataUrl) },
      { step: 'answered', ok: true, detail: expect.stringContaining('/signin/saml/corp/metadata') },
    ])
    const metadata = await new FormBrowser(h.api).get(at('corp', '/metadata'))
    expect(metadata.text).toContain(`entityID="${SITE}${at('corp', '/metadata')}"`)
    expect((await new FormBrowser(h.api).get(at('nobody', '/metadata'))).status).toBe(404)
  })

  describe('a sign-out', () => {
    it('here is carried to the identity provider, which asks for a password again', async () => {
      const [browser, person] = [new FormBrowser(h.api), new IdpBrowser()]
      await post(browser, await respond(browser, person))
      const left = await browser.submit(await browser.get('/account'), '/signout')
      const url = /<a class="button" href="([^"]+)"/.exec(left.text)![1]!.replaceAll('&amp;', '&')
      expect(url.startsWith(`${idp.base}/saml2/idp/SingleLogoutService.php?SAMLRequest=`)).toBe(true)
      expect((await browser.get('/account')).status).toBe(303)
      const back = await person.open(url)
      expect(back.url.startsWith(`${SITE}${at('corp', '/slo')}?SAMLResponse=`)).toBe(true)
      const ended = await browser.get(back.url.slice(SITE.length), FOREIGN)
      expect([ended.status, ended.text]).toEqual([200, expect.stringContaining('You are signed out.')])
      const again = await person.open(location(await browser.get(at('corp', ''))))
      expect(again.text).toContain('AuthState')
    })

    it('at the identity provider ends what rests on it, after its event, and is answered', async () => {
      const [browser, person] = [new FormBrowser(h.api), new IdpBrowser()]
      await post(browser, await respond(browser, person))
      const other = new FormBrowser(h.api)
      await post(other, await respond(other, new IdpBrowser()))
      const asked = await person.open(`${idp.base}/saml2/idp/SingleLogoutService.php?ReturnTo=${idp.base}/`)
      expect(asked.url.startsWith(`${SITE}${at('corp', '/slo')}?SAMLRequest=`)).toBe(true)
      const path = asked.url.slice(SITE.length)
      const forged = path.replace(/Signature=.{9}/, 'Signature=AAAAAAAAA')
      expect((await new FormBrowser(h.api).get(forged, FOREIGN)).status).toBe(400)
      expect((await browser.get('/account')).status).toBe(200)
      // From any browser: the signature counts.
      const obeyed = await new FormBrowser(h.api).get(path, FOREIGN)
      expect(obeyed.status).toBe(303)
      expect((await browser.get('/account')).status).toBe(303)
      expect((await other.get('/account')).status).toBe(200)
      expect(await lastEvent('auth.withdraw')).toMatchObject({
        user: 'alice@d-corp',
        reason: 'a sign-out at corp',
      })
      const done = await person.open(location(obeyed))
      expect(done.text + done.url).not.toContain('LogoutResponse')
    })
  })
})
