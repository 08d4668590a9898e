/** oidc-provider with persons that sign in by browser: forms, refresh tokens, introspection and each kind of logout. */
import { generateKeyPairSync, type JsonWebKey } from 'node:crypto'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { type CertificateFiles, certificateFiles } from '../vnc/certificate.ts'
import { Browser } from './browser.ts'

export const CLIENT_SECRET = 'secret-of-32-characters-or-more-for-the-bastion'
const SECONDS = 300

export interface Login {
  name: string
  email?: string
  groups: string[]
}

export interface LoginProvider {
  issuer: string
  /** PEM of its certificate. */
  ca: string
  /** Persons by their `sub`; a test changes them. */
  persons: Map<string, Login>
  /** The provider's ids of its sessions, newest last. */
  sids: string[]
  /** Requests that came, as METHOD PATH. */
  requests: string[]
  /** Pages of the provider beside its own, by path. */
  pages: Map<string, string>
  /** Answers in place of the provider, if set, for paths that it returns a status for. */
  fault: ((path: string) => number | 'silence' | undefined) | undefined
  /** Signs a person in and gives consent, up to the redirect URI. */
  signIn(browser: Browser, url: URL, sub: string, redirectUri: string): Promise<URL>
  newBrowser(): Browser
  /** Sends a form of the provider to one of its clients. */
  deliver: (url: URL, body: string) => Promise<Response>
  /** Makes the provider forget all grants of a person, as one that is disabled. */
  disable(sub: string): Promise<void>
  stop(): Promise<void>
}

export interface BastionClient {
  client_id: string
  redirect_uris: string[]
  token_endpoint_auth_method?: string
  jwks?: { keys: JsonWebKey[] }
  [more: string]: unknown
}

/** `rotates`: whether a refresh replaces the refresh token. */
export async function startLogins(clients: readonly BastionClient[], rotates = true): Promise<LoginProvider> {
  const files: CertificateFiles = await certificateFiles()
  const server: Server = createServer(files.pem)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const persons = new Map<string, Login>()
  const grants = new Map<string, Set<string>>()
  const provider = new Provider(issuer, {
    clients: clients.map(({ token_endpoint_auth_method: method = 'client_secret_basic', ...client }) => ({
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: method,
      ...(method.startsWith('client_secret') && { client_secret: CLIENT_SECRET }),
      ...client,
    })),
    jwks: {
      keys: [
        {
          ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
          kid: 'logins',
        },
      ],
    },
    claims: {
      openid: ['sub'],
      profile: ['name', 'preferred_username', 'locale', 'groups'],
      email: ['email'],
    },
    scopes: ['openid', 'offline_access', 'profile', 'email'],
    acrValues: ['silver', 'gold'],
    features: {
      devInteractions: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true },
      rpInitiatedLogout: { enabled: true },
      backchannelLogout: { enabled: true },
    },
    pkce: { required: () => true },
    rotateRefreshToken: rotates,
    issueRefreshToken: async (_ctx: unknown, client: { grantTypeAllowed(type: string): boolean }) =>
      client.grantTypeAllowed('refresh_token'),
    fetch: async (url: URL, { body }: { body: unknown }) => await logins.deliver(new URL(url), String(body)),
    ttl: {
      AccessToken: SECONDS,
      AuthorizationCode: SECONDS,
      Grant: SECONDS,
      IdToken: SECONDS,
      Interaction: SECONDS,
      RefreshToken: SECONDS,
      Session: SECONDS,
    },
    findAccount: async (_ctx: unknown, sub: string) => {
      const person = persons.get(sub)
      if (!person) return undefined
      const { name, groups, email = `${name}@example.org` } = person
      const claims = { sub, name: name.toUpperCase(), preferred_username: name, email, locale: 'fr', groups }
      return { accountId: sub, claims: async () => claims }
    },
  })
  provider.on('grant.success', ({ oidc }) => {
    const { AuthorizationCode: code, Grant: grant, Account: account } = oidc.entities
    if (code?.sid !== undefined) logins.sids.push(code.sid)
    if (!grant?.jti || !account) return
    const known = grants.get(account.accountId) ?? new Set<string>()
    grants.set(account.accountId, known.add(grant.jti))
  })
  const handle = provider.callback()
  const logins: LoginProvider = {
    issuer,
    ca: files.pem.cert,
    persons,
    sids: [],
    pages: new Map(),
    requests: [],
    fault: undefined,
    deliver: async () => new Response(null, { status: 404 }),
    newBrowser: () => new Browser(files.pem.cert),
    async signIn(browser, url, sub, redirectUri) {
      let page = await browser.open(url, redirectUri)
      for (let count = 0; count < 3 && page.status === 200; count++) {
        const isLogin = page.text.includes('name="login"')
        page = await browser.submit(page, isLogin ? { login: sub, password: 'any' } : {}, redirectUri)
      }
      if (!page.url.href.startsWith(redirectUri)) throw new Error(`${page.url}: ${page.status} ${page.text}`)
      return page.url
    },
    async disable(sub) {
      persons.delete(sub)
      for (const id of grants.get(sub) ?? []) await (await provider.Grant.find(id))?.destroy()
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      files.remove()
    },
  }
  server.on('request', (request, response) => {
    const path = new URL(request.url ?? '/', issuer).pathname
    logins.requests.push(`${request.method} ${path}`)
    const fault = logins.fault?.(path)
    const page = logins.pages.get(path)
    if (page !== undefined) response.setHeader('content-type', 'text/html').end(page)
    else if (fault === undefined) handle(request, response)
    else if (fault !== 'silence') response.writeHead(fault).end('no')
  })
  return logins
}
