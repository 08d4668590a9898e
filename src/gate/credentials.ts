/** The stored credentials in the form in which a session is given them. */
import type { Id } from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import type { Vault } from '../vault/credentials.ts'
import type { Credential } from './messages.ts'

/** Keys before passwords: a target that takes both is asked with the stronger one. */
export async function credentialsFor(vault: Vault, accountId: Id): Promise<Credential[]> {
  const stored = await vault.credentials(accountId)
  const credentials = stored.map((one): Credential => {
    if (one.type === 'password') return { type: 'password', password: spent(one.password) }
    return {
      type: 'ssh_key',
      privateKey: spent(one.privateKey),
      ...(one.passphrase && { passphrase: spent(one.passphrase) }),
    }
  })
  return credentials.sort((a, b) => (a.type === b.type ? 0 : a.type === 'ssh_key' ? -1 : 1))
}

/** The text of a secret that is not needed any more. */
function spent(secret: Secret): string {
  const text = secret.revealText()
  secret.wipe()
  return text
}
