/** Finds out where and how an account's secret is changed. */
import type { ChangeTarget, SignIn, SignInSecret, Trust } from '../contract/change.ts'
import { CHANGE_PLUGINS, type ChangePluginKind, type ChangePluginName } from '../model/change-plugins.ts'
import {
  type Account,
  type CredentialType,
  type Device,
  type Domain,
  type DomainChange,
  FACTORY_CONNECTION_POLICIES,
  type Id,
  type Service,
} from '../model/objects.ts'
import type { PasswordChangePolicy } from '../model/password-change.ts'
import type { PlacedAccount, Store } from '../store/store.ts'
import type { Credential } from '../vault/credentials.ts'

export interface ChangePlace {
  account: Account
  domain: Domain
  device: Device | undefined
  plugin: ChangePluginName
  kind: ChangePluginKind
  policy: PasswordChangePolicy
  target: ChangeTarget
  /** Another account than this one. */
  administrator: Account | undefined
}

type PlaceStore = Pick<
  Store,
  | 'accounts'
  | 'connectionPolicies'
  | 'domains'
  | 'devices'
  | 'hostKeys'
  | 'passwordChangePolicies'
  | 'services'
>

export const kindOf = (plugin: string): ChangePluginKind | undefined =>
  Object.hasOwn(CHANGE_PLUGINS, plugin) ? CHANGE_PLUGINS[plugin as ChangePluginName] : undefined

/** Returns the account, if it is there, and where its secret is changed, or why it cannot be. */
export async function placeOf(
  store: PlaceStore,
  accountId: Id,
): Promise<{ placed: PlacedAccount | undefined; place: ChangePlace | string }> {
  const [placed] = await store.accounts.meant({ account: accountId }, 1)
  return { placed, place: placed ? await configured(store, placed) : 'the account is gone' }
}

async function configured(
  store: PlaceStore,
  { account, device }: PlacedAccount,
): Promise<ChangePlace | string> {
  const domain = await store.domains.find(account.domainId)
  const change = domain?.change
  if (!domain || !change?.isEnabled) return "the account's domain does not change passwords"
  const kind = kindOf(change.plugin)
  if (!kind) return `there is no plugin ${change.plugin}`
  const policy = await store.passwordChangePolicies.find(change.policyId)
  if (!policy) return 'the password change policy of the domain is gone'
  const target = await targetOf(store, kind, change, device)
  if (typeof target === 'string') return target
  const administrator =
    change.adminAccountId === undefined || change.adminAccountId === account.id
      ? undefined
      : await store.accounts.find(change.adminAccountId)
  return {
    ...{ account, domain, device, kind, policy, target, administrator },
    plugin: change.plugin as ChangePluginName,
  }
}

async function targetOf(
  store: PlaceStore,
  kind: ChangePluginKind,
  { parameters }: DomainChange,
  device: Device | undefined,
): Promise<ChangeTarget | string> {
  const { host = device?.host, port, ca, host_keys: lines } = parameters
  if (typeof host !== 'string') return 'the domain has no device, and no parameter host'
  const services = device ? await store.services.ofDevice(device.id) : []
  const service = kind.protocols
    .flatMap((protocol) => services.filter((one) => one.protocol === protocol))
    .find(() => true)
  const vouched = service?.protocol === 'SSH' ? await vouchedBy(store, service) : undefined
  const pinned = service ? await store.hostKeys.ofService(service.id) : []
  const hostKeys = [
    ...pinned
      .filter(({ state, keyType }) => state === 'accepted' && keyType !== 'x509' && keyType !== 'rsa')
      .map(({ key }) => key),
    ...(typeof lines === 'string' ? keysIn(lines) : []),
  ]
  return {
    host,
    port: typeof port === 'number' ? port : (service?.port ?? kind.port),
    ...(service && { protocol: service.protocol }),
    parameters,
    trust: {
      ...(vouched ?? (hostKeys.length > 0 && { hostKeys })),
      ...(typeof ca === 'string' && { certificates: ca }),
    },
  }
}

/** Returns what vouches for the service's host key, or undefined if it is pinned. */
async function vouchedBy(
  store: PlaceStore,
  { connectionPolicyId, hostKeyPolicy, protocol }: Service,
): Promise<Pick<Trust, 'hostAuthorities' | 'hostKeyPolicy'> | undefined> {
  const policyId = connectionPolicyId ?? FACTORY_CONNECTION_POLICIES[protocol]
  const policy = await store.connectionPolicies.find(policyId)
  const decided = hostKeyPolicy ?? policy?.hostKeyPolicy
  if (decided === 'dns') return { hostKeyPolicy: decided }
  if (decided === 'ca') return { hostKeyPolicy: decided, hostAuthorities: policy?.ssh.hostCaKeys ?? [] }
  return undefined
}

/** Returns the keys in lines of known_hosts, or of public keys. */
export function keysIn(lines: string): string[] {
  return lines.split('\n').flatMap((line) => /\bAAAA[A-Za-z0-9+/]+={0,2}/.exec(line)?.[0] ?? [])
}

/** Returns how an account signs in by one of its credentials, in the order in which to try them. */
export function signInOf(
  account: Account,
  credentials: readonly Credential[],
  type: CredentialType,
): SignIn | undefined {
  const used = credentials.find((one) => one.type === (type === 'enable' ? 'password' : type))
  if (!used) return undefined
  const enable = credentials.find((one) => one.type === 'enable')
  return {
    login: account.accountLogin,
    secret: secretOf(used),
    ...(enable?.type === 'enable' && { enable: enable.password.revealText() }),
  }
}

function secretOf(credential: Credential): SignInSecret {
  if (credential.type !== 'ssh_key') return { type: 'password', password: credential.password.revealText() }
  return {
    type: 'ssh_key',
    privateKey: credential.privateKey.revealText(),
    ...(credential.passphrase && { passphrase: credential.passphrase.revealText() }),
  }
}
