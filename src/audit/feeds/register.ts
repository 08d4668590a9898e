/**
 * The receivers that have a position, and the key of their positions' checksums: one setting, sealed by the
 * vault. A position written or removed without the key is detected.
 */
import { randomBytes } from 'node:crypto'
import { Secret } from '../../model/secret.ts'
import type { SettingRepository } from '../../store/store.ts'
import type { Vault } from '../../vault/vault.ts'

const SETTING = 'audit.receivers'
const KEY_BYTES = 32

const PLACE = { table: 'settings', id: SETTING, field: 'value' }

/** The receiver that owns the position, for people. */
export interface Owner {
  type: string
  address: string
}

export interface Registered {
  /** The key, in hex. */
  key: string
  /** Owners by the names of their positions. */
  owners: Record<string, Owner>
}

export interface Register {
  /** Returns a new register if there is none that this vault has sealed. */
  read(): Promise<Registered>
  write(registered: Registered): Promise<void>
}

export const freshRegister = (): Registered => ({ key: randomBytes(KEY_BYTES).toString('hex'), owners: {} })

export function sealedRegister(
  settings: Pick<SettingRepository, 'get' | 'set'>,
  vault: Pick<Vault, 'seal' | 'open'>,
): Register {
  return {
    async read() {
      const sealed = await settings.get(SETTING)
      if (!sealed) return freshRegister()
      try {
        return JSON.parse(vault.open(PLACE, sealed).revealText()) as Registered
      } catch {
        return freshRegister()
      }
    },
    async write(registered) {
      await settings.set(SETTING, vault.seal(PLACE, Secret.of(JSON.stringify(registered))))
    },
  }
}
