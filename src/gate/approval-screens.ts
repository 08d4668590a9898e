/** The screen in view of a held command: sealed while its request waits, for those that may see it. */
import type { Approval } from '../model/approvals.ts'
import type { Id } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import type { Vault } from '../vault/vault.ts'

const placeOf = (id: Id) => ({ table: 'approvals', id, field: 'screen' })

export function sealScreen(vault: Pick<Vault, 'seal'>, id: Id, text: string): Uint8Array {
  const secret = Secret.of(text)
  try {
    return vault.seal(placeOf(id), secret)
  } finally {
    secret.wipe()
  }
}

/** Returns the text below the line, or the empty text if there is none, or none that opens with the present keys. */
export function openScreen(vault: Pick<Vault, 'open'>, { id, state, screen }: Approval): string {
  if (state !== 'pending' || !screen) return ''
  try {
    const secret = vault.open(placeOf(id), screen)
    const text = secret.revealText()
    secret.wipe()
    return text
  } catch {
    return ''
  }
}
