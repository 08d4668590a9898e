/** Metadata: those of identity providers that are read, and our own. */
import { signXml } from '@node-saml/node-saml/lib/xml.js'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  MetadataError,
  type MetadataRules,
  readMetadata,
} from '../../../../src/identity/methods/saml/metadata.ts'
import { ownMetadata, ownUrls } from '../../../../src/identity/methods/saml/own-metadata.ts'
import { readXml } from '../../../../src/identity/methods/saml/xml.ts'
import { type KeyPair, keyPair, NOW } from './identity-provider.ts'

let idp: KeyPair
let next: KeyPair
let federation: KeyPair
beforeAll(async () => {
  ;[idp, next, federation] = await Promise.all([keyPair('idp'), keyPair('next'), keyPair('federation')])
})

const base64 = ({ certificate }: KeyPair) => certificate.replaceAll(/-----[A-Z ]+-----/g, '')
const keyOf = (pair: KeyPair, use = ' use="signing"') =>
  `<md:KeyDescriptor${use}><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>${base64(pair)}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`
const service = (name: string, binding: string, location: string) =>
  `<md:${name} Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-${binding}" Location="${location}"/>`

function xmlOf(change: { attributes?: string; keys?: string; services?: string } = {}): string {
  const keys = change.keys ?? keyOf(idp)
  const services =
    change.services ??
    service('SingleLogoutService', 'Redirect', 'https://idp.lab/slo') +
      service('SingleSignOnService', 'POST', 'https://idp.lab/post') +
      service('SingleSignOnService', 'Redirect', 'https://idp.lab/sso')
  return `<?xml version="1.0" encoding="UTF-8"?>\n<!-- by hand -->\n<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://idp.lab" ID="_m"${change.attributes ?? ''}><md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">${keys}${services}</md:IDPSSODescriptor></md:EntityDescriptor>`
}
const signed = (by: KeyPair) =>
  signXml(
    xmlOf().replace(/^.*\n.*\n/, ''),
    '/*',
    { reference: '/*', action: 'prepend' },
    { privateKey: by.key, signatureAlgorithm: 'sha256', digestAlgorithm: 'sha256' },
  )
const read = (text: string, change: Partial<MetadataRules> = {}) =>
  readMetadata(text, { binding: 'redirect', signers: [], now: NOW, ...change })

describe('metadata of an identity provider', () => {
  test('say who it is, where, and with which certificates', async () => {
    const found = await read(
      xmlOf({
        keys: keyOf(idp) + keyOf(next, '') + keyOf(federation, ' use="encryption"'),
        attributes: ' validUntil="2031-01-02T00:00:00Z"',
      }),
    )
    expect(found).toMatchObject({
      entityId: 'https://idp.lab',
      signIn: { binding: 'redirect', url: 'https://idp.lab/sso' },
      signOut: { binding: 'redirect', url: 'https://idp.lab/slo' },
      validUntil: Date.UTC(2031, 0, 2),
    })
    expect(found.certificates.map((pem) => pem.trim())).toEqual(
      [idp, next].map(({ certificate }) => certificate.trim()),
    )
    expect((await read(xmlOf(), { binding: 'post' })).signIn.url).toBe('https://idp.lab/post')
  })

  test('are read from what their signer has signed, where one is wanted', async () => {
    const signers = [federation.certificate]
    expect((await read(signed(federation), { signers })).entityId).toBe('https://idp.lab')
    await expect(read(signed(idp), { signers })).rejects.toThrow(/refused by signature/)
    await expect(read(signed(federation).replace('/sso', '/evil'), { signers })).rejects.toThrow(
      /by signature/,
    )
    await expect(read(xmlOf(), { signers })).rejects.toThrow(/not signed/)
  })

  test.each<[RegExp, string, () => string]>([
    [/valid until 2030/, 'have ended', () => xmlOf({ attributes: ' validUntil="2030-12-31T23:59:59Z"' })],
    [
      /certificate for signatures/,
      'have no certificate',
      () => xmlOf({ keys: keyOf(idp, ' use="encryption"') }),
    ],
    [/SingleSignOnService/, 'have no service', () => xmlOf({ services: '' })],
    [
      /URL/,
      'lead to a script',
      () => xmlOf({ services: service('SingleSignOnService', 'POST', 'javascript:alert(1)') }),
    ],
    [
      /one EntityDescriptor/,
      'are of many',
      () => '<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata"/>',
    ],
    [/refused by doctype/, 'have a document type', () => `<!DOCTYPE x>${xmlOf()}`],
    [
      /certificate: /,
      'have a broken certificate',
      () => xmlOf({ keys: keyOf({ key: '', certificate: 'AAAA' }) }),
    ],
    [/at most 8/, 'have many certificates', () => xmlOf({ keys: keyOf(idp).repeat(9) })],
  ])('are refused with %s if they %s', async (message, _what, xml) => {
    const text = xml().replace(/^(<!DOCTYPE x>)<\?xml.*\n/, '$1')
    await expect(read(text)).rejects.toThrow(message)
    await expect(read(text)).rejects.toBeInstanceOf(MetadataError)
  })
})

test('our own metadata name both certificates, for signatures and for encryption', () => {
  const urls = ownUrls('https://bastion.lab', 'my idp')
  const text = ownMetadata({ ...urls, certificates: [idp.certificate, next.certificate] })
  const root = readXml(text)
  const [role] = root.children
  expect(urls.acs).toBe('https://bastion.lab/signin/saml/my%20idp/acs')
  expect(root.attributes.get('entityID')).toBe(urls.entityId)
  expect(role!.children.map(({ local, attributes }) => attributes.get('use') ?? local)).toEqual([
    ...['signing', 'encryption', 'signing', 'encryption'],
    ...['SingleLogoutService', 'SingleLogoutService', 'AssertionConsumerService'],
  ])
})
