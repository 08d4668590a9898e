/** Assertions by which the bastion proves itself to an issuer, read by jose. */
import { createHash, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { decodeProtectedHeader, importSPKI, jwtVerify } from 'jose'
import { generate } from 'selfsigned'
import { expect, test } from 'vitest'
import { authenticationOf } from '../../../../src/identity/methods/oidc/client.ts'
import type { OidcClient } from '../../../../src/model/external-auths.ts'
import { Secret } from '../../../../src/model/secret.ts'

const SERVER = { issuer: 'https://login.lab/v2.0', token_endpoint: 'https://login.lab/token' }
const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = curve.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/** Returns the assertion of a request. */
async function assertion(client: Partial<OidcClient>, key: string): Promise<string> {
  const all = { id: 'bastion', authentication: 'private_key_jwt', ...client } as OidcClient
  const body = new URLSearchParams()
  const prove = authenticationOf(all, { privateKey: Secret.of(key) })
  await prove(SERVER, { client_id: 'bastion' }, body, new Headers())
  return body.get('client_assertion')!
}

test('an assertion names its key, if one is said', async () => {
  const key = await importSPKI(curve.publicKey.export({ type: 'spki', format: 'pem' }).toString(), 'ES256')
  const { protectedHeader, payload } = await jwtVerify(await assertion({ keyId: 'k1' }, pem), key, {
    audience: SERVER.issuer,
    subject: 'bastion',
  })
  expect(protectedHeader).toEqual({ alg: 'ES256', kid: 'k1' })
  expect(payload.iss).toBe('bastion')
  expect(decodeProtectedHeader(await assertion({}, pem))).toEqual({ alg: 'ES256' })
})

test('the assertion of a certificate has its thumbprint, and is as Entra ID documents it', async () => {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'bastion' }], { keySize: 2048 })
  const known = new X509Certificate(cert)
  const made = await assertion({ certificate: cert }, key)
  const { protectedHeader } = await jwtVerify(made, known.publicKey, { audience: SERVER.token_endpoint })
  const thumbprint = createHash('sha256').update(known.raw).digest('base64url')
  expect(protectedHeader).toEqual({ alg: 'PS256', typ: 'JWT', 'x5t#S256': thumbprint })
  await expect(assertion({ certificate: cert }, pem)).rejects.toThrow('of another key than private_key')
})
