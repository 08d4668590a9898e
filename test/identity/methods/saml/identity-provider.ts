/** An identity provider of the tests: it makes responses, and signs and encrypts them with a key of its own. */
import { createCipheriv, createPrivateKey, publicEncrypt, randomBytes, X509Certificate } from 'node:crypto'
import { signXml } from '@node-saml/node-saml/lib/xml.js'
import { generate } from 'selfsigned'
import type { ResponseRules } from '../../../../src/identity/methods/saml/response.ts'

export const NOW = Date.UTC(2031, 0, 1)
export const ISSUER = 'https://idp.lab/metadata'
export const AUDIENCE = 'https://bastion.lab/signin/saml/corp/metadata'
export const ACS = 'https://bastion.lab/signin/saml/corp/acs'
export const REQUEST = '_request1'
export const PASSWORD_CONTEXT = 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport'

export interface KeyPair {
  key: string
  certificate: string
}

export async function keyPair(name: string): Promise<KeyPair> {
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'rsa',
    keySize: 2048,
    algorithm: 'sha256',
  })
  return { key: made.private, certificate: made.cert }
}

/** Content of a response; each test changes its own part. */
export interface Said {
  issuer: string
  assertionIssuer: string
  destination: string
  recipient: string
  audience: string
  inResponseTo: string | undefined
  confirmedRequest: string | undefined
  nameId: string
  responseId: string
  assertionId: string
  issued: number
  notBefore: number
  end: number
  authnContext: string
  sessionEnd: number | undefined
  status: string
  attributes: string
  conditions: string
  method: string
}

export function said(change: Partial<Said> = {}): Said {
  return {
    issuer: ISSUER,
    assertionIssuer: ISSUER,
    destination: ACS,
    recipient: ACS,
    audience: AUDIENCE,
    inResponseTo: REQUEST,
    confirmedRequest: REQUEST,
    nameId:
      '<saml:NameID Format="urn:oasis:names:tc:SAML:2.0:nameid-format:persistent">alice-1</saml:NameID>',
    responseId: '_response1',
    assertionId: '_assertion1',
    issued: NOW - 1000,
    notBefore: NOW - 30_000,
    end: NOW + 300_000,
    authnContext: PASSWORD_CONTEXT,
    sessionEnd: NOW + 3_600_000,
    status: '<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/>',
    attributes: attribute('uid', 'alice') + attribute('groups', 'admins', 'ops'),
    conditions: '',
    method: 'urn:oasis:names:tc:SAML:2.0:cm:bearer',
    ...change,
  }
}

export function attribute(name: string, ...values: string[]): string {
  const texts = values.map((value) => `<saml:AttributeValue>${value}</saml:AttributeValue>`)
  return `<saml:Attribute Name="${name}">${texts.join('')}</saml:Attribute>`
}

const time = (at: number) => new Date(at).toISOString()
const optional = (name: string, value: string | undefined) =>
  value === undefined ? '' : ` ${name}="${value}"`
const NAMESPACES =
  'xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"'

export function assertionXml(it: Said): string {
  const sessionEnd = it.sessionEnd === undefined ? undefined : time(it.sessionEnd)
  return (
    `<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="${it.assertionId}" Version="2.0" IssueInstant="${time(it.issued)}">` +
    `<saml:Issuer>${it.assertionIssuer}</saml:Issuer>` +
    `<saml:Subject>${it.nameId}<saml:SubjectConfirmation Method="${it.method}">` +
    `<saml:SubjectConfirmationData NotOnOrAfter="${time(it.end)}" Recipient="${it.recipient}"${optional('InResponseTo', it.confirmedRequest)}/>` +
    '</saml:SubjectConfirmation></saml:Subject>' +
    `<saml:Conditions NotBefore="${time(it.notBefore)}" NotOnOrAfter="${time(it.end)}">` +
    `<saml:AudienceRestriction><saml:Audience>${it.audience}</saml:Audience></saml:AudienceRestriction>${it.conditions}</saml:Conditions>` +
    `<saml:AuthnStatement AuthnInstant="${time(it.issued)}" SessionIndex="_session1"${optional('SessionNotOnOrAfter', sessionEnd)}>` +
    `<saml:AuthnContext><saml:AuthnContextClassRef>${it.authnContext}</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>` +
    `<saml:AttributeStatement>${it.attributes}</saml:AttributeStatement></saml:Assertion>`
  )
}

