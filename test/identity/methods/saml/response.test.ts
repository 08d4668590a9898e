/** Responses of an identity provider: sound ones, and each defect alone, with the check that refuses it. */
import { beforeAll, describe, expect, test } from 'vitest'
import { SAML_CHECKS, type SamlCheck, SamlError } from '../../../../src/identity/methods/saml/error.ts'
import {
  judgeResponse,
  type ResponseRules,
  readResponse,
} from '../../../../src/identity/methods/saml/response.ts'
import { MAX_DEPTH, MAX_NODES, MAX_XML_BYTES } from '../../../../src/identity/methods/saml/xml.ts'
import {
  ACS,
  AUDIENCE,
  assertionXml,
  attribute,
  type Encryption,
  encrypted,
  ISSUER,
  type KeyPair,
  keyPair,
  NOW,
  PASSWORD_CONTEXT,
  post,
  privateKey,
  responseXml,
  rules,
  type Said,
  said,
  sign,
} from './identity-provider.ts'

let idp: KeyPair
let other: KeyPair
let own: KeyPair
beforeAll(async () => {
  ;[idp, other, own] = await Promise.all([keyPair('idp'), keyPair('other'), keyPair('bastion')])
})

type Signed = 'assertion' | 'response' | 'both'

function xmlOf(change: Partial<Said> = {}, signed: Signed = 'assertion'): string {
  const it = said(change)
  const assertion = assertionXml(it)
  const response = responseXml(it, signed === 'response' ? assertion : sign(assertion, 'Assertion', idp))
  return signed === 'assertion' ? response : sign(response, 'Response', idp)
}

const judge = async (xml: string, change: Partial<ResponseRules> = {}) =>
  await judgeResponse(readResponse(post(xml)), rules(idp, change))

async function refusalOf(run: () => Promise<unknown>): Promise<SamlCheck | 'accepted'> {
  try {
    await run()
    return 'accepted'
  } catch (error) {
    if (error instanceof SamlError) return error.check
    throw error
  }
}

