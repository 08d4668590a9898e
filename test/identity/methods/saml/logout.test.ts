/** Sign-outs by the redirect and the POST binding: sound messages, and each defect alone. */
import { createSign } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { type SamlCheck, SamlError } from '../../../../src/identity/methods/saml/error.ts'
import {
  judgeLogoutRequest,
  judgeLogoutResponse,
  type LogoutRules,
  postedLogout,
  redirectedLogout,
} from '../../../../src/identity/methods/saml/logout.ts'
import {
  type Parameter,
  postFields,
  RSA_SHA256,
  redirectUrl,
  signOutRequest,
  signOutResponse,
} from '../../../../src/identity/methods/saml/request.ts'
import { MAX_XML_BYTES } from '../../../../src/identity/methods/saml/xml.ts'
import { ISSUER, type KeyPair, keyPair, NOW, post, sign } from './identity-provider.ts'

const SLO = 'https://bastion.lab/signin/saml/corp/slo'
const NAME = { value: 'alice-1', format: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent' }

let idp: KeyPair
let other: KeyPair
beforeAll(async () => {
  ;[idp, other] = await Promise.all([keyPair('idp'), keyPair('other')])
})

const rules = (change: Partial<LogoutRules> = {}): LogoutRules => ({
  issuer: ISSUER,
  destination: SLO,
  certificates: [idp.certificate],
  skewMs: 60_000,
  now: NOW,
  ...change,
})
const requestXml = (change: { destination?: string; now?: number } = {}, entityId = ISSUER) =>
  signOutRequest(
    { entityId },
    { id: '_out1', now: NOW, destination: SLO, nameId: NAME, sessionIndex: 's1', ...change },
  )
const queryOf = (xml: string, by: KeyPair, relayState?: string, parameter: Parameter = 'SAMLRequest') =>
  new URL(
    redirectUrl(by, { destination: SLO, parameter, xml, ...(relayState !== undefined && { relayState }) }),
  ).search.slice(1)

async function refusalOf(run: () => unknown): Promise<SamlCheck | 'accepted'> {
  try {
    await run()
    return 'accepted'
  } catch (error) {
    if (error instanceof SamlError) return error.check
    throw error
  }
}

describe('a request to sign out', () => {
  test('is read by the redirect binding, with its state', () => {
    const found = redirectedLogout(queryOf(requestXml(), idp, 'a b&c~é'), [
      other.certificate,
      idp.certificate,
    ])
    expect(found).toMatchObject({ parameter: 'SAMLRequest', relayState: 'a b&c~é' })
    expect(judgeLogoutRequest(found.element, rules())).toEqual({
      id: '_out1',
      nameId: NAME,
      sessionIndexes: ['s1'],
    })
  })

  test('is read by the POST binding, from the verified bytes', async () => {
    const [[name, message]] = postFields(idp, { parameter: 'SAMLRequest', xml: requestXml() }) as [
      [Parameter, string],
    ]
    const { element } = await postedLogout(name, message, [idp.certificate])
    expect(judgeLogoutRequest(element, rules()).nameId).toEqual(NAME)
  })

  test.each<[SamlCheck, string, () => unknown]>([
    [
      'unsigned',
      'without a signature',
      () => redirected(queryOf(requestXml(), idp).replace(/&Signature=.*/, '')),
    ],
    [
      'unsigned',
      'by POST without a signature',
      () => postedLogout('SAMLRequest', post(requestXml()), [idp.certificate]),
    ],
    ['signature', "by another one's key", () => redirected(queryOf(requestXml(), other))],
    [
      'signature',
      'by POST with another key',
      () => postedLogout('SAMLRequest', post(sign(requestXml(), 'LogoutRequest', other)), [idp.certificate]),
    ],
    [
      'signature',
      'with another state',
      () => redirected(queryOf(requestXml(), idp, 'a').replace('RelayState=a', 'RelayState=b')),
    ],
    [
      'signature',
      'with a state that was added',
      () => redirected(`${queryOf(requestXml(), idp)}&RelayState=a`),
    ],
    ['algorithm', 'by SHA-1', () => redirected(sha1Query())],
    [
      'algorithm',
      'by SHA-1 and POST',
      () =>
        postedLogout('SAMLRequest', post(sign(requestXml(), 'LogoutRequest', idp, 'sha1')), [
          idp.certificate,
        ]),
    ],
    [
      'form',
      'with a parameter that comes twice',
      () => redirected(`${queryOf(requestXml(), idp)}&SAMLRequest=x`),
    ],
    ['form', 'that is an answer, too', () => redirected(`${queryOf(requestXml(), idp)}&SAMLResponse=x`)],
    ['form', 'by another encoding', () => redirected(`${queryOf(requestXml(), idp)}&SAMLEncoding=x`)],
    [
      'size',
      'that inflates without end',
      () => redirected(queryOf(requestXml().replace('alice-1', ' '.repeat(MAX_XML_BYTES)), idp)),
    ],
    ['doctype', 'with a document type', () => redirected(queryOf(`<!DOCTYPE a>${requestXml()}`, idp))],
    [
      'root',
      'that is another message',
      () => redirected(queryOf(requestXml().replaceAll('LogoutRequest', 'AuthnRequest'), idp)),
    ],
    [
      'destination',
      'for another place',
      () => redirected(queryOf(requestXml({ destination: 'https://elsewhere.lab' }), idp)),
    ],
    [
      'issuer',
      'of another identity provider',
      () => redirected(queryOf(requestXml({}, 'https://evil.lab'), idp)),
    ],
    [
      'issuer',
      'of nobody',
      () => redirected(queryOf(requestXml().replace(/<saml:Issuer>.*<\/saml:Issuer>/, ''), idp)),
    ],
    [
      'issued_at',
      'that was made long ago',
      () => redirected(queryOf(requestXml({ now: NOW - 661_000 }), idp)),
    ],
    [
      'expiry',
      'that has ended',
      () =>
        redirected(
          queryOf(
            requestXml().replace('Version', `NotOnOrAfter="${new Date(NOW - 60_000).toISOString()}" Version`),
            idp,
          ),
        ),
    ],
    [
      'subject',
      'of nobody',
      () => redirected(queryOf(requestXml().replace(/<saml:NameID.*<\/saml:NameID>/, ''), idp)),
    ],
  ])('is refused by %s: %s', async (check, _what, run) => {
    expect(await refusalOf(run)).toBe(check)
  })
})

describe('an answer to a request to sign out', () => {
  const answer = () =>
    signOutResponse({ entityId: ISSUER }, { id: '_a', now: NOW, destination: SLO, inResponseTo: '_own1' })
  const judged = (xml: string, requestId = '_own1') =>
    judgeLogoutResponse(
      redirectedLogout(queryOf(xml, idp, undefined, 'SAMLResponse'), [idp.certificate]).element,
      rules(),
      requestId,
    )

  test('is accepted', async () => {
    expect(await refusalOf(() => judged(answer()))).toBe('accepted')
  })

  test('is refused for another request, or if it says no', async () => {
    expect(await refusalOf(() => judged(answer(), '_own2'))).toBe('in_response_to')
    expect(await refusalOf(() => judged(answer().replace('status:Success', 'status:PartialLogout')))).toBe(
      'status',
    )
  })
})

function redirected(query: string) {
  return judgeLogoutRequest(redirectedLogout(query, [idp.certificate]).element, rules())
}

function sha1Query(): string {
  const message = encodeURIComponent(deflateRawSync(requestXml()).toString('base64'))
  const signed = `SAMLRequest=${message}&SigAlg=${encodeURIComponent(RSA_SHA256.replace('-more#rsa-sha256', '#rsa-sha1'))}`
  const signature = createSign('sha1').update(signed).sign(idp.key, 'base64')
  return `${signed}&Signature=${encodeURIComponent(signature)}`
}
