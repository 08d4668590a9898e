/** The bastion as a client of an issuer: how openid-client reaches it, and proves to be that client. */
import { createHash, createPrivateKey, type webcrypto, X509Certificate } from 'node:crypto'
import * as openid from 'openid-client'
import type { OidcClient } from '../../../model/external-auths.ts'
import type { Secret } from '../../../model/secret.ts'
import { exchange, type JsonSource } from './https-json.ts'
import type { Discovered } from './issuer.ts'
import { CLOCK_SKEW } from './signed.ts'

export interface ClientSecrets {
  clientSecret?: Secret
  /** PEM. */
  privateKey?: Secret
}

/** Headers of an answer that openid-client reads. */
const HEADERS = ['content-type', 'www-authenticate'] as const
/** Statuses whose answers have no body. */
const WITHOUT_BODY = [204, 205, 304]
const KEYS =
  'expected the PEM of a key without a passphrase: RSA of 2048 bits or more, P-256, P-384, P-521 or Ed25519'
const CURVES: Readonly<Record<string, string>> = {
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
}

/** Returns the client of an issuer, by its discovery document. @throws Error if its secret is missing, or no key */
export function clientOf(
  document: Discovered,
  client: OidcClient,
  secrets: ClientSecrets,
  source: JsonSource,
  signal: AbortSignal,
): openid.Configuration {
  const authentication = authenticationOf(client, secrets)
  const metadata = { [openid.clockTolerance]: CLOCK_SKEW }
  const configuration = new openid.Configuration(
    document as unknown as openid.ServerMetadata,
    client.id,
    metadata,
    authentication,
  )
  configuration[openid.customFetch] = fetchBy(source, signal)
  configuration.timeout = Math.ceil(source.timeoutMs / 1000)
  return configuration
}

/** Returns a `fetch` with the bounds of `exchange`. */
function fetchBy(source: JsonSource, signal: AbortSignal): openid.CustomFetch {
  return async (url, { method, headers, body }) => {
    const question = { method, headers, ...(body != null && { body: String(body) }) }
    const answer = await exchange(new URL(url), source, signal, question)
    const said = new Headers()
    for (const name of HEADERS) {
      const value = answer.headers[name]
      if (value !== undefined) said.set(name, value)
    }
    const bytes = WITHOUT_BODY.includes(answer.status) ? null : new Uint8Array(answer.body)
    return new Response(bytes, { status: answer.status, headers: said })
  }
}

/** Returns how the client proves itself in each request. @throws Error if its secret is missing, or does not fit */
export function authenticationOf(
  { authentication: method, keyId, certificate }: OidcClient,
  { clientSecret, privateKey }: ClientSecrets,
): openid.ClientAuth {
  if (method === 'none') return openid.None()
  if (method === 'private_key_jwt') {
    if (!privateKey) throw new Error('private_key is not set')
    if (certificate !== undefined) return certified(privateKey, certificate, keyId)
    return openid.PrivateKeyJwt({ key: signingKey(privateKey), ...(keyId !== undefined && { kid: keyId }) })
  }
  if (!clientSecret) throw new Error('client_secret is not set')
  const make = method === 'client_secret_basic' ? openid.ClientSecretBasic : openid.ClientSecretPost
  // The text of the secret lives for one request.
  return (...request) => make(clientSecret.revealText())(...request)
}

/**
 * Proves the client by the key of a certificate, which `x5t#S256` names (RFC 7515 section 4.1.8). PS256 for RSA, and the token
 * endpoint as `aud`, are what Entra ID asks for.
 */
function certified(privateKey: Secret, certificate: string, kid: string | undefined): openid.ClientAuth {
  const known = new X509Certificate(certificate)
  if (!known.checkPrivateKey(createPrivateKey(privateKey.reveal())))
    throw new Error('client_certificate is of another key than private_key')
  const thumbprint = createHash('sha256').update(known.raw).digest('base64url')
  const key = { key: signingKey(privateKey, 'RSA-PSS'), ...(kid !== undefined && { kid }) }
  return (server, ...request) =>
    openid.PrivateKeyJwt(key, {
      [openid.modifyAssertion]: (header, payload) => {
        Object.assign(header, { typ: 'JWT', 'x5t#S256': thumbprint })
        payload['aud'] = server.token_endpoint ?? server.issuer
      },
    })(server, ...request)
}

/** Returns why a text is no private key that a client can prove itself by, or undefined if it is one. */
export function signingKeyFlaw(pem: Secret): string | undefined {
  try {
    signingKey(pem)
    return undefined
  } catch {
    return KEYS
  } finally {
    pem.wipe()
  }
}

/** Returns a private key for the algorithm that it is of. @throws Error for one that signs nothing */
function signingKey(
  pem: Secret,
  rsa: 'RSASSA-PKCS1-v1_5' | 'RSA-PSS' = 'RSASSA-PKCS1-v1_5',
): webcrypto.CryptoKey {
  const key = createPrivateKey(pem.reveal())
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  if (type === 'ed25519') return key.toCryptoKey('Ed25519', false, ['sign'])
  if (type === 'rsa' && 2048 <= (details?.modulusLength ?? 0))
    return key.toCryptoKey({ name: rsa, hash: 'SHA-256' }, false, ['sign'])
  const namedCurve = CURVES[details?.namedCurve ?? '']
  if (type === 'ec' && namedCurve !== undefined)
    return key.toCryptoKey({ name: 'ECDSA', namedCurve }, false, ['sign'])
  throw new Error(KEYS)
}