describe('a sound response', () => {
  test.each<Signed>(['assertion', 'response', 'both'])(
    'is accepted with a signature on %s',
    async (signed) => {
      expect(await judge(xmlOf({}, signed))).toEqual({
        id: '_assertion1',
        end: NOW + 360_000,
        nameId: { value: 'alice-1', format: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent' },
        attributes: new Map([
          ['uid', ['alice']],
          ['groups', ['admins', 'ops']],
        ]),
        authnContext: PASSWORD_CONTEXT,
        sessionIndex: '_session1',
        sessionEnd: NOW + 3_600_000,
      })
    },
  )

  test('may be signed by SHA-512, and by the second of two certificates', async () => {
    const it = said()
    const xml = responseXml(it, sign(assertionXml(it), 'Assertion', idp, 'sha512'))
    const certificates = [other.certificate, idp.certificate]
    expect((await judge(xml, { certificates })).nameId.value).toBe('alice-1')
  })

  test('may come unasked, where no request is expected', async () => {
    const xml = xmlOf({ inResponseTo: undefined, confirmedRequest: undefined })
    const { requestId: _none, ...unasked } = rules(idp)
    expect((await judgeResponse(readResponse(post(xml)), unasked)).id).toBe('_assertion1')
  })

  test('has values with other elements left out', async () => {
    const nested =
      '<saml:Attribute Name="target"><saml:AttributeValue><saml:NameID>x</saml:NameID></saml:AttributeValue></saml:Attribute>'
    const { attributes } = await judge(xmlOf({ attributes: nested + attribute('uid', 'a&amp;b', ' c ') }))
    expect([...attributes]).toEqual([
      ['target', []],
      ['uid', ['a&b', 'c']],
    ])
  })
})

describe('an encrypted assertion', () => {
  const within = (change: Partial<Encryption>, signed: Signed, to = own.certificate, it = said()) => {
    const assertion = assertionXml(it)
    const inner = encrypted(signed === 'response' ? assertion : sign(assertion, 'Assertion', idp), to, change)
    const response = responseXml(it, inner)
    return signed === 'assertion' ? response : sign(response, 'Response', idp)
  }
  const open = (xml: string) =>
    judge(xml, { keys: [privateKey(other), privateKey(own)], isEncryptionNeeded: true })

  test.each<[Signed, Partial<Encryption>]>([
    ['assertion', {}],
    ['response', {}],
    ['both', { cipher: 'aes128-gcm' }],
    ['response', { cipher: 'aes128-cbc' }],
    ['response', { cipher: 'aes256-cbc' }],
    ['assertion', { wrapping: 'http://www.w3.org/2009/xmlenc11#rsa-oaep', hash: 'sha256' }],
  ])('is opened by the second of two keys, signed by %s, as %o', async (signed, change) => {
    expect((await open(within(change, signed))).nameId.value).toBe('alice-1')
  })

  test('is judged like another one', async () => {
    const it = said({ audience: 'https://elsewhere.lab' })
    expect(await refusalOf(() => open(within({}, 'assertion', own.certificate, it)))).toBe('audience')
  })

  test.each<[string, SamlCheck, () => string]>([
    [
      'with CBC, which anybody could try to read, outside of a signature',
      'encryption',
      () => within({ cipher: 'aes128-cbc' }, 'assertion'),
    ],
    [
      'with a key by PKCS#1 v1.5',
      'encryption',
      () => within({ wrapping: 'http://www.w3.org/2001/04/xmlenc#rsa-1_5' }, 'response'),
    ],
    ['for another key', 'encryption', () => within({}, 'response', idp.certificate)],
    [
      'that nobody has signed',
      'unsigned',
      () => responseXml(said(), encrypted(assertionXml(said()), own.certificate)),
    ],
    [
      'that another one has signed',
      'signature',
      () => responseXml(said(), encrypted(sign(assertionXml(said()), 'Assertion', other), own.certificate)),
    ],
    ['of no XML', 'xml', () => responseXml(said(), encrypted('text', own.certificate))],
    [
      'of a document type',
      'doctype',
      () => responseXml(said(), encrypted(`<!DOCTYPE a>${assertionXml(said())}`, own.certificate)),
    ],
    [
      'of two assertions',
      'xml',
      () => responseXml(said(), encrypted(assertionXml(said()).repeat(2), own.certificate)),
    ],
    [
      'of no assertion',
      'assertions',
      () =>
        responseXml(
          said(),
          encrypted('<saml:Issuer xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"/>', own.certificate),
        ),
    ],
    [
      'with another beside it',
      'assertions',
      () =>
        responseXml(
          said(),
          encrypted(assertionXml(said()), own.certificate) + sign(assertionXml(said()), 'Assertion', idp),
        ),
    ],
  ])('is refused %s', async (_what, check, xml) => {
    expect(await refusalOf(() => open(xml()))).toBe(check)
  })

  test('is needed where only such are taken', async () => {
    expect(await refusalOf(() => open(xmlOf()))).toBe('encryption')
  })

  test('shows no change of its text', async () => {
    const xml = within({}, 'assertion')
    const values = [...xml.matchAll(/<xenc:CipherValue>([^<]+)/g)].map(([, value]) => value!)
    const bytes = Buffer.from(values[1]!, 'base64')
    bytes[40]! ^= 1
    expect(await refusalOf(() => open(xml.replace(values[1]!, bytes.toString('base64'))))).toBe('encryption')
  })
})

/** Changes what the identity provider says, before it signs. */
const SAID: readonly [check: SamlCheck, what: string, Partial<Said>, signed?: Signed][] = [
  ['destination', 'for another place', { destination: 'https://elsewhere.lab/acs' }],
  ['destination', 'for a place that begins alike', { destination: `${ACS}/` }, 'response'],
  ['recipient', 'confirmed for another place', { recipient: 'https://elsewhere.lab/acs' }],
  ['audience', 'for another service', { audience: 'https://elsewhere.lab' }],
  ['audience', 'for a service that begins alike', { audience: `${AUDIENCE}/` }],
  ['issuer', 'of another identity provider', { issuer: 'https://evil.lab' }],
  ['issuer', 'with an assertion of another one', { assertionIssuer: 'https://evil.lab' }],
  ['issuer', 'of one that begins alike', { assertionIssuer: `${ISSUER}/` }],
  ['in_response_to', 'to another request', { inResponseTo: '_request2', confirmedRequest: '_request2' }],
  ['in_response_to', 'with an assertion for another request', { confirmedRequest: '_request2' }],
  ['in_response_to', 'with an assertion for no request', { confirmedRequest: undefined }],
  ['in_response_to', 'to no request', { inResponseTo: undefined }],
  ['issued_at', 'made after now', { issued: NOW + 61_000 }],
  ['issued_at', 'made long ago', { issued: NOW - 661_000 }],
  ['expiry', 'that has ended', { end: NOW - 60_000 }],
  ['not_before', 'that has not begun', { notBefore: NOW + 61_000 }],
  ['confirmation', 'for the holder of a key', { method: 'urn:oasis:names:tc:SAML:2.0:cm:holder-of-key' }],
  ['conditions', 'with a condition that nobody understands', { conditions: '<saml:Condition/>' }],
  [
    'audience',
    'with a second audience of another service',
    { conditions: '<saml:AudienceRestriction><saml:Audience>x</saml:Audience></saml:AudienceRestriction>' },
  ],
  ['session_end', 'with a session that has ended', { sessionEnd: NOW }],
  ['subject', 'with an empty name', { nameId: '<saml:NameID/>' }],
  ['subject', 'with two names', { nameId: '<saml:NameID>a</saml:NameID><saml:NameID>b</saml:NameID>' }],
  ['subject', 'with an encrypted name', { nameId: '<saml:EncryptedID/>' }],
  ['subject', 'with an element in the name', { nameId: '<saml:NameID>a<saml:b/></saml:NameID>' }],
  ['attribute', 'with an attribute without a name', { attributes: '<saml:Attribute/>' }],
  [
    'attribute',
    'with too many values',
    { attributes: attribute('groups', ...Array.from({ length: 2001 }, String)) },
  ],
  [
    'status',
    'that says no',
    {
      status:
        '<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Responder"><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:AuthnFailed"/></samlp:StatusCode>',
    },
  ],
]
/** Changes the text after it was signed. */
const TEXT: readonly [check: SamlCheck, what: string, (xml: string) => string][] = [
  ['signature', 'with another name', (xml) => xml.replace('alice-1', 'admin-1')],
  [
    'signature',
    'with another value of the signature',
    (xml) => xml.replace(/(<SignatureValue>)(.)/, (_, tag, one) => `${tag}${one === 'A' ? 'B' : 'A'}`),
  ],
  ['unsigned', 'without its signature', (xml) => xml.replace(/<Signature.*<\/Signature>/s, '')],
  ['form', 'that is no base64', () => ''],
  [
    'size',
    'that is too long',
    (xml) => xml.replace('<saml:Issuer>', `<saml:Issuer x="${'x'.repeat(MAX_XML_BYTES)}">`),
  ],
  ['xml', 'with an end that is missing', (xml) => xml.slice(0, -5)],
  ['xml', 'with text after it', (xml) => `${xml}<a/>`],
  ['xml', 'with a section of characters', (xml) => xml.replace('alice-1', '<![CDATA[alice-1]]>')],
  [
    'xml',
    'with an attribute that comes twice',
    (xml) => xml.replace('ID="_response1"', 'ID="_response1" ID="_response2"'),
  ],
  [
    'xml',
    'with an attribute that comes twice by two prefixes',
    (xml) => xml.replace('ID="_response1"', 'ID="_response1" xmlns:a="u" xmlns:b="u" a:x="1" b:x="2"'),
  ],
  [
    'xml',
    'with a prefix that stands for nothing',
    (xml) => xml.replace('<saml:Issuer>', '<nothing:x/><saml:Issuer>'),
  ],
  [
    'xml',
    'with a namespace that ends its own quotes',
    (xml) => xml.replace('<samlp:Status>', '<samlp:Status xmlns:q="&quot;x">'),
  ],
  ['doctype', 'with a document type', (xml) => `<!DOCTYPE Response [<!ENTITY x "y">]>${xml}`],
  [
    'doctype',
    'with entities of entities',
    (xml) =>
      `<!DOCTYPE Response [<!ENTITY a "${'x'.repeat(999)}"><!ENTITY b "${'&a;'.repeat(999)}">]>${xml.replace('alice-1', '&b;')}`,
  ],
  [
    'doctype',
    'with an entity of a file',
    (xml) =>
      `<?xml version="1.0"?><!DOCTYPE r [<!ENTITY f SYSTEM "file:///etc/passwd">]>${xml.replace('alice-1', '&f;')}`,
  ],
  ['entity', 'with an entity', (xml) => xml.replace('alice-1', '&alice;')],
  ['entity', 'with a character that XML does not know', (xml) => xml.replace('alice-1', 'alice&#0;')],
  ['processing_instruction', 'with an instruction', (xml) => xml.replace('alice-1', 'alice<?php ?>-1')],
  ['comment', 'with a comment in the name', (xml) => xml.replace('alice-1', 'alice<!-- -->-1')],
  [
    'comment',
    'with a comment in the digest (CVE-2025-29775)',
    (xml) => xml.replace('<DigestValue>', '<DigestValue><!--x-->'),
  ],
  [
    'depth',
    'with elements within elements',
    (xml) =>
      xml.replace('</samlp:Status>', `${'<a>'.repeat(MAX_DEPTH)}${'</a>'.repeat(MAX_DEPTH)}</samlp:Status>`),
  ],
  [
    'nodes',
    'with many elements',
    (xml) => xml.replace('</samlp:Status>', `${'<a/>'.repeat(MAX_NODES)}</samlp:Status>`),
  ],
  [
    'nodes',
    'with many attributes',
    (xml) =>
      xml.replace(
        '<samlp:Status>',
        `<samlp:Status ${Array.from({ length: 65 }, (_, n) => `a${n}=""`).join(' ')}>`,
      ),
  ],
  ['root', 'that is another message', (xml) => xml.replaceAll('samlp:Response', 'samlp:ArtifactResponse')],
  ['root', 'of another namespace', (xml) => xml.replace('SAML:2.0:protocol', 'SAML:1.0:protocol')],
  ['version', 'of another version', (xml) => xml.replace('Version="2.0"', 'Version="1.1"')],
  ['id', 'without an ID', (xml) => xml.replace('ID="_response1"', '')],
  ['id', 'with an ID that comes twice', (xml) => xml.replace('ID="_response1"', 'ID="_assertion1"')],
  [
    'id',
    'with an ID that comes twice by another name',
    (xml) => xml.replace('<samlp:Status>', '<samlp:Status xmlns:x="u" x:Id="_assertion1">'),
  ],
  ['id', 'with an ID of quotes', (xml) => xml.replace('"_assertion1"', `"' or 'a'='a"`)],
  ['assertions', 'with no assertion', (xml) => xml.replace(/<saml:Assertion.*<\/saml:Assertion>/s, '')],
  [
    'assertions',
    'with two assertions',
    (xml) => xml.replace('</samlp:Response>', '<saml:Assertion/></samlp:Response>'),
  ],
  [
    'assertions',
    'with an assertion of another namespace',
    (xml) => xml.replace('</samlp:Response>', '<Assertion xmlns="u"/></samlp:Response>'),
  ],
  [
    'signature_place',
    'with two signatures',
    (xml) => xml.replace(/<Signature .*<\/Signature>/s, (one) => one + one),
  ],
  [
    'signature_place',
    'with a signature elsewhere',
    (xml) =>
      xml.replace(
        /(<Signature .*<\/Signature>)(.*)(<\/samlp:Response>)/s,
        '$2<samlp:Extensions>$1</samlp:Extensions>$3',
      ),
  ],
  [
    'signature_form',
    'with an object in the signature',
    (xml) => xml.replace('</Signature>', '<Object/></Signature>'),
  ],
  [
    'signature_form',
    'with two lists of what is signed (CVE-2025-29774)',
    (xml) => xml.replace(/<SignedInfo>.*<\/SignedInfo>/s, (one) => one + one),
  ],
  [
    'signature_form',
    'with two references',
    (xml) => xml.replace(/<Reference .*<\/Reference>/s, (one) => one + one),
  ],
  [
    'signature_form',
    'with an element in the digest',
    (xml) => xml.replace('<DigestValue>', '<DigestValue><x/>'),
  ],
  [
    'algorithm',
    'by HMAC with the certificate as its key',
    (xml) =>
      xml.replace(
        'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
        'http://www.w3.org/2000/09/xmldsig#hmac-sha1',
      ),
  ],
  [
    'algorithm',
    'with a digest by SHA-1',
    (xml) => xml.replace('http://www.w3.org/2001/04/xmlenc#sha256', 'http://www.w3.org/2000/09/xmldsig#sha1'),
  ],
  [
    'transform',
    'with XSLT',
    (xml) =>
      xml.replace(
        'http://www.w3.org/2001/10/xml-exc-c14n#"/></Transforms>',
        'http://www.w3.org/TR/1999/REC-xslt-19991116"/></Transforms>',
      ),
  ],
  [
    'transform',
    'with XPath besides',
    (xml) =>
      xml.replace(
        '</Transforms>',
        '<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"/></Transforms>',
      ),
  ],
  [
    'transform',
    'with a style sheet in a transform',
    (xml) =>
      xml.replace(
        '<Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>',
        '<Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"><stylesheet xmlns="http://www.w3.org/1999/XSL/Transform"/></Transform>',
      ),
  ],
  [
    'transform',
    'with a canonical form that keeps comments',
    (xml) =>
      xml.replace(
        '<CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"',
        '<CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#WithComments"',
      ),
  ],
  ['reference', 'over the whole document', (xml) => xml.replace('URI="#_assertion1"', 'URI=""')],
  ['reference', 'over another element', (xml) => xml.replace('URI="#_assertion1"', 'URI="#_response1"')],
]

describe('a response is refused', () => {
  test.each(SAID)('by %s: %s', async (check, _what, change, signed) => {
    expect(await refusalOf(() => judge(xmlOf(change, signed)))).toBe(check)
  })

  test.each(TEXT)('by %s: %s', async (check, _what, change) => {
    const xml = xmlOf()
    expect(change(xml)).not.toBe(xml)
    expect(await refusalOf(() => judge(change(xml)))).toBe(check)
  })

  test('by signature: SHA-1 is refused by its name, before it is verified', async () => {
    const it = said()
    const xml = responseXml(it, sign(assertionXml(it), 'Assertion', idp, 'sha1'))
    expect(await refusalOf(() => judge(xml))).toBe('algorithm')
  })

  test('by signature: the certificate that it brings along is not used', async () => {
    const it = said()
    const xml = responseXml(it, sign(assertionXml(it), 'Assertion', other))
    expect(xml).toContain('X509Certificate')
    expect(await refusalOf(() => judge(xml))).toBe('signature')
  })

  test('by signature: the assertion is sound, and the response signed by another one', async () => {
    const it = said()
    const xml = sign(responseXml(it, sign(assertionXml(it), 'Assertion', idp)), 'Response', other)
    expect(await refusalOf(() => judge(xml))).toBe('signature')
  })

  test('by signature: the response is sound, and the assertion signed by another one', async () => {
    const it = said()
    const xml = sign(responseXml(it, sign(assertionXml(it), 'Assertion', other)), 'Response', idp)
    expect(await refusalOf(() => judge(xml))).toBe('signature')
  })

  test('by authn_context: the person was not asked for what is needed', async () => {
    const authnContexts = ['https://refeds.org/profile/mfa']
    expect(await refusalOf(() => judge(xmlOf(), { authnContexts }))).toBe('authn_context')
    expect(await refusalOf(() => judge(xmlOf({ authnContext: authnContexts[0]! }), { authnContexts }))).toBe(
      'accepted',
    )
  })

  test('by in_response_to: it answers a request, and none was made', async () => {
    const { requestId: _none, ...unasked } = rules(idp)
    expect(await refusalOf(() => judgeResponse(readResponse(post(xmlOf())), unasked))).toBe('in_response_to')
  })

  test('by xml: it is no UTF-8', async () => {
    const bytes = Buffer.from(xmlOf().replace('alice-1', 'alice\u00e9'), 'latin1').toString('base64')
    expect(await refusalOf(async () => readResponse(bytes))).toBe('xml')
  })
})

test('each check of a response is broken by a test', () => {
  const elsewhere = ['encryption', 'authn_statement', 'authn_context', 'name', 'replay']
  const broken = new Set<string>([...SAID, ...TEXT].map(([check]) => check))
  expect(SAML_CHECKS.filter((check) => !broken.has(check))).toEqual(elsewhere)
})
