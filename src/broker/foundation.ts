/** The lowest parts of the broker, which the command line beside it uses too. */
import { randomBytes } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { openDataFolder, shareKeys } from '../host/data-folder.ts'
import { Bearers } from '../identity/bearers.ts'
import { BrowserSignIns } from '../identity/browser-sign-in/waiting.ts'
import { Identities } from '../identity/chain.ts'
import { External } from '../identity/external.ts'
import { Federated } from '../identity/federated.ts'
import { sealClearHashes } from '../identity/hashes.ts'
import { MethodRegistry } from '../identity/methods/registry.ts'
import { Offline } from '../identity/offline.ts'
import { OidcSignIns } from '../identity/oidc-sign-ins.ts'
import { PasswordHasher } from '../identity/password.ts'
import { PasswordPolicy } from '../identity/policy.ts'
import { ProviderSessions } from '../identity/provider-sessions.ts'
import { SamlSignIns } from '../identity/saml-sign-ins.ts'
import { SecondFactors } from '../identity/second-factor/second-factors.ts'
import { SecurityKeys } from '../identity/second-factor/security-keys.ts'
import { SharedLockout } from '../identity/shared-lockout.ts'
import { ShownTickets } from '../identity/shown-tickets.ts'
import { SshTickets } from '../identity/ssh-tickets.ts'
import { TicketTakers } from '../identity/ticket-takers.ts'
import { openBucket } from '../recording-service/bucket.ts'
import { openRecordingKeys, RecordingService } from '../recording-service/service.ts'
import type { Store } from '../store/store.ts'
import type { Authority } from '../vault/authority.ts'
import { openUserAuthority } from '../vault/user-authority.ts'
import { openVault, type Vault } from '../vault/vault.ts'
import { openDatabase, requireOwnDatabase } from './database.ts'

/** The database and its keys, which the command line uses also while the broker runs. */
export interface Foundation {
  store: Store
  vault: Vault
  identities: Identities
  passwords: PasswordHasher
  factors: SecondFactors
  external: External
  securityKeys: SecurityKeys
  /** Servers that judge sign-ins. */
  methods: MethodRegistry
  shownTickets: ShownTickets
  sshTickets: SshTickets
  bearers: Bearers
  federated: Federated
  browserSignIns: BrowserSignIns
  providerSessions: ProviderSessions
  oidcSignIns: OidcSignIns
  samlSignIns: SamlSignIns
  /** Certifies SSH keys of users. */
  userAuthority: Authority
  recordingService: RecordingService
  /** Closes the store; nothing of this may be used afterwards. */
  close(): Promise<void>
}

/**
 * Opens the contents of the data folder; creates the parts that the first start has to create. `onServerFailure` is told
 * each failure of a server that judges sign-ins.
 */
export async function openFoundation(
  config: Config,
  onServerFailure: (name: string, server: string, error: Error) => void = () => undefined,
): Promise<Foundation> {
  openDataFolder(config.dataDir)
  const release = shareKeys(config.dataDir)
  let store: Store | undefined
  try {
    store = await openDatabase(config)
    const note = await requireOwnDatabase(config, store)
    const vault = await openVault(store, config.masterKey)
    note()
    await sealClearHashes(store.users, vault)
    await store.users.noteLooks()
    const passwords = new PasswordHasher({ policy: new PasswordPolicy(config.passwords) })
    const methods = new MethodRegistry({
      store,
      vault,
      now: Date.now,
      site: config.site,
      onFailure: onServerFailure,
    })
    const securityKeys = new SecurityKeys({ store, site: config.site, now: Date.now })
    const factors = new SecondFactors({ store, vault, keys: securityKeys, now: Date.now })
    const offline = new Offline({ store, vault, passwords, now: Date.now })
    const external = new External({ store, registry: methods, offline })
    const browserSignIns = new BrowserSignIns(randomBytes)
    const identities = new Identities(
      store.users,
      passwords,
      new SharedLockout(store.lockouts),
      Date.now,
      vault,
      external,
      factors,
      store,
      { waiting: browserSignIns, store, pages: () => (config.listen.https ? config.site : undefined) },
    )
    const userAuthority = await openUserAuthority(store.settings, vault)
    const takers = new TicketTakers({ store, registry: methods, identities })
    const shownTickets = new ShownTickets({ takers, external, identities })
    const sshTickets = new SshTickets({
      store,
      registry: methods,
      takers,
      external,
      identities,
      now: Date.now,
    })
    const providerSessions = new ProviderSessions({ store, vault, now: Date.now })
    const federated = new Federated({ external, identities, sessions: providerSessions })
    const oidcSignIns = new OidcSignIns({
      store,
      registry: methods,
      federated,
      sessions: providerSessions,
      site: config.site,
      now: Date.now,
    })
    const samlSignIns = new SamlSignIns({
      store,
      registry: methods,
      federated,
      sessions: providerSessions,
      site: config.site,
      now: Date.now,
      randomBytes,
    })
    const bearers = new Bearers({ store, registry: methods, now: Date.now })
    const { objectStore } = config.recordings
    const recordingService = new RecordingService({
      root: config.recordings.directory,
      keys: await openRecordingKeys(store.settings, vault),
      recipients: config.recordings.recipients,
      brokerKey: config.recordings.brokerKey,
      minimumFree: config.recordings.minFree,
      ...(objectStore && { bucket: openBucket(objectStore) }),
    })
    await recordingService.start()
    const opened = store
    const close = async () => {
      await methods.close()
      await opened.close()
      release()
    }
    return {
      store,
      vault,
      identities,
      passwords,
      factors,
      external,
      securityKeys,
      methods,
      shownTickets,
      sshTickets,
      bearers,
      federated,
      browserSignIns,
      providerSessions,
      oidcSignIns,
      samlSignIns,
      userAuthority,
      recordingService,
      close,
    }
  } catch (error) {
    await store?.close()
    release()
    throw error
  }
}
