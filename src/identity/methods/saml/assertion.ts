/** Judges the content of an assertion whose signature was verified (SAML 2.0 Profiles, 4.1.4). */
import { quoted, SamlError } from './error.ts'
import {
  checkIssued,
  checkIssuer,
  checkPeriod,
  checkVersion,
  MAX_AGE_MS,
  type MessageRules,
  timeOf,
} from './message.ts'
import { BEARER, childrenOf, isElement, type NsName } from './names.ts'
import type { XmlElement } from './xml.ts'

const MAX_TEXT = 1024
const MAX_ATTRIBUTES = 256
const MAX_VALUES = 2000
/** Conditions that are understood; any other one makes the assertion void. */
const CONDITIONS = ['AudienceRestriction', 'OneTimeUse', 'ProxyRestriction']

export interface AssertionRules extends MessageRules {
  /** Our entityID. */
  audience: string
  /** ID of our request; absent if the identity provider has begun. */
  requestId?: string
  /** AuthnContextClassRef, one of which is needed; empty: any is. */
  authnContexts: readonly string[]
}

export interface NameId {
  value: string
  format?: string
  nameQualifier?: string
  spNameQualifier?: string
}

/** A person's sign-in at the identity provider, as a verified assertion says it. */
export interface Assertion {
  id: string
  /** Milliseconds since the epoch after which it proves nothing. */
  end: number
  nameId: NameId
  /** Values of the attributes by name. */
  attributes: ReadonlyMap<string, readonly string[]>
  authnContext: string
  sessionIndex?: string
  /** Milliseconds since the epoch at which the sign-in ends. */
  sessionEnd?: number
}

/** @throws SamlError */
export function judgeAssertion(assertion: XmlElement, rules: AssertionRules): Assertion {
  checkVersion(assertion)
  checkIssuer(assertion, rules.issuer)
  const issued = checkIssued(assertion, rules)
  const subject = only(assertion, 'Subject', 'subject')
  const confirmed = checkConfirmation(subject, rules)
  const nameId = nameIdOf(subject)
  const end = checkConditions(assertion, rules)
  return {
    id: assertion.attributes.get('ID')!,
    end: Math.min(confirmed, end, issued + MAX_AGE_MS) + rules.skewMs,
    nameId,
    attributes: attributesOf(assertion),
    ...authnOf(assertion, rules),
  }
}

/** Returns the end of the one confirmation that holds. Any other one is left out, as the profile wants it. */
function checkConfirmation(subject: XmlElement, rules: AssertionRules): number {
  const all = childrenOf(subject, 'assertion', 'SubjectConfirmation')
  const bearers = all.filter((one) => one.attributes.get('Method') === BEARER)
  let flaw = new SamlError('confirmation', 'no confirmation is of the method bearer')
  for (const bearer of bearers) {
    try {
      return confirmedUntil(only(bearer, 'SubjectConfirmationData', 'confirmation'), rules)
    } catch (error) {
      if (!(error instanceof SamlError)) throw error
      flaw = error
    }
  }
  throw flaw
}

function confirmedUntil(data: XmlElement, rules: AssertionRules): number {
  const recipient = data.attributes.get('Recipient')
  if (recipient !== rules.destination)
    throw new SamlError('recipient', `expected "${rules.destination}", got ${quoted(recipient)}`)
  const end = timeOf(data, 'NotOnOrAfter', 'expiry')
  if (end === undefined) throw new SamlError('expiry', 'the confirmation does not say when it ends')
  // The profile forbids a beginning here; it is kept where there is one.
  checkPeriod(data, rules)
  checkInResponseTo(data, rules.requestId)
  return end
}

/** @throws SamlError unless it answers the request, or no request if there is none */
export function checkInResponseTo(element: XmlElement, requestId: string | undefined): void {
  const answered = element.attributes.get('InResponseTo')
  if (answered === requestId) return
  const expected = requestId === undefined ? 'no request, since none was made' : `the request "${requestId}"`
  throw new SamlError('in_response_to', `${element.local} has to answer ${expected}, got ${quoted(answered)}`)
}

function nameIdOf(subject: XmlElement): NameId {
  if (childrenOf(subject, 'assertion', 'EncryptedID').length > 0)
    throw new SamlError('subject', 'an encrypted NameID is not read: encrypt the whole assertion')
  const nameId = only(subject, 'NameID', 'subject')
  return readNameId(nameId)
}

/** @throws SamlError */
export function readNameId(nameId: XmlElement): NameId {
  const value = leafText(nameId, 'subject')
  if (value === '') throw new SamlError('subject', 'the NameID is empty')
  const [format, nameQualifier, spNameQualifier] = ['Format', 'NameQualifier', 'SPNameQualifier'].map(
    (name) => nameId.attributes.get(name),
  )
  return {
    value,
    ...(format !== undefined && { format }),
    ...(nameQualifier !== undefined && { nameQualifier }),
    ...(spNameQualifier !== undefined && { spNameQualifier }),
  }
}

