/** The authority by which the bastion certifies keys of users that have signed in: made once, and sealed like every secret. */
import { generateKeyPairSync } from 'node:crypto'
import { Secret } from '../model/secret.ts'
import type { SettingRepository } from '../store/store.ts'
import { type Authority, authorityOf } from './authority.ts'
import type { Vault } from './vault.ts'

const SETTING = 'user_authority'

/** Opens the authority; the first start makes it. */
export async function openUserAuthority(
  settings: Pick<SettingRepository, 'get' | 'setOnce'>,
  vault: Pick<Vault, 'seal' | 'open'>,
): Promise<Authority> {
  const place = { table: 'settings', id: SETTING, field: 'value' }
  const key = vault.open(place, (await settings.get(SETTING)) ?? (await settings.setOnce(SETTING, made())))
  try {
    return authorityOf(key)
  } finally {
    key.wipe()
  }

  function made(): Uint8Array {
    const der = generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' })
    const fresh = Secret.of(der)
    der.fill(0)
    try {
      return vault.seal(place, fresh)
    } finally {
      fresh.wipe()
    }
  }
}
