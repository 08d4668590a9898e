/** oidc-provider, a certified authorization server, by TLS on loopback: access tokens by client_credentials. */
import { generateKeyPairSync } from 'node:crypto'
import { createServer, request, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { type CertificateFiles, certificateFiles } from '../vnc/certificate.ts'

export const AUDIENCE = 'https://bastion.lab'
/** Tokens for it are opaque. */
export const OPAQUE_AUDIENCE = 'https://opaque.bastion.lab'

export interface PeerProvider {
  issuer: string
  /** PEM of its certificate. */
  ca: string
  /** Asks for an access token as a client, by its secret. */
  token(client: string, scope?: string, resource?: string): Promise<string>
  stop(): Promise<void>
}

export const secretOf = (client: string): string => `${client}-secret-of-32-characters-or-more`

/** `groups`: of each client, which is the person of its tokens. */
export async function startProvider(groups: Readonly<Record<string, string[]>>): Promise<PeerProvider> {
  const files: CertificateFiles = await certificateFiles()
  const server: Server = createServer(files.pem)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(issuer, {
    clients: Object.keys(groups).map((client_id) => ({
      client_id,
      client_secret: secretOf(client_id),
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    })),
    scopes: ['bastion.read', 'bastion.all'],
    jwks: {
      keys: [
        {
          ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
          kid: 'peer',
        },
      ],
    },
    ttl: { ClientCredentials: 300 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        getResourceServerInfo: (_ctx: unknown, audience: string) => ({
          scope: 'bastion.read bastion.all',
          audience,
          accessTokenFormat: audience === OPAQUE_AUDIENCE ? 'opaque' : 'jwt',
        }),
      },
      introspection: { enabled: true, allowedPolicy: () => true },
    },
    extraTokenClaims: (_ctx: unknown, { clientId: sub }: { clientId: string }) => ({
      sub,
      groups: groups[sub],
    }),
  })
  server.on('request', provider.callback())
  return {
    issuer,
    ca: files.pem.cert,
    async token(client, scope, resource) {
      const asked = { ...(scope && { scope }), ...(resource && { resource }) }
      const body = new URLSearchParams({ grant_type: 'client_credentials', ...asked })
      const answer = await new Promise<string>((resolve, reject) => {
        const call = request(
          `${issuer}/token`,
          {
            method: 'POST',
            ca: files.pem.cert,
            auth: `${client}:${secretOf(client)}`,
            headers: { 'content-type': 'application/x-www-form-urlencoded' },
          },
          async (response) => {
            let text = ''
            for await (const chunk of response) text += chunk
            resolve(text)
          },
        )
        call.on('error', reject)
        call.end(String(body))
      })
      const { access_token: token } = JSON.parse(answer) as { access_token?: string }
      if (token === undefined) throw new Error(`no access token: ${answer}`)
      return token
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      files.remove()
    },
  }
}
