/** Messages of an identity provider about a sign-out (SAML 2.0 Core, 3.7), which have to be signed. */
import { checkInResponseTo, type NameId, readNameId } from './assertion.ts'
import { SamlError } from './error.ts'
import {
  checkIssuer,
  checkMessage,
  checkPeriod,
  type MessageRules,
  messageOf,
  postedText,
} from './message.ts'
import { childrenOf, STATUS_SUCCESS } from './names.ts'
import { type Redirected, redirectedMessage } from './redirect.ts'
import type { Parameter } from './request.ts'
import { checkSigned, signatureOf } from './shape.ts'
import { verified } from './verify.ts'
import type { XmlElement } from './xml.ts'

const MAX_SESSIONS = 64

export interface LogoutRules extends MessageRules {
  /** PEM of the identity provider's certificates. */
  certificates: readonly string[]
}

export interface LogoutRequest {
  id: string
  nameId: NameId
  /** Sessions that have ended; empty: all of the person. */
  sessionIndexes: string[]
}

/** A message whose signature was verified. */
export interface VerifiedLogout {
  parameter: Parameter
  element: XmlElement
  relayState?: string
}

/** Verifies a message by the redirect binding. `query`: as it came. @throws SamlError */
export function redirectedLogout(query: string, certificates: readonly string[]): VerifiedLogout {
  const { parameter, text, relayState }: Redirected = redirectedMessage(query, certificates)
  const element = messageOf(text, nameOf(parameter))
  checkSigned(element, [element])
  return { parameter, element, ...(relayState !== undefined && { relayState }) }
}

/** Verifies a message by the POST binding. @throws SamlError */
export async function postedLogout(
  parameter: Parameter,
  message: string,
  certificates: readonly string[],
): Promise<VerifiedLogout> {
  const text = postedText(message)
  const root = messageOf(text, nameOf(parameter))
  checkSigned(root, [root])
  if (!signatureOf(root)) throw new SamlError('unsigned', 'the message is not signed')
  return { parameter, element: (await verified(text, [], certificates)).element }
}

/** @throws SamlError */
export function judgeLogoutRequest(element: XmlElement, rules: LogoutRules): LogoutRequest {
  checkLogout(element, rules)
  checkPeriod(element, rules)
  const names = childrenOf(element, 'assertion', 'NameID')
  const [nameId] = names
  if (!nameId || names.length > 1) throw new SamlError('subject', `expected one NameID, got ${names.length}`)
  const sessionIndexes = childrenOf(element, 'protocol', 'SessionIndex').map(({ text }) => text.trim())
  if (MAX_SESSIONS < sessionIndexes.length)
    throw new SamlError('subject', `expected at most ${MAX_SESSIONS} sessions, got ${sessionIndexes.length}`)
  return { id: element.attributes.get('ID')!, nameId: readNameId(nameId), sessionIndexes }
}

/** @throws SamlError unless it says that the request of this ID was obeyed */
export function judgeLogoutResponse(element: XmlElement, rules: LogoutRules, requestId: string): void {
  checkLogout(element, rules)
  checkInResponseTo(element, requestId)
  const [status] = childrenOf(element, 'protocol', 'Status')
  const [code] = status ? childrenOf(status, 'protocol', 'StatusCode') : []
  if (code?.attributes.get('Value') !== STATUS_SUCCESS)
    throw new SamlError('status', 'the identity provider has not ended all sessions')
}

function checkLogout(element: XmlElement, rules: LogoutRules): void {
  checkMessage(element, rules, true)
  checkIssuer(element, rules.issuer)
}

const nameOf = (parameter: Parameter) => (parameter === 'SAMLRequest' ? 'LogoutRequest' : 'LogoutResponse')