/** Returns the end of the conditions. */
function checkConditions(assertion: XmlElement, rules: AssertionRules): number {
  const conditions = only(assertion, 'Conditions', 'conditions')
  checkPeriod(conditions, rules)
  for (const one of conditions.children) {
    if (!CONDITIONS.some((name) => isElement(one, 'assertion', name)))
      throw new SamlError('conditions', `the condition ${one.local} is not understood`)
  }
  const restrictions = childrenOf(conditions, 'assertion', 'AudienceRestriction')
  if (restrictions.length === 0) throw new SamlError('audience', 'the assertion does not say for whom it is')
  for (const restriction of restrictions) {
    const audiences = childrenOf(restriction, 'assertion', 'Audience').map((one) => leafText(one, 'audience'))
    if (!audiences.includes(rules.audience))
      throw new SamlError('audience', `expected "${rules.audience}", got ${quoted(audiences.join(' '))}`)
  }
  return timeOf(conditions, 'NotOnOrAfter', 'expiry') ?? Number.POSITIVE_INFINITY
}

function authnOf(assertion: XmlElement, rules: AssertionRules) {
  const statement = only(assertion, 'AuthnStatement', 'authn_statement')
  const instant = timeOf(statement, 'AuthnInstant', 'authn_statement')
  if (instant === undefined || rules.now + rules.skewMs < instant)
    throw new SamlError(
      'authn_statement',
      'it does not say when the person has signed in, or a time after now',
    )
  const context = only(statement, 'AuthnContext', 'authn_context')
  const [reference] = childrenOf(context, 'assertion', 'AuthnContextClassRef')
  const authnContext = reference ? leafText(reference, 'authn_context') : ''
  if (rules.authnContexts.length > 0 && !rules.authnContexts.includes(authnContext))
    throw new SamlError(
      'authn_context',
      `expected one of ${rules.authnContexts.join(', ')}, got ${quoted(authnContext)}`,
    )
  const sessionEnd = timeOf(statement, 'SessionNotOnOrAfter', 'session_end')
  if (sessionEnd !== undefined && sessionEnd <= rules.now)
    throw new SamlError('session_end', 'the session at the identity provider has ended')
  const sessionIndex = statement.attributes.get('SessionIndex')
  if (sessionIndex !== undefined && MAX_TEXT < sessionIndex.length)
    throw new SamlError('authn_statement', `expected a SessionIndex of at most ${MAX_TEXT} characters`)
  return {
    authnContext,
    ...(sessionIndex !== undefined && { sessionIndex }),
    ...(sessionEnd !== undefined && { sessionEnd }),
  }
}

/** Values with elements in them are no text, and left out. */
function attributesOf(assertion: XmlElement): Map<string, string[]> {
  const attributes = new Map<string, string[]>()
  let values = 0
  for (const statement of childrenOf(assertion, 'assertion', 'AttributeStatement')) {
    for (const attribute of childrenOf(statement, 'assertion', 'Attribute')) {
      const name = attribute.attributes.get('Name')
      if (!name) throw new SamlError('attribute', 'an attribute has no name')
      const found = childrenOf(attribute, 'assertion', 'AttributeValue').filter(
        (one) => one.children.length === 0,
      )
      values += found.length
      attributes.set(name, [
        ...(attributes.get(name) ?? []),
        ...found.map((one) => leafText(one, 'attribute')),
      ])
    }
  }
  if (MAX_ATTRIBUTES < attributes.size || MAX_VALUES < values)
    throw new SamlError(
      'attribute',
      `expected at most ${MAX_ATTRIBUTES} attributes with ${MAX_VALUES} values`,
    )
  return attributes
}

/** Returns the text of an element without others in it. */
function leafText(
  element: XmlElement,
  check: 'subject' | 'audience' | 'authn_context' | 'attribute',
): string {
  if (element.children.length > 0) throw new SamlError(check, `${element.local} holds further elements`)
  const text = element.text.trim()
  if (MAX_TEXT < text.length)
    throw new SamlError(check, `expected ${element.local} of at most ${MAX_TEXT} characters`)
  return text
}

function only(
  element: XmlElement,
  local: string,
  check: 'subject' | 'confirmation' | 'conditions' | 'authn_statement' | 'authn_context',
): XmlElement {
  const ns: NsName = 'assertion'
  const found = childrenOf(element, ns, local)
  const [one, another] = found
  if (!one || another)
    throw new SamlError(check, `expected one ${local} in ${element.local}, got ${found.length}`)
  return one
}
