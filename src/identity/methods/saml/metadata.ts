/** Reads the metadata of an identity provider (SAML 2.0 Metadata, 2.4.3). */
import { certificateOf, MAX_CERTIFICATES } from './certificates.ts'
import { SamlError } from './error.ts'
import { BINDINGS, childrenOf, isElement } from './names.ts'
import { checkSigned, signatureOf } from './shape.ts'
import { verified } from './verify.ts'
import { MAX_NODES, MAX_XML_BYTES, readXml, type XmlElement, type XmlLimits } from './xml.ts'

/** Unlike a message it may hold comments: nothing in it is the name of a person. */
const LIMITS: XmlLimits = { bytes: MAX_XML_BYTES, nodes: MAX_NODES, areCommentsSkipped: true }
const MAX_URL = 1024
const MAX_ENTITY = 1024

export type Binding = keyof typeof BINDINGS

export interface Endpoint {
  binding: Binding
  url: string
  /** Where answers go, if not there. */
  responseUrl?: string
}

export interface IdpMetadata {
  entityId: string
  /** PEM of the certificates for signatures. */
  certificates: string[]
  signIn: Endpoint
  signOut?: Endpoint
  /** Milliseconds since the epoch after which it is void. */
  validUntil?: number
}

/** The metadata cannot be used. Its message is for administrators. */
export class MetadataError extends Error {
  override name = 'MetadataError'
}

export interface MetadataRules {
  /** Binding that is preferred for requests. */
  binding: Binding
  /** PEM of certificates, one of which must have signed; empty: no signature is asked for. */
  signers: readonly string[]
  /** Milliseconds since the epoch. */
  now: number
}

/** Reads one EntityDescriptor. @throws MetadataError */
export async function readMetadata(text: string, rules: MetadataRules): Promise<IdpMetadata> {
  try {
    const root = await verifiedRoot(text.replace(/^\uFEFF/, ''), rules.signers)
    return metadataOf(root, rules)
  } catch (error) {
    if (error instanceof MetadataError) throw error
    if (error instanceof SamlError)
      throw new MetadataError(error.message.replace(/^SAML message/, 'metadata'))
    throw error
  }
}

async function verifiedRoot(text: string, signers: readonly string[]): Promise<XmlElement> {
  const root = readXml(text, LIMITS)
  if (!isElement(root, 'metadata', 'EntityDescriptor'))
    throw new MetadataError(`expected one EntityDescriptor, got ${root.local}`)
  if (signers.length === 0) return root
  checkSigned(root, [root])
  if (!signatureOf(root))
    throw new MetadataError('the metadata is not signed, and metadata_certificates is set')
  return (await verified(text, [], signers, LIMITS)).element
}

function metadataOf(root: XmlElement, { binding, now }: MetadataRules): IdpMetadata {
  const roles = childrenOf(root, 'metadata', 'IDPSSODescriptor')
  const [role] = roles
  if (!role || roles.length > 1) throw new MetadataError(`expected one IDPSSODescriptor, got ${roles.length}`)
  const entityId = root.attributes.get('entityID') ?? ''
  if (entityId === '' || MAX_ENTITY < entityId.length) throw new MetadataError('expected an entityID')
  const ends = [root, role].flatMap((one) => validUntilOf(one) ?? [])
  if (ends.some((end) => end <= now))
    throw new MetadataError(`the metadata was valid until ${new Date(Math.min(...ends)).toISOString()}`)
  const signIn = endpointOf(role, 'SingleSignOnService', binding)
  if (!signIn) throw new MetadataError('expected a SingleSignOnService by redirect or POST')
  const signOut = endpointOf(role, 'SingleLogoutService', 'redirect')
  return {
    entityId,
    certificates: signingCertificates(role),
    signIn,
    ...(signOut && { signOut }),
    ...(ends.length > 0 && { validUntil: Math.min(...ends) }),
  }
}

function validUntilOf(element: XmlElement): number | undefined {
  const text = element.attributes.get('validUntil')
  if (text === undefined) return undefined
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw new MetadataError('expected validUntil to be a time')
  return time
}

function signingCertificates(role: XmlElement): string[] {
  const found = childrenOf(role, 'metadata', 'KeyDescriptor')
    .filter((one) => (one.attributes.get('use') ?? 'signing') === 'signing')
    .flatMap((one) => childrenOf(one, 'signature', 'KeyInfo'))
    .flatMap((one) => childrenOf(one, 'signature', 'X509Data'))
    .flatMap((one) => childrenOf(one, 'signature', 'X509Certificate'))
    .map(({ text }) => text)
  if (found.length === 0) throw new MetadataError('expected a certificate for signatures')
  if (MAX_CERTIFICATES < found.length)
    throw new MetadataError(`expected at most ${MAX_CERTIFICATES} certificates, got ${found.length}`)
  try {
    return [...new Set(found.map(certificateOf))]
  } catch (error) {
    throw new MetadataError(`certificate: ${(error as Error).message}`)
  }
}

/** Returns the place of a service by the preferred binding, else by the other one. */
function endpointOf(role: XmlElement, local: string, preferred: Binding): Endpoint | undefined {
  const other = preferred === 'redirect' ? 'post' : 'redirect'
  const services = childrenOf(role, 'metadata', local)
  for (const binding of [preferred, other] as const) {
    const service = services.find((one) => one.attributes.get('Binding') === BINDINGS[binding])
    if (!service) continue
    const response = service.attributes.get('ResponseLocation')
    return {
      binding,
      url: urlOf(service.attributes.get('Location') ?? ''),
      ...(response !== undefined && { responseUrl: urlOf(response) }),
    }
  }
  return undefined
}

/** The browser goes there: neither to a script nor to a file. */
function urlOf(text: string): string {
  const flaw = endpointFlaw(text)
  if (flaw !== undefined) throw new MetadataError(flaw)
  return text
}

/** Says what is wrong with the URL of a service. */
export function endpointFlaw(text: string): string | undefined {
  const url = URL.parse(text)
  const isPlain =
    url !== null && ['https:', 'http:'].includes(url.protocol) && url.username === '' && url.password === ''
  return isPlain && text.length <= MAX_URL && !/[#\s"'<>\\]/.test(text)
    ? undefined
    : 'expected the URL of a service'
}
