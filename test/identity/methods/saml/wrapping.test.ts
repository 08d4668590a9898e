/**
 * Signature wrapping (XSW 1 to 8 of Somorovsky et al., "On Breaking SAML", 2012): each keeps a validly signed element of the
 * real identity provider somewhere in the document, and puts another one where a reader would look.
 */
import { getVerifiedXml, parseDomFromString } from '@node-saml/node-saml/lib/xml.js'
import { beforeAll, expect, test } from 'vitest'
import { type SamlCheck, SamlError } from '../../../../src/identity/methods/saml/error.ts'
import { judgeResponse, readResponse } from '../../../../src/identity/methods/saml/response.ts'
import {
  assertionXml,
  type KeyPair,
  keyPair,
  post,
  responseXml,
  rules,
  said,
  sign,
} from './identity-provider.ts'

let idp: KeyPair
beforeAll(async () => {
  idp = await keyPair('idp')
})

const SIGNATURE = /<Signature .*<\/Signature>/s
const ASSERTION = /<saml:Assertion .*<\/saml:Assertion>/s
const END = '</samlp:Response>'

/** A response of the identity provider, taken apart; `evil` is what the attacker would like it to say. */
function parts(signed: 'Response' | 'Assertion') {
  const it = said()
  const whole =
    signed === 'Response'
      ? sign(responseXml(it, assertionXml(it)), 'Response', idp)
      : responseXml(it, sign(assertionXml(it), 'Assertion', idp))
  const [signature] = SIGNATURE.exec(whole)!
  const evil = (xml: string) => xml.replace('alice-1', 'admin-1')
  const bare = whole.replace(signature, '')
  const [assertion] = ASSERTION.exec(whole)!
  const [bareAssertion] = ASSERTION.exec(bare)!
  return { whole, bare, signature, assertion, bareAssertion, evil }
}
const renamed = (xml: string) => xml.replace(/ ID="[^"]*"/, ' ID="_evil"')
const withObject = (signature: string, content: string) =>
  signature.replace('</Signature>', `<Object>${content}</Object></Signature>`)

const ATTACKS: readonly [name: string, check: SamlCheck, build: () => string][] = [
  [
    'XSW1: the signed response within the signature of another one',
    'assertions',
    () => {
      const { bare, signature, evil } = parts('Response')
      return renamed(evil(bare)).replace('<samlp:Status>', `${withObject(signature, bare)}<samlp:Status>`)
    },
  ],
  [
    'XSW2: the signed response beside the signature of another one',
    'assertions',
    () => {
      const { bare, signature, evil } = parts('Response')
      return renamed(evil(bare)).replace('<samlp:Status>', `${bare}${signature}<samlp:Status>`)
    },
  ],
  [
    'XSW3: another assertion before the signed one',
    'assertions',
    () => {
      const { whole, assertion, bareAssertion, evil } = parts('Assertion')
      return whole.replace(assertion, renamed(evil(bareAssertion)) + assertion)
    },
  ],
  [
    'XSW4: the signed assertion within another one',
    'assertions',
    () => {
      const { whole, assertion, bareAssertion, evil } = parts('Assertion')
      const around = renamed(evil(bareAssertion)).replace(
        '</saml:Assertion>',
        `${assertion}</saml:Assertion>`,
      )
      return whole.replace(assertion, around)
    },
  ],
  [
    'XSW5: the signature in another assertion, with the signed one behind it',
    'assertions',
    () => {
      const { whole, assertion, bareAssertion, evil } = parts('Assertion')
      return whole.replace(assertion, renamed(evil(assertion)) + bareAssertion)
    },
  ],
  [
    'XSW6: the signed assertion within the signature of another one',
    'assertions',
    () => {
      const { whole, assertion, bareAssertion, signature, evil } = parts('Assertion')
      const around = signature.replace('</Signature>', `${bareAssertion}</Signature>`)
      return whole.replace(assertion, renamed(evil(assertion)).replace(signature, around))
    },
  ],
  [
    'XSW7: another assertion in the extensions',
    'assertions',
    () => {
      const { whole, assertion, bareAssertion, evil } = parts('Assertion')
      return whole.replace(
        assertion,
        `<samlp:Extensions>${evil(bareAssertion)}</samlp:Extensions>${assertion}`,
      )
    },
  ],
  [
    'XSW8: the signed assertion in an object of the signature of another one',
    'assertions',
    () => {
      const { whole, assertion, bareAssertion, signature, evil } = parts('Assertion')
      return whole.replace(
        assertion,
        evil(assertion).replace(signature, withObject(signature, bareAssertion)),
      )
    },
  ],
  [
    'a signed assertion that is moved away, its place left empty',
    'assertions',
    () => {
      const { whole, assertion } = parts('Assertion')
      return whole.replace(assertion, `<samlp:Extensions>${assertion}</samlp:Extensions>`)
    },
  ],
  [
    'the signature of the assertion around the response',
    'signature_place',
    () => {
      const { bare, signature, evil } = parts('Assertion')
      return evil(bare).replace('<samlp:Status>', `<samlp:Status>${signature}`)
    },
  ],
  [
    'the signature of the assertion in the response',
    'reference',
    () => {
      const { bare, signature, evil } = parts('Assertion')
      return evil(bare).replace('<samlp:Status>', `${signature}<samlp:Status>`)
    },
  ],
  [
    'the signed assertion as what the name holds',
    'assertions',
    () => {
      const { whole, assertion, bareAssertion } = parts('Assertion')
      return whole.replace(assertion, renamed(bareAssertion).replace('alice-1', assertion))
    },
  ],
  [
    'an encrypted assertion, as anybody can make it, beside the signed one',
    'assertions',
    () => parts('Assertion').whole.replace(END, `<saml:EncryptedAssertion/>${END}`),
  ],
]

test('each of XSW 1 to 8 is there, by its number', () => {
  const numbers = ATTACKS.flatMap(([name]) => /^XSW(\d):/.exec(name)?.[1] ?? [])
  expect(numbers).toEqual(['1', '2', '3', '4', '5', '6', '7', '8'])
  expect(new Set(ATTACKS.map(([, , build]) => build())).size).toBe(ATTACKS.length)
})

test.each(ATTACKS)('%s is refused by %s', async (_name, check, build) => {
  const xml = build()
  const refused = await (async () => judgeResponse(readResponse(post(xml)), rules(idp)))().catch(
    (error) => error,
  )
  expect(refused).toBeInstanceOf(SamlError)
  expect((refused as SamlError).check).toBe(check)
})

test('the bytes that the library verifies are those of the identity provider, whatever is around them', async () => {
  for (const [, , build] of ATTACKS) {
    const document = await parseDomFromString(build())
    for (const element of Array.from(
      document.getElementsByTagName('*') as ArrayLike<{ localName: string }>,
    )) {
      if (element.localName !== 'Assertion' && element.localName !== 'Response') continue
      let verified: string | null = null
      try {
        verified = getVerifiedXml(build(), element as Parameters<typeof getVerifiedXml>[1], [idp.certificate])
      } catch {
        // Refused by the library, too.
      }
      expect(verified ?? '').not.toContain('admin-1')
    }
  }
})
