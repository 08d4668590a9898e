/** Sign-ins by browser at oidc-provider, on a real store, without the API. */
import { randomBytes } from 'node:crypto'
import { Identities } from '../../../../src/identity/chain.ts'
import { External } from '../../../../src/identity/external.ts'
import { sealExternal } from '../../../../src/identity/external-secrets.ts'
import { Federated } from '../../../../src/identity/federated.ts'
import type { HashSeal } from '../../../../src/identity/hashes.ts'
import { Lockout } from '../../../../src/identity/lockout.ts'
import { MethodRegistry } from '../../../../src/identity/methods/registry.ts'
import { type Finished, OidcSignIns } from '../../../../src/identity/oidc-sign-ins.ts'
import { ProviderSessions } from '../../../../src/identity/provider-sessions.ts'
import type {
  AuthDomain,
  ExternalAuth,
  OidcClient,
  OidcOptions,
} from '../../../../src/model/external-auths.ts'
import { Secret } from '../../../../src/model/secret.ts'
import { type DataKey, KEY_BYTES, KEY_ID_BYTES, open, seal } from '../../../../src/vault/seal.ts'
import type { LoginProvider } from '../../../peers/oidc/logins.ts'
import { newAuthDomain, newExternalAuth } from '../../../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../../../store/temp.ts'

export const SITE = 'https://bastion.lab'
export const BROWSER = { source: '192.0.2.1', owner: 'browser 1' }
export const redirectUri = (name: string): string => `${SITE}/signin/oidc/${name}/callback`

export interface World {
  temp: TemporaryStore
  signIns: OidcSignIns
  sessions: ProviderSessions
  registry: MethodRegistry
  /** `ahead`: added to the clock, in milliseconds. */
  clock: { ahead: number }
  failures: string[]
  /** Adds a provider with a domain of the same name, whose group `ops` is mapped. */
  provider(
    name: string,
    peer: Pick<LoginProvider, 'issuer' | 'ca'>,
    client?: Partial<OidcClient>,
    more?: Partial<OidcOptions>,
    secrets?: Record<string, string>,
  ): Promise<{ auth: ExternalAuth; domain: AuthDomain }>
  /** Changes how long a provider may take, which begins with it anew: nothing that was read before counts. */
  within(name: string, timeoutMs: number): Promise<void>
  /** Signs in from end to end. */
  signIn(name: string, peer: LoginProvider, sub: string): Promise<Finished>
  close(): Promise<void>
}

/** Milliseconds that a sound provider may take, also on a slow machine. */
export const PATIENCE_MS = 60_000

export async function startWorld(): Promise<World> {
  const temp = await temporaryStore()
  const { store } = temp
  const dataKey: DataKey = { id: randomBytes(KEY_ID_BYTES), key: Secret.of(randomBytes(KEY_BYTES)) }
  const vault: HashSeal = {
    seal: (place, secret) => seal(dataKey, place, secret),
    open: (place, sealed) => open(dataKey, place, sealed),
  }
  const clock = { ahead: 0 }
  const now = () => Date.now() + clock.ahead
  const onFailure = (name: string, _server: string, { message }: Error) =>
    void world.failures.push(`${name}: ${message}`)
  const registry = new MethodRegistry({ store, vault, now, site: SITE, onFailure })
  const external = new External({ store, registry })
  const identities = new Identities(store.users, {} as never, new Lockout(), now, vault, external)
  const sessions = new ProviderSessions({ store, vault, now })
  const federated = new Federated({ external, identities, sessions })
  const signIns = new OidcSignIns({ store, registry, federated, sessions, site: SITE, now })
  const world: World = {
    ...{ temp, signIns, sessions, registry, clock, failures: [] },
    async provider(name, { issuer, ca }, client = {}, more = {}, secrets = {}) {
      const options: OidcOptions = {
        issuer,
        audience: '',
        tokenType: 'at+jwt',
        userClaim: 'preferred_username',
        boundClaims: [],
        scopes: [],
        caCertificates: ca,
        client: {
          id: 'bastion',
          authentication: 'client_secret_basic',
          scopes: ['openid', 'profile', 'email'],
          acrValues: [],
          amrValues: [],
          logoutEndsSessions: true,
          lifetime: 60,
          ...client,
        },
        ...more,
      }
      const made = { ...newExternalAuth(name, { timeoutMs: PATIENCE_MS }), type: 'OIDC', options }
      const auth = await store.externalAuths.create(made as Omit<ExternalAuth, 'id'>)
      const sealed = Object.entries(secrets).map(
        ([one, text]) => [one, sealExternal(vault, auth.id, one, Secret.of(text))] as const,
      )
      await store.externalAuths.setSealedSecrets(auth.id, new Map(sealed))
      const domain = await store.authDomains.create(
        newAuthDomain(name, { type: 'OIDC', externalAuthIds: [auth.id] }),
      )
      const group = { groupName: `staff-${name}`, description: '', userIds: [] }
      const { id: userGroupId } = await store.userGroups.create(group)
      const mapping = { authDomainId: domain.id, userGroupId, externalGroup: 'ops', profile: 'user' }
      await store.authDomainMappings.create(mapping)
      return { auth: (await store.externalAuths.find(auth.id))!, domain }
    },
    async within(name, timeoutMs) {
      await store.externalAuths.update((await store.externalAuths.find(name))!.id, { timeoutMs })
    },
    async signIn(name, peer, sub) {
      const begun = await signIns.begin(name, '/account', BROWSER)
      if (begun.result !== 'redirect') throw new Error(JSON.stringify(begun))
      const back = await peer.signIn(peer.newBrowser(), begun.url, sub, redirectUri(name))
      return await signIns.finish(name, back.searchParams, BROWSER)
    },
    async close() {
      await registry.close()
      await temp.remove()
    },
  }
  return world
}
