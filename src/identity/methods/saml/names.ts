/** Names of SAML 2.0, XML Signature and XML Encryption, and the way to their elements. */
import type { XmlElement } from './xml.ts'

export const NS = {
  protocol: 'urn:oasis:names:tc:SAML:2.0:protocol',
  assertion: 'urn:oasis:names:tc:SAML:2.0:assertion',
  metadata: 'urn:oasis:names:tc:SAML:2.0:metadata',
  signature: 'http://www.w3.org/2000/09/xmldsig#',
  encryption: 'http://www.w3.org/2001/04/xmlenc#',
} as const
export type NsName = keyof typeof NS

export const BINDINGS = {
  redirect: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect',
  post: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST',
} as const

export const NAME_ID_FORMATS = {
  unspecified: 'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified',
  email: 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
  persistent: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
  transient: 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient',
} as const

export const STATUS_SUCCESS = 'urn:oasis:names:tc:SAML:2.0:status:Success'
export const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer'
export const ENTITY_FORMAT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:entity'

/** Whether an element has this name of this namespace. */
export function isElement(element: XmlElement, ns: NsName, local: string): boolean {
  return element.local === local && element.namespace === NS[ns]
}

/** Returns the elements of a name directly in another one. */
export function childrenOf(element: XmlElement, ns: NsName, local: string): XmlElement[] {
  return element.children.filter((child) => isElement(child, ns, local))
}

/** Returns all elements within another one, and itself. */
export function* elementsOf(root: XmlElement): Generator<XmlElement> {
  const waiting = [root]
  for (let element = waiting.pop(); element; element = waiting.pop()) {
    yield element
    waiting.push(...element.children)
  }
}
