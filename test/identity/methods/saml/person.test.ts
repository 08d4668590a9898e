/** Persons as assertions describe them, and the requests that ask for them. */
import { inflateRawSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { SamlError } from '../../../../src/identity/methods/saml/error.ts'
import { NAME_ID_FORMATS } from '../../../../src/identity/methods/saml/names.ts'
import { type NameRules, personOf } from '../../../../src/identity/methods/saml/person.ts'
import { redirectedMessage } from '../../../../src/identity/methods/saml/redirect.ts'
import { postFields, redirectUrl, signInRequest } from '../../../../src/identity/methods/saml/request.ts'
import { verified } from '../../../../src/identity/methods/saml/verify.ts'
import { type KeyPair, keyPair, NOW } from './identity-provider.ts'

const ISSUER = 'https://idp.lab'
const ATTRIBUTES = new Map([
  ['uid', ['alice']],
  ['oid', ['7']],
  ['displayName', ['Alice Ély']],
  ['mail', ['alice@example.org', 'a@example.org']],
  ['preferredLanguage', ['fr']],
  ['groups', ['admins', '', 'ops']],
  ['twice', ['a', 'b']],
])
const person = (format: keyof typeof NAME_ID_FORMATS, rules: NameRules, value = 'n1') =>
  personOf({ nameId: { value, format: NAME_ID_FORMATS[format] }, attributes: ATTRIBUTES }, ISSUER, rules, {})

test('a person has the name of an attribute, and the persistent NameID as what never changes', () => {
  expect(person('persistent', { userAttribute: 'uid' })).toEqual({
    stableId: 'https://idp.lab ["n1","",""]',
    userName: 'alice',
    displayName: 'Alice Ély',
    email: 'alice@example.org',
    language: 'fr',
    groups: ['admins', 'ops'],
  })
})

test('a NameID that may be given to another person is no stable id, an attribute is', () => {
  expect(person('email', {}, 'a@b:c').stableId).toBeUndefined()
  expect(person('email', {}, 'a@b:c').userName).toBe('a@b%3Ac')
  expect(person('email', { idAttribute: 'oid' }).stableId).toBe('https://idp.lab 7')
})

test.each<[string, () => unknown]>([
  ['a transient NameID', () => person('transient', {})],
  ['an attribute that is missing', () => person('transient', { userAttribute: 'none' })],
  ['an attribute with two values', () => person('transient', { userAttribute: 'twice' })],
])('%s names nobody', (_what, run) => {
  expect(run).toThrow(SamlError)
  expect(run).toThrow(/by name/)
})

let own: KeyPair
beforeAll(async () => {
  own = await keyPair('bastion')
})
const request = () =>
  signInRequest(
    { entityId: 'https://bastion.lab' },
    {
      id: '_r1',
      now: NOW,
      destination: 'https://idp.lab/sso?tenant=1',
      acs: 'https://bastion.lab/acs',
      nameIdFormat: NAME_ID_FORMATS.persistent,
      authnContexts: ['a&b'],
      forceAuthn: true,
    },
  )

test('a request by redirect is signed, with its state', () => {
  const url = redirectUrl(own, {
    destination: 'https://idp.lab/sso?tenant=1',
    parameter: 'SAMLRequest',
    xml: request(),
    relayState: '/s/A~B',
  })
  expect(url.startsWith('https://idp.lab/sso?tenant=1&SAMLRequest=')).toBe(true)
  const { text, relayState } = redirectedMessage(new URL(url).search.slice(1), [own.certificate])
  expect(relayState).toBe('/s/A~B')
  expect(text).toBe(request())
  expect(text).toContain('<saml:AuthnContextClassRef>a&amp;b</saml:AuthnContextClassRef>')
  const message = new URL(url).searchParams.get('SAMLRequest')!
  expect(inflateRawSync(Buffer.from(message, 'base64')).toString()).toBe(text)
})

test('a request by POST is signed within', async () => {
  const [[, message]] = postFields(own, { parameter: 'SAMLRequest', xml: request() }) as [[string, string]]
  const text = Buffer.from(message, 'base64').toString()
  const { element } = await verified(text, [], [own.certificate])
  expect(element.attributes.get('ForceAuthn')).toBe('true')
  expect(element.children.map(({ local }) => local)).toEqual([
    'Issuer',
    'NameIDPolicy',
    'RequestedAuthnContext',
  ])
})