export function responseXml(it: Said, assertion: string): string {
  return (
    `<samlp:Response ${NAMESPACES} ID="${it.responseId}" Version="2.0" IssueInstant="${time(it.issued)}" Destination="${it.destination}"${optional('InResponseTo', it.inResponseTo)}>` +
    `<saml:Issuer>${it.issuer}</saml:Issuer><samlp:Status>${it.status}</samlp:Status>${assertion}</samlp:Response>`
  )
}

export type Algorithm = 'sha1' | 'sha256' | 'sha512'

/** Signs the element of this name, after its issuer, as SAML demands. */
export function sign(
  xml: string,
  name: 'Assertion' | 'Response' | 'LogoutRequest' | 'LogoutResponse',
  by: KeyPair,
  algorithm: Algorithm = 'sha256',
): string {
  const xpath = `//*[local-name(.)="${name}"]`
  return signXml(
    xml,
    xpath,
    { reference: `${xpath}/*[local-name(.)="Issuer"]`, action: 'after' },
    {
      privateKey: by.key,
      publicCert: by.certificate,
      signatureAlgorithm: algorithm,
      digestAlgorithm: algorithm,
    },
  )
}

export const post = (xml: string) => Buffer.from(xml).toString('base64')

export function rules(idp: KeyPair, change: Partial<ResponseRules> = {}): ResponseRules {
  return {
    issuer: ISSUER,
    destination: ACS,
    audience: AUDIENCE,
    requestId: REQUEST,
    authnContexts: [],
    certificates: [idp.certificate],
    keys: [],
    isEncryptionNeeded: false,
    skewMs: 60_000,
    now: NOW,
    ...change,
  }
}

export interface Encryption {
  cipher: 'aes128-gcm' | 'aes256-gcm' | 'aes128-cbc' | 'aes256-cbc'
  wrapping: string
  hash: 'sha1' | 'sha256'
}
const OAEP = 'http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p'

/** Returns an EncryptedAssertion for the owner of a certificate. */
export function encrypted(assertion: string, to: string, change: Partial<Encryption> = {}): string {
  const { cipher, wrapping, hash } = {
    cipher: 'aes256-gcm',
    wrapping: OAEP,
    hash: 'sha1',
    ...change,
  } as Encryption
  const key = randomBytes(cipher.startsWith('aes128') ? 16 : 32)
  const content = encipher(assertion, cipher, key)
  const wrapped = publicEncrypt({ key: new X509Certificate(to).publicKey, oaepHash: hash }, key)
  const method =
    hash === 'sha1'
      ? ''
      : '<ds:DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/><x:MGF xmlns:x="http://www.w3.org/2009/xmlenc11#" Algorithm="http://www.w3.org/2009/xmlenc11#mgf1sha256"/>'
  const base = cipher.endsWith('gcm')
    ? 'http://www.w3.org/2009/xmlenc11#'
    : 'http://www.w3.org/2001/04/xmlenc#'
  return (
    '<saml:EncryptedAssertion><xenc:EncryptedData xmlns:xenc="http://www.w3.org/2001/04/xmlenc#" Type="http://www.w3.org/2001/04/xmlenc#Element">' +
    `<xenc:EncryptionMethod Algorithm="${base}${cipher}"/>` +
    `<ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><xenc:EncryptedKey><xenc:EncryptionMethod Algorithm="${wrapping}">${method}</xenc:EncryptionMethod>` +
    `<xenc:CipherData><xenc:CipherValue>${wrapped.toString('base64')}</xenc:CipherValue></xenc:CipherData></xenc:EncryptedKey></ds:KeyInfo>` +
    `<xenc:CipherData><xenc:CipherValue>${content.toString('base64')}</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData></saml:EncryptedAssertion>`
  )
}

function encipher(text: string, cipher: Encryption['cipher'], key: Buffer): Buffer {
  const name = cipher.replace('aes128', 'aes-128').replace('aes256', 'aes-256')
  if (cipher.endsWith('gcm')) {
    const iv = randomBytes(12)
    const made = createCipheriv(name as 'aes-128-gcm', key, iv)
    return Buffer.concat([iv, made.update(text), made.final(), made.getAuthTag()])
  }
  const iv = randomBytes(16)
  const made = createCipheriv(name, key, iv).setAutoPadding(false)
  const bytes = Buffer.from(text)
  const padding = 16 - (bytes.length % 16)
  const padded = Buffer.concat([bytes, randomBytes(padding - 1), Buffer.from([padding])])
  return Buffer.concat([iv, made.update(padded), made.final()])
}

export const privateKey = ({ key }: KeyPair) => createPrivateKey(key)
