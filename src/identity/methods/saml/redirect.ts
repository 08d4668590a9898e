/** Messages that come by the redirect binding: inflated within limits, and verified by the signature in the query. */
import type { Buffer } from 'node:buffer'
import { constants, verify, X509Certificate } from 'node:crypto'
import { inflateRawSync } from 'node:zlib'
import { base64Of } from './base64.ts'
import { quoted, SamlError } from './error.ts'
import type { Parameter } from './request.ts'
import { SIGNATURE_ALGORITHMS } from './shape.ts'
import { decodeUtf8, MAX_XML_BYTES } from './xml.ts'

/** Characters of a query. */
export const MAX_QUERY = 65_536
const PARAMETERS = ['SAMLRequest', 'SAMLResponse', 'RelayState', 'SigAlg', 'Signature', 'SAMLEncoding']
const DEFLATE = 'urn:oasis:names:tc:SAML:2.0:bindings:URL-Encoding:DEFLATE'

export interface Redirected {
  parameter: Parameter
  text: string
  relayState?: string
}

/** Returns a message whose signature one of the certificates has made. `query`: as it came, without its `?`. @throws SamlError */
export function redirectedMessage(query: string, certificates: readonly string[]): Redirected {
  if (MAX_QUERY < query.length)
    throw new SamlError('size', `expected a query of at most ${MAX_QUERY} characters`)
  const raw = rawParameters(query)
  const parameter = raw.has('SAMLRequest') ? 'SAMLRequest' : 'SAMLResponse'
  if (raw.has('SAMLRequest') === raw.has('SAMLResponse'))
    throw new SamlError('form', 'expected one of SAMLRequest and SAMLResponse')
  const encoding = raw.get('SAMLEncoding')
  if (encoding !== undefined && decoded(encoding) !== DEFLATE)
    throw new SamlError('form', `expected a message by DEFLATE, got ${quoted(decoded(encoding))}`)
  checkSignature(raw, parameter, certificates)
  const relayState = raw.get('RelayState')
  return {
    parameter,
    text: inflated(base64Of(decoded(raw.get(parameter)!), 'form')),
    ...(relayState !== undefined && { relayState: decoded(relayState) }),
  }
}

/** Returns the parameters undecoded, in the form that the signature covers. */
function rawParameters(query: string): Map<string, string> {
  const raw = new Map<string, string>()
  for (const part of query.split('&')) {
    const at = part.indexOf('=')
    const name = at === -1 ? part : part.slice(0, at)
    if (!PARAMETERS.includes(name)) continue
    if (raw.has(name)) throw new SamlError('form', `${name} comes twice`)
    raw.set(name, part.slice(at + 1))
  }
  return raw
}

function checkSignature(
  raw: ReadonlyMap<string, string>,
  parameter: Parameter,
  certificates: readonly string[],
): void {
  const [algorithm, signature] = [raw.get('SigAlg'), raw.get('Signature')]
  if (algorithm === undefined || signature === undefined)
    throw new SamlError('unsigned', 'the query is not signed')
  const name = decoded(algorithm)
  if (!SIGNATURE_ALGORITHMS.includes(name))
    throw new SamlError('algorithm', `expected RSA with SHA-256 or SHA-512, got ${quoted(name)}`)
  const signed = [parameter, 'RelayState', 'SigAlg']
    .flatMap((one) => (raw.has(one) ? [`${one}=${raw.get(one)}`] : []))
    .join('&')
  const bytes = base64Of(decoded(signature), 'signature')
  const isPss = name.endsWith('MGF1')
  const padding = isPss
    ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
    : {}
  const isVerified = certificates.some((pem) =>
    verify(
      name.endsWith('sha512') ? 'sha512' : 'sha256',
      new TextEncoder().encode(signed),
      { key: new X509Certificate(pem).publicKey, ...padding },
      bytes,
    ),
  )
  if (!isVerified) throw new SamlError('signature', 'no certificate of the identity provider has made it')
}

function inflated(bytes: Buffer): string {
  try {
    return decodeUtf8(inflateRawSync(bytes, { maxOutputLength: MAX_XML_BYTES }))
  } catch (error) {
    if (error instanceof SamlError) throw error
    throw new SamlError('size', `expected a deflated message of at most ${MAX_XML_BYTES} bytes`)
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new SamlError('form', 'expected a query in UTF-8')
  }
}
