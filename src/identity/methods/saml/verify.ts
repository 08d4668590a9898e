/** Verifies XML signatures by the library: content is read later from the bytes that it has verified. */
import { getVerifiedXml, parseDomFromString } from '@node-saml/node-saml/lib/xml.js'
import { SamlError } from './error.ts'
import { readXml, type XmlElement, type XmlLimits } from './xml.ts'

/**
 * Returns an element as its own canonical, verified bytes have it. `path`: numbers of the elements on the way to it.
 * @throws SamlError unless a certificate has signed it
 */
export async function verified(
  text: string,
  path: readonly number[],
  certificates: readonly string[],
  limits?: XmlLimits,
): Promise<{ element: XmlElement; text: string }> {
  const canonical = await canonicalOf(text, path, certificates).catch((error: Error) => {
    throw new SamlError('signature', error.message)
  })
  if (canonical === null)
    throw new SamlError(
      'signature',
      'no certificate of the identity provider has made it, or its content was changed',
    )
  return { element: readXml(canonical, limits), text: canonical }
}

/** The little that is needed of the library's nodes, whose types are those of browsers. */
interface DomNode {
  nodeType: number
  firstChild: DomNode | null
  nextSibling: DomNode | null
}
const ELEMENT = 1

async function canonicalOf(text: string, path: readonly number[], certificates: readonly string[]) {
  let element: DomNode = (await parseDomFromString(text)).documentElement
  for (const at of path) element = childAt(element, at)
  return getVerifiedXml(text, element as Parameters<typeof getVerifiedXml>[1], [...certificates])
}

function childAt(parent: DomNode, at: number): DomNode {
  let count = 0
  for (let node = parent.firstChild; node; node = node.nextSibling) {
    if (node.nodeType === ELEMENT && count++ === at) return node
  }
  throw new Error('the element is not there')
}
