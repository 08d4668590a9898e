/** Metadata read from a URL: kept, read anew, and void after their end. */
import { beforeAll, expect, test } from 'vitest'
import {
  Idp,
  IdpError,
  METADATA_FRESH_MS,
  METADATA_STALE_MS,
  PAUSE_MS,
} from '../../../../src/identity/methods/saml/idp.ts'
import { type KeyPair, keyPair, NOW } from './identity-provider.ts'

let first: KeyPair
let second: KeyPair
beforeAll(async () => {
  ;[first, second] = await Promise.all([keyPair('first'), keyPair('second')])
})

function xmlOf({ certificate }: KeyPair, attributes = ''): string {
  const base64 = certificate.replaceAll(/-----[A-Z ]+-----/g, '')
  return `<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://idp.lab"${attributes}><IDPSSODescriptor><KeyDescriptor><KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data><X509Certificate>${base64}</X509Certificate></X509Data></KeyInfo></KeyDescriptor><SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.lab/sso"/></IDPSSODescriptor></EntityDescriptor>`
}

function start(xml: string) {
  const state = { xml: xml as string | Error, now: NOW, read: 0, failures: 0 }
  const idp = new Idp({
    options: { idp: { metadataUrl: 'https://idp.lab/metadata' }, binding: 'redirect' },
    get: async () => {
      state.read += 1
      if (state.xml instanceof Error) throw state.xml
      return new TextEncoder().encode(state.xml)
    },
    now: () => state.now,
    onFailure: () => {
      state.failures += 1
    },
  })
  return { idp, state }
}
const pem = async (idp: Idp, isWanted = false) => (await idp.metadata(isWanted)).certificates[0]?.trim()

test('a new certificate is found at once when it is wanted, but not more often than the pause allows', async () => {
  const { idp, state } = start(xmlOf(first))
  expect(await pem(idp)).toBe(first.certificate.trim())
  state.xml = xmlOf(second)
  expect(await pem(idp, true)).toBe(first.certificate.trim())
  state.now += PAUSE_MS
  expect(await pem(idp)).toBe(first.certificate.trim())
  expect(await pem(idp, true)).toBe(second.certificate.trim())
  expect(state.read).toBe(2)
})

test('a certificate that was withdrawn counts for an hour at most; metadata that cannot be read for a day', async () => {
  const { idp, state } = start(xmlOf(first))
  await pem(idp)
  state.xml = xmlOf(second)
  state.now += METADATA_FRESH_MS
  expect(await pem(idp)).toBe(second.certificate.trim())
  state.xml = new Error('away')
  state.now += METADATA_STALE_MS - 1
  expect(await pem(idp)).toBe(second.certificate.trim())
  state.now += 1
  await expect(idp.metadata()).rejects.toThrow(IdpError)
  expect(state.failures).toBe(1)
})

test('metadata end when they say so', async () => {
  const { idp, state } = start(xmlOf(first, ` validUntil="${new Date(NOW + 1000).toISOString()}"`))
  expect(await pem(idp)).toBe(first.certificate.trim())
  state.now += 1000
  await expect(idp.metadata()).rejects.toThrow('not valid any more')
})
