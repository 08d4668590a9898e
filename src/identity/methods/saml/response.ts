/**
 * Judges responses of an identity provider (SAML 2.0 Core, 3.3.3; Profiles, 4.1.4): form first, then signatures, then content,
 * which is read from verified bytes only.
 */
import type { KeyObject } from 'node:crypto'
import { type Assertion, type AssertionRules, checkInResponseTo, judgeAssertion } from './assertion.ts'
import { decrypted } from './encryption.ts'
import { quoted, SamlError } from './error.ts'
import { checkMessage, messageOf, postedText } from './message.ts'
import { childrenOf, elementsOf, isElement, NS, STATUS_SUCCESS } from './names.ts'
import { checkSigned, signatureOf } from './shape.ts'
import { verified } from './verify.ts'
import { readXml, type XmlElement } from './xml.ts'

export interface ResponseRules extends AssertionRules {
  /** PEM of the identity provider's certificates, any of which may have signed. */
  certificates: readonly string[]
  /** Our keys for encrypted assertions. */
  keys: readonly KeyObject[]
  /** Whether assertions that are not encrypted are refused. */
  isEncryptionNeeded: boolean
}

/** A response whose form is proved, and nothing else. */
export interface ReadResponse {
  text: string
  root: XmlElement
  /** ID of the request that it says to answer. */
  inResponseTo?: string
}

/** Reads a response as it was posted. @throws SamlError */
export function readResponse(posted: string): ReadResponse {
  const text = postedText(posted)
  const root = messageOf(text, 'Response')
  const inResponseTo = root.attributes.get('InResponseTo')
  return { text, root, ...(inResponseTo !== undefined && { inResponseTo }) }
}

/** Returns the one assertion of a response that passes every check. @throws SamlError */
export async function judgeResponse({ text, root }: ReadResponse, rules: ResponseRules): Promise<Assertion> {
  const holder = holderOf(root)
  checkSigned(root, isElement(holder, 'assertion', 'Assertion') ? [root, holder] : [root])
  const isResponseSigned = signatureOf(root) !== undefined
  const response = isResponseSigned ? await verified(text, [], rules.certificates) : undefined
  // Once verified, nothing of the text that came is looked at.
  const envelope = response?.element ?? root
  checkMessage(envelope, rules, isResponseSigned)
  checkStatus(envelope)
  checkInResponseTo(envelope, rules.requestId)
  const given = holderOf(envelope)
  if (!isElement(given, 'assertion', 'EncryptedAssertion')) {
    if (rules.isEncryptionNeeded) throw new SamlError('encryption', 'expected an encrypted assertion')
    const path = [root.children.indexOf(holder)]
    return judgeAssertion(await ownBytes(text, path, holder, response && given, rules), rules)
  }
  const inner = decrypted(given, rules.keys, isResponseSigned)
  const assertion = readXml(inner)
  if (!isElement(assertion, 'assertion', 'Assertion') || assertionsOf(assertion).length !== 1)
    throw new SamlError('assertions', 'expected one assertion within the encrypted one')
  checkSigned(assertion, [assertion])
  return judgeAssertion(await ownBytes(inner, [], assertion, response && assertion, rules), rules)
}

/**
 * Returns the bytes that the assertion's own signature covers, or those within the response's.
 * `within`: the assertion as the verified response has it.
 */
async function ownBytes(
  text: string,
  path: readonly number[],
  assertion: XmlElement,
  within: XmlElement | undefined,
  { certificates }: ResponseRules,
): Promise<XmlElement> {
  if (signatureOf(assertion)) return (await verified(text, path, certificates)).element
  if (within) return within
  throw new SamlError('unsigned', 'neither the response nor the assertion is signed')
}

/** Returns the one assertion, encrypted or not, of a document that holds no other anywhere. */
function holderOf(root: XmlElement): XmlElement {
  const all = assertionsOf(root)
  const [one, another] = all
  if (one && !another && root.children.includes(one) && one.namespace === NS.assertion) return one
  checkStatus(root)
  throw new SamlError('assertions', `expected one assertion, directly in the response, got ${all.length}`)
}

function assertionsOf(root: XmlElement): XmlElement[] {
  // By whatever namespace: a reader that looks for the name only must not find another one.
  return [...elementsOf(root)].filter(({ local }) => local === 'Assertion' || local === 'EncryptedAssertion')
}

function checkStatus(response: XmlElement): void {
  const [status] = childrenOf(response, 'protocol', 'Status')
  const [code] = status ? childrenOf(status, 'protocol', 'StatusCode') : []
  const value = code?.attributes.get('Value')
  if (value === STATUS_SUCCESS) return
  const [further] = code ? childrenOf(code, 'protocol', 'StatusCode') : []
  const [message] = status ? childrenOf(status, 'protocol', 'StatusMessage') : []
  const parts = [value, further?.attributes.get('Value'), message?.text].filter((part) => part !== undefined)
  throw new SamlError('status', `the identity provider says ${parts.map(quoted).join(', ') || 'nothing'}`)
}
