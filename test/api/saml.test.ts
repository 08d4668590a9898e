/** Identity providers of SAML as external authentications, over the API. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type KeyPair, keyPair } from '../identity/methods/saml/identity-provider.ts'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
let idp: KeyPair
let own: KeyPair
beforeAll(async () => {
  ;[h, idp, own] = await Promise.all([startHarness(), keyPair('idp'), keyPair('own')])
  cookie = await h.signIn()
})
afterAll(() => h.close())

const call = (method: string, path: string, body?: object) =>
  h.call(method, path, { cookie, ...(body && { body }) })
async function must(method: string, path: string, body?: object) {
  const answer = await call(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
  return answer.body
}
const known = () => ({
  entity_id: 'https://idp.lab',
  sso_url: 'https://idp.lab:8443/sso',
  certificates: idp.certificate,
})

test('a key pair is made, and its key never comes back', async () => {
  const made = await must('POST', '/externalauths', {
    authentication_name: 'first',
    type: 'SAML',
    saml: known(),
  })
  expect(made).toMatchObject({
    host: 'idp.lab',
    port: 8443,
    secrets: ['private_key'],
    saml: {
      binding: 'redirect',
      name_id_format: 'persistent',
      idp_initiated: false,
      clock_skew: 60,
      slo_url: null,
    },
  })
  expect(made.saml.own_certificate).toContain('BEGIN CERTIFICATE')
  expect(JSON.stringify(made)).not.toContain('PRIVATE KEY')
  const same = await must('PUT', '/externalauths/first', { saml: { clock_skew: 30 } })
  expect(same.saml).toEqual({ ...made.saml, clock_skew: 30 })
})

test('a next key pair is shown beside the one in use, and takes its place', async () => {
  const next = { saml: { next_certificate: own.certificate }, next_private_key: own.key }
  expect((await must('PUT', '/externalauths/first', next)).secrets).toEqual([
    'next_private_key',
    'private_key',
  ])
  const metadata = await h.api.inject({ url: '/signin/saml/first/metadata' })
  expect(metadata.body.match(/use="signing"/g)).toHaveLength(2)
  const used = {
    saml: { own_certificate: own.certificate, next_certificate: null },
    private_key: own.key,
    next_private_key: null,
  }
  const done = await must('PUT', '/externalauths/first', used)
  expect([done.secrets, done.saml.next_certificate]).toEqual([['private_key'], null])
  expect(done.saml.own_certificate.trim()).toBe(own.certificate.trim())
})

test.each<[string, () => object]>([
  ['saml/idp_metadata', () => ({ saml: {} })],
  ['saml/idp_metadata', () => ({ saml: { ...known(), idp_metadata_url: 'https://idp.lab/m' } })],
  ['saml/idp_metadata', () => ({ saml: { idp_metadata: '<a/>' } })],
  ['saml/idp_metadata', () => ({ saml: { idp_metadata: '<!DOCTYPE a><a/>' } })],
  ['saml/idp_metadata_url', () => ({ saml: { idp_metadata_url: 'http://idp.lab/m' } })],
  ['saml/sso_url', () => ({ saml: { ...known(), sso_url: 'javascript:alert(1)' } })],
  ['saml/slo_url', () => ({ saml: { ...known(), slo_url: 'file:///etc/passwd' } })],
  ['saml/certificates', () => ({ saml: { ...known(), certificates: 'none' } })],
  ['saml/user_attribute', () => ({ saml: { ...known(), name_id_format: 'transient' } })],
  ['saml/clock_skew', () => ({ saml: { ...known(), clock_skew: 301 } })],
  ['saml/own_certificate', () => ({ saml: { ...known(), own_certificate: own.certificate } })],
  [
    'saml/own_certificate',
    () => ({ saml: { ...known(), own_certificate: own.certificate }, private_key: idp.key }),
  ],
  ['next_private_key', () => ({ saml: { ...known(), next_certificate: own.certificate } })],
  ['host', () => ({ saml: known(), host: 'elsewhere.lab' })],
  ['oidc', () => ({ saml: known(), oidc: { issuer: 'https://idp.lab' } })],
])('is refused with a bad %s', async (field, body) => {
  const answer = await call('POST', '/externalauths', { authentication_name: 'bad', type: 'SAML', ...body() })
  expect([answer.status, answer.body.details?.[0]?.field]).toEqual([400, field])
})

test('persons of an identity provider are of a domain, which no bare name leads to', async () => {
  const domain = { domain_name: 'corp', type: 'SAML', external_auths: ['first'] }
  const refused = await call('POST', '/authdomains', { ...domain, is_default: true })
  expect([refused.status, refused.body.details[0].field]).toEqual([400, 'is_default'])
  await must('POST', '/authdomains', domain)
  const second = await call('POST', '/authdomains', {
    domain_name: 'x',
    type: 'SAML',
    secondary_auth: ['first'],
  })
  expect([second.status, second.body.details[0].field]).toEqual([400, 'secondary_auth/0'])
  const user = { user_name: 'local', user_auths: ['first'] }
  expect((await call('POST', '/users', user)).body.details[0].field).toBe('user_auths/0')
})
