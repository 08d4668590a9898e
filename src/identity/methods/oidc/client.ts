/** The bastion as a client of an issuer: how openid-client reaches it, and proves to be that client. */
import { createPrivateKey, type webcrypto } from 'node:crypto'
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
  const authentication = authenticationOf(client.authentication, secrets)
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

function authenticationOf(
  method: OidcClient['authentication'],
  { clientSecret, privateKey }: ClientSecrets,
): openid.ClientAuth {
  if (method === 'none') return openid.None()
  if (method === 'private_key_jwt') {
    if (!privateKey) throw new Error('private_key is not set')
    return openid.PrivateKeyJwt(signingKey(privateKey))
  }
  if (!clientSecret) throw new Error('client_secret is not set')
  const make = method === 'client_secret_basic' ? openid.ClientSecretBasic : openid.ClientSecretPost
  // The text of the secret lives for one request.
  return (...request) => make(clientSecret.revealText())(...request)
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
function signingKey(pem: Secret): webcrypto.CryptoKey {
  const key = createPrivateKey(pem.reveal())
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  if (type === 'ed25519') return key.toCryptoKey('Ed25519', false, ['sign'])
  if (type === 'rsa' && 2048 <= (details?.modulusLength ?? 0))
    return key.toCryptoKey({ name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }, false, ['sign'])
  const namedCurve = CURVES[details?.namedCurve ?? '']
  if (type === 'ec' && namedCurve !== undefined)
    return key.toCryptoKey({ name: 'ECDSA', namedCurve }, false, ['sign'])
  throw new Error(KEYS)
}
