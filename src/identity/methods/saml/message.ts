/** Parts that all SAML messages have: their bytes, version, ID, time, issuer and destination. */
import { base64Of } from './base64.ts'
import { quoted, SamlError } from './error.ts'
import { childrenOf, ENTITY_FORMAT, isElement } from './names.ts'
import { decodeUtf8, MAX_XML_BYTES, readXml, type XmlElement } from './xml.ts'

/** Characters of a message in base64, with its breaks of lines. */
export const MAX_MESSAGE = Math.ceil((MAX_XML_BYTES * 4) / 3) + 8192
/** Milliseconds after which a message is too old, whatever it says. */
export const MAX_AGE_MS = 600_000
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$/

export interface MessageRules {
  /** entityID of the identity provider. */
  issuer: string
  /** Our URL that the message is for. */
  destination: string
  /** Milliseconds by which clocks may differ. */
  skewMs: number
  /** Milliseconds since the epoch. */
  now: number
}

/** Returns the text of a message that came by the POST binding. @throws SamlError */
export function postedText(message: string): string {
  if (MAX_MESSAGE < message.length) throw new SamlError('size', `longer than ${MAX_MESSAGE} characters`)
  return decodeUtf8(base64Of(message, 'form'))
}

/** Returns the root of a message of this name, which nothing has proved yet. @throws SamlError */
export function messageOf(text: string, name: string): XmlElement {
  const root = readXml(text)
  if (!isElement(root, 'protocol', name))
    throw new SamlError('root', `expected ${name} of SAML 2.0, got ${root.local.slice(0, 100)}`)
  return root
}

/** Checks version, ID, destination, issuer and time of a message. @throws SamlError */
export function checkMessage(message: XmlElement, rules: MessageRules, isDestinationNeeded: boolean): void {
  checkVersion(message)
  const destination = message.attributes.get('Destination')
  if (destination !== rules.destination && (isDestinationNeeded || destination !== undefined))
    throw new SamlError('destination', `expected "${rules.destination}", got ${quoted(destination)}`)
  const [issuer] = childrenOf(message, 'assertion', 'Issuer')
  if (issuer) checkIssuer(message, rules.issuer)
  checkIssued(message, rules)
}

export function checkVersion(element: XmlElement): void {
  const version = element.attributes.get('Version')
  if (version !== '2.0') throw new SamlError('version', `expected version 2.0, got ${quoted(version)}`)
  if (!element.attributes.get('ID')) throw new SamlError('id', `${element.local} has no ID`)
}

export function checkIssuer(element: XmlElement, expected: string): void {
  const [issuer, another] = childrenOf(element, 'assertion', 'Issuer')
  const format = issuer?.attributes.get('Format') ?? ENTITY_FORMAT
  if (!issuer || another || issuer.children.length > 0 || format !== ENTITY_FORMAT)
    throw new SamlError(
      'issuer',
      `expected one issuer of ${element.local}, the entity of the identity provider`,
    )
  if (issuer.text.trim() !== expected)
    throw new SamlError('issuer', `expected "${expected}", got ${quoted(issuer.text)}`)
}

export function checkIssued(
  element: XmlElement,
  { now, skewMs }: Pick<MessageRules, 'now' | 'skewMs'>,
): number {
  const issued = timeOf(element, 'IssueInstant', 'issued_at')
  if (issued === undefined) throw new SamlError('issued_at', `${element.local} does not say when it was made`)
  if (now + skewMs < issued) throw new SamlError('issued_at', `${element.local} was made after now`)
  if (issued + MAX_AGE_MS + skewMs <= now)
    throw new SamlError('issued_at', `${element.local} was made over ${MAX_AGE_MS / 60_000} minutes ago`)
  return issued
}

/** Returns a time in milliseconds since the epoch. @throws SamlError for what is no time of UTC */
export function timeOf(
  element: XmlElement,
  name: string,
  check: 'issued_at' | 'expiry' | 'not_before' | 'session_end' | 'authn_statement',
): number | undefined {
  const text = element.attributes.get(name)
  if (text === undefined) return undefined
  const time = TIME.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time))
    throw new SamlError(check, `expected ${name} in UTC, such as 2026-01-31T12:00:00Z, got ${quoted(text)}`)
  return time
}

/** Checks a period. @throws SamlError */
export function checkPeriod(
  element: XmlElement,
  { now, skewMs }: Pick<MessageRules, 'now' | 'skewMs'>,
): void {
  const begin = timeOf(element, 'NotBefore', 'not_before')
  if (begin !== undefined && now + skewMs < begin)
    throw new SamlError('not_before', `${element.local} begins at ${element.attributes.get('NotBefore')}`)
  const end = timeOf(element, 'NotOnOrAfter', 'expiry')
  if (end !== undefined && end <= now - skewMs)
    throw new SamlError('expiry', `${element.local} ended at ${element.attributes.get('NotOnOrAfter')}`)
}
