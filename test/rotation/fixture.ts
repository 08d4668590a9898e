/** A store with one account whose domain changes secrets, and a target that is an object of the test. */
import { dirname, join } from 'node:path'
import type { ChangeErrorCode, NewSecret, SignIn, SignInSecret } from '../../src/contract/change.ts'
import type { Account, Domain } from '../../src/model/objects.ts'
import { DEFAULT_PASSWORD_CHANGE_POLICY } from '../../src/model/password-change.ts'
import { Secret } from '../../src/model/secret.ts'
import { type Changer, ChangerError } from '../../src/rotation/changer.ts'
import { openVault, type Vault } from '../../src/vault/vault.ts'
import { newAccount } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

export interface RotationWorld {
  temp: TemporaryStore
  vault: Vault
  domain: Domain
  account: Account
  administrator: Account
  /** Returns the stored password of the account. */
  stored(): Promise<string>
  /** Returns the password that a change has left as the next one. */
  next(): Promise<string | undefined>
  /** Returns all passwords of the account that are kept, the old ones excepted. */
  kept(): Promise<string[]>
}

export const ADMIN_PASSWORD = 'of the administrator'

let worlds = 0

export async function rotationWorld(
  options: { withoutAdmin?: boolean; temp?: TemporaryStore } = {},
): Promise<RotationWorld> {
  const temp = options.temp ?? (await temporaryStore())
  const { store } = temp
  const vault = await openVault(store, { file: join(dirname(temp.path), 'master.key') })
  const made = await store.domains.create({ domainName: `corp${worlds++}`, description: '' })
  const account = await store.accounts.create(newAccount(made.id, 'svc'))
  const administrator = await store.accounts.create(newAccount(made.id, 'admin'))
  const domain = await store.domains.update(made.id, {
    change: {
      isEnabled: true,
      policyId: DEFAULT_PASSWORD_CHANGE_POLICY,
      plugin: 'Unix',
      parameters: { host: 'target.example', concurrency: 32 },
      ...(options.withoutAdmin ? {} : { adminAccountId: administrator.id }),
    },
  })
  await vault.setCredentials(account.id, [{ type: 'password', password: Secret.of('first') }])
  await vault.setCredentials(administrator.id, [{ type: 'password', password: Secret.of(ADMIN_PASSWORD) }])
  const world: RotationWorld = {
    ...{ temp, vault, domain, administrator },
    account: (await store.accounts.find(account.id))!,
    async stored() {
      const [credential] = await vault.credentials(account.id)
      return credential?.type === 'password' ? credential.password.revealText() : ''
    },
    async kept() {
      const pending = await store.secretJobs.pending(account.id, 'password')
      const opened = (['next', 'doubtful'] as const).flatMap((role) => {
        const one = pending[role] && vault.openCredential(account.id, 'password', pending[role], role)
        return one?.type === 'password' ? one.password.revealText() : []
      })
      return [await world.stored(), ...opened]
    },
    async next() {
      const { next } = await store.secretJobs.pending(account.id, 'password')
      const opened = next && vault.openCredential(account.id, 'password', next, 'next')
      return opened?.type === 'password' ? opened.password.revealText() : undefined
    },
  }
  return world
}

/** Behaviour of the target in one call; `half`: it does what was asked, and the connection breaks; `late`: it does so later. */
export type Behaviour = 'good' | 'down' | 'half' | 'hangs' | 'late' | 'refuses' | 'strange'

export class FakeTarget implements Changer {
  readonly passwords = new Map([
    ['svc', 'first'],
    ['admin', ADMIN_PASSWORD],
  ])
  /** Of the next calls; good ones follow. */
  script: Behaviour[] = []
  acceptsAll = false
  /** The password before the present one is valid too, as in Active Directory. */
  isGraceful = false
  /** Why no sign-in leads to a verdict. */
  silence: ChangeErrorCode | undefined
  /** Calls after which a late change is made. */
  lateBy = 3
  changes = 0
  #old = new Map<string, string>()
  #late: { in: number; login: string; password: string }[] = []

  /** Makes all late changes now. */
  settle(): void {
    for (const { login, password } of this.#late.splice(0)) this.#set(login, password)
  }

  /** Returns the passwords that the account has, or gets late. */
  mayHave(login: string): string[] {
    const late = this.#late.filter((one) => one.login === login).map(({ password }) => password)
    return [this.passwords.get(login) ?? '', ...late]
  }

  #set(login: string, password: string): void {
    const old = this.passwords.get(login)
    if (old !== undefined && old !== password) this.#old.set(login, old)
    this.passwords.set(login, password)
  }

  #next(): Behaviour {
    for (const one of this.#late) one.in--
    for (const { login, password } of this.#late.filter((one) => one.in <= 0)) this.#set(login, password)
    this.#late = this.#late.filter((one) => one.in > 0)
    return this.script.shift() ?? 'good'
  }

  async verify(_plugin: unknown, _target: unknown, as: SignIn) {
    const now = this.#next()
    if (this.silence) throw new ChangerError(this.silence, 'no verdict')
    if (now === 'down' || now === 'half') throw new ChangerError('unreachable', 'it is down')
    if (now === 'hangs') throw new ChangerError('timeout', 'it hangs')
    if (now === 'strange') throw new ChangerError('unclear', 'it asks for more')
    const isOld =
      this.isGraceful && as.secret.type === 'password' && this.#old.get(as.login) === as.secret.password
    return this.acceptsAll || isOld || this.#knows(as.login, as.secret) ? 'valid' : 'invalid'
  }

  async change(
    _plugin: unknown,
    _target: unknown,
    { account, by, next }: { account: SignIn; by: SignIn; next: NewSecret },
  ): Promise<void> {
    this.changes++
    const now = this.#next()
    if (now === 'down') throw new ChangerError('unreachable', 'it is down')
    if (now === 'refuses') throw new ChangerError('refused_password', 'it was used before')
    if (now === 'strange') throw new ChangerError('unexpected_answer', 'mot de passe')
    if (!this.#knows(by.login, by.secret)) throw new ChangerError('refused_sign_in', 'wrong')
    if (next.type !== 'password') throw new ChangerError('unsupported', 'passwords only')
    if (now === 'late') {
      this.#late.push({ in: this.lateBy, login: account.login, password: next.password })
      throw new ChangerError('timeout', 'it waits for a lock')
    }
    this.#set(account.login, next.password)
    if (now === 'half' || now === 'hangs') throw new ChangerError('unclear', 'the connection broke')
  }

  async retire(): Promise<void> {}

  #knows(login: string, secret: SignInSecret): boolean {
    return secret.type === 'password' && this.passwords.get(login) === secret.password
  }
}
