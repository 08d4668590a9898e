/** The vault: secrets of accounts, sealed in the database and opened here only. */
import { Buffer } from 'node:buffer'
import { createHmac, hkdfSync } from 'node:crypto'
import type { CredentialType, Id } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import type { AccountRepository, DomainRepository, PendingRole, Store } from '../store/store.ts'
import {
  type Credential,
  CredentialError,
  checkCredential,
  credentialOf,
  textsOf,
  wipe,
} from './credentials.ts'
import { loadMasterKey, type MasterKeySource } from './key-file.ts'
import { openDataKey } from './master-key.ts'
import { type DataKey, KEY_BYTES, open, type Place, seal } from './seal.ts'

/** Opens a store's vault, and makes its keys at the first start. */
export async function openVault(
  store: Pick<Store, 'accounts' | 'domains' | 'settings'>,
  source: MasterKeySource,
): Promise<Vault> {
  const master = await loadMasterKey(source, store.settings)
  try {
    return new Vault(await openDataKey(store.settings, master), store)
  } finally {
    master.wipe()
  }
}

export class Vault {
  readonly #key: DataKey
  readonly #accounts: AccountRepository
  readonly #domains: DomainRepository

  constructor(key: DataKey, { accounts, domains }: Pick<Store, 'accounts' | 'domains'>) {
    this.#key = key
    this.#accounts = accounts
    this.#domains = domains
  }

  /** Seals a secret for its place; the caller still owns the secret. */
  seal(place: Place, secret: Secret): Uint8Array {
    return seal(this.#key, place, secret)
  }

  /** @throws UnsealError if `sealed` was not sealed by this vault for this place */
  open(place: Place, sealed: Uint8Array): Secret {
    return open(this.#key, place, sealed)
  }

  /**
   * Returns a keyed digest to compare texts by where the text itself must not be stored: without the key it
   * cannot be guessed.
   */
  fingerprint(purpose: string, text: string): Uint8Array {
    const key = Buffer.from(
      hkdfSync('sha256', this.#key.key.reveal(), '', `fingerprint ${purpose}`, KEY_BYTES),
    )
    return createHmac('sha256', key).update(text).digest()
  }

  /**
   * Replaces the account's credentials by these, in the order in which to try them. `set`: when, and whether sessions that were
   * begun before have to end.
   * @throws CredentialError if one of them cannot be used, MissingReferenceError if there is no such account
   */
  async setCredentials(
    accountId: Id,
    credentials: readonly Credential[],
    set?: { time: number; severs: boolean },
  ): Promise<void> {
    const types = new Set(credentials.map((credential) => credential.type))
    if (types.size < credentials.length) {
      throw new CredentialError('credentials', 'an account has one credential of each type at most')
    }
    for (const credential of credentials) checkCredential(credential)
    const sealed = credentials.map((credential) => ({
      type: credential.type,
      sealed: this.sealCredential(accountId, credential),
    }))
    await this.#accounts.setSealedCredentials(accountId, sealed, set)
  }

  /** Replaces only the credentials of the given types; errors as of `setCredentials`. */
  async mergeCredentials(accountId: Id, credentials: readonly Credential[]): Promise<void> {
    const stored = await this.credentials(accountId)
    try {
      const given = new Map(credentials.map((credential) => [credential.type, credential]))
      const kept = stored.map((credential) => given.get(credential.type) ?? credential)
      await this.setCredentials(accountId, [...new Set([...kept, ...credentials])])
    } finally {
      for (const credential of stored) wipe(credential)
    }
  }

  /** Seals a credential as the stored one, or for its role beside that. */
  sealCredential(accountId: Id, credential: Credential, role?: PendingRole): Uint8Array {
    const body = Secret.of(JSON.stringify(textsOf(credential)))
    try {
      return this.seal(placeOf(accountId, credential.type, role), body)
    } finally {
      body.wipe()
    }
  }

  /** @throws UnsealError as `open` does */
  openCredential(accountId: Id, type: CredentialType, sealed: Uint8Array, role?: PendingRole): Credential {
    const body = this.open(placeOf(accountId, type, role), sealed)
    try {
      return credentialOf(type, JSON.parse(body.revealText()) as Partial<Record<string, string>>)
    } finally {
      body.wipe()
    }
  }

  /**
   * Returns how often the account's credentials were set, and at which of these times what rested on earlier ones was
   * ended last.
   */
  async revisionsOf(accountId: Id): Promise<{ revision: number; severed: number }> {
    const account = await this.#accounts.find(accountId)
    return { revision: account?.secretRevision ?? 0, severed: account?.severedRevision ?? 0 }
  }

  /** Returns the same vault on another store: that of a transaction. */
  on(store: Pick<Store, 'accounts' | 'domains'>): Vault {
    return new Vault(this.#key, store)
  }

  /**
   * Sets the key of the domain's certificate authority, in the form that `readAuthorityKey` returns;
   * undefined removes it. The caller still owns the secret.
   * @throws MissingReferenceError if there is no such domain
   */
  async setAuthority(domainId: Id, key: { pkcs8: Secret; publicKey: string } | undefined): Promise<void> {
    const authority = key && {
      sealed: this.seal(authorityPlace(domainId), key.pkcs8),
      publicKey: key.publicKey,
    }
    await this.#domains.setSealedAuthority(domainId, authority)
  }

  /** Returns the key of the domain's certificate authority. The caller wipes it. */
  async authorityKey(domainId: Id): Promise<Secret | undefined> {
    const sealed = await this.#domains.sealedAuthority(domainId)
    return sealed && this.open(authorityPlace(domainId), sealed)
  }

  /** Returns the account's credentials, in the order in which to try them. */
  async credentials(accountId: Id): Promise<Credential[]> {
    const stored = await this.#accounts.sealedCredentials(accountId)
    return stored.map(({ type, sealed }) => this.openCredential(accountId, type as CredentialType, sealed))
  }
}

function placeOf(accountId: Id, type: CredentialType, role?: PendingRole): Place {
  return role === undefined
    ? { table: 'account_credentials', id: accountId, field: type }
    : { table: 'pending_secrets', id: accountId, field: `${role} ${type}` }
}

function authorityPlace(domainId: Id): Place {
  return { table: 'domain_authorities', id: domainId, field: 'ca_private_key' }
}
