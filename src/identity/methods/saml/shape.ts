/**
 * Checks the shape of a signed message before its signature is verified: what signature wrapping (XSW) needs is refused for
 * its form, whatever its signature. An element is signed only by a signature directly in it, over itself and nothing else.
 */
import { quoted, SamlError } from './error.ts'
import { childrenOf, elementsOf, isElement, NS } from './names.ts'
import type { XmlElement } from './xml.ts'

const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#'
const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature'
/** With a public key only, and SHA-256 or better: neither HMAC, which the certificate could compute, nor SHA-1. */
export const SIGNATURE_ALGORITHMS = [
  'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
  'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512',
  'http://www.w3.org/2007/05/xmldsig-more#sha256-rsa-MGF1',
]
const DIGEST_ALGORITHMS = [
  'http://www.w3.org/2001/04/xmlenc#sha256',
  'http://www.w3.org/2001/04/xmlenc#sha512',
]
/** NCName, as xs:ID demands. */
const ID = /^[A-Za-z_][A-Za-z0-9_.-]{0,255}$/
/** Attributes that some reader takes for an ID. */
const ID_NAMES = ['ID', 'Id', 'id']
/** Children of a signature and of the elements within it, in order; `?` may be missing. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  Signature: ['SignedInfo', 'SignatureValue', 'KeyInfo?'],
  SignedInfo: ['CanonicalizationMethod', 'SignatureMethod', 'Reference'],
  Reference: ['Transforms', 'DigestMethod', 'DigestValue'],
}

/** Returns the signature of an element, once its form is proved; undefined if it has none. @throws SamlError */
export function signatureOf(element: XmlElement): XmlElement | undefined {
  const [signature, another] = childrenOf(element, 'signature', 'Signature')
  if (another) throw new SamlError('signature_place', `${element.local} has several signatures`)
  if (signature) checkSignature(signature, element)
  return signature
}

/**
 * Checks IDs and the places of signatures in a whole document. `bearers`: the elements that a signature may be directly in.
 * @throws SamlError
 */
export function checkSigned(root: XmlElement, bearers: readonly XmlElement[]): void {
  const ids = new Set<string>()
  for (const element of elementsOf(root)) {
    for (const id of idsOf(element)) {
      if (!ID.test(id))
        throw new SamlError('id', `expected an ID of letters, digits, and . - _, got ${quoted(id)}`)
      if (ids.has(id)) throw new SamlError('id', `the ID ${quoted(id)} comes twice`)
      ids.add(id)
    }
    const isHolder = bearers.includes(element)
    const isNested = element.children.some((child) => isElement(child, 'signature', 'Signature'))
    if (isNested && !isHolder)
      throw new SamlError('signature_place', `a signature in ${element.local} signs nothing that is read`)
  }
  if (isElement(root, 'signature', 'Signature'))
    throw new SamlError('signature_place', 'a signature around the message is refused')
}

function idsOf(element: XmlElement): string[] {
  const plain = ID_NAMES.flatMap((name) => element.attributes.get(name) ?? [])
  const foreign = [...element.foreign].flatMap(([name, value]) =>
    ID_NAMES.includes(name.slice(name.indexOf(' ') + 1)) ? [value] : [],
  )
  return [...plain, ...foreign]
}

function checkSignature(signature: XmlElement, holder: XmlElement): void {
  const [info, value, keyInfo] = checkForm(signature)
  const [canonicalization, method, reference] = checkForm(info!)
  const [transforms, digest, digestValue] = checkForm(reference!)
  for (const leaf of [value!, digest!, digestValue!, method!])
    if (leaf.children.length > 0)
      throw new SamlError('signature_form', `${leaf.local} holds further elements`)
  if (keyInfo) checkKeyInfo(keyInfo)
  const signed = algorithmOf(method!)
  if (!SIGNATURE_ALGORITHMS.includes(signed))
    throw new SamlError('algorithm', `expected RSA with SHA-256 or SHA-512, got ${quoted(signed)}`)
  const hash = algorithmOf(digest!)
  if (!DIGEST_ALGORITHMS.includes(hash))
    throw new SamlError('algorithm', `expected a digest by SHA-256 or SHA-512, got ${quoted(hash)}`)
  checkTransforms(canonicalization!, transforms!)
  const id = holder.attributes.get('ID')
  if (id === undefined || reference!.attributes.get('URI') !== `#${id}`)
    throw new SamlError(
      'reference',
      `the signature in ${holder.local} is over ${quoted(reference!.attributes.get('URI'))}, not over it`,
    )
}

/** Returns the children of an element of XML Signature, which are those of its form and no others. @throws SamlError */
function checkForm(element: XmlElement): XmlElement[] {
  const form = FORMS[element.local]!
  const children = [...element.children]
  const found = form.flatMap((one) => {
    const name = one.replace('?', '')
    const child = children[0]
    if (child && isElement(child, 'signature', name)) return [children.shift()!]
    if (one.endsWith('?')) return []
    throw new SamlError(
      'signature_form',
      `expected ${name} in ${element.local}, got ${child?.local ?? 'nothing'}`,
    )
  })
  if (children[0]) throw new SamlError('signature_form', `${element.local} holds ${children[0].local}, too`)
  return found
}

/** Certificates and keys that a message brings along are never used; nothing else may hide there. */
function checkKeyInfo(keyInfo: XmlElement): void {
  for (const { namespace, local } of elementsOf(keyInfo)) {
    const isForm = local in FORMS || ['Object', 'Manifest', 'RetrievalMethod', 'Transforms'].includes(local)
    if (namespace !== NS.signature || isForm)
      throw new SamlError('signature_form', `KeyInfo holds ${local}, which is no certificate or key`)
  }
}

function checkTransforms(canonicalization: XmlElement, transforms: XmlElement): void {
  const all = childrenOf(transforms, 'signature', 'Transform')
  const names = all.map(algorithmOf)
  if (all.length !== transforms.children.length || names.join(' ') !== `${ENVELOPED} ${EXCLUSIVE}`)
    throw new SamlError(
      'transform',
      `expected the enveloped signature and exclusive canonicalization, got ${quoted(names.join(' '))}`,
    )
  if (algorithmOf(canonicalization) !== EXCLUSIVE)
    throw new SamlError(
      'transform',
      `expected exclusive canonicalization without comments, got ${quoted(algorithmOf(canonicalization))}`,
    )
  for (const one of [canonicalization, ...all]) {
    const isPlain = one.children.every(
      (child) =>
        child.local === 'InclusiveNamespaces' && child.namespace === EXCLUSIVE && child.children.length === 0,
    )
    if (!isPlain || 1 < one.children.length)
      throw new SamlError('transform', `${one.local} holds what is no list of namespaces`)
  }
}

function algorithmOf(element: XmlElement): string {
  return element.attributes.get('Algorithm') ?? ''
}
