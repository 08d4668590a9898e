/**
 * The receivers that have a position, and the key that their positions are checked with: one setting, sealed by the
 * vault. A position that somebody without it has written, or removed, is seen.
 */
import { randomBytes } from 'node:crypto'
import { Secret } from '../../model/secret.ts'
import type { SettingRepository } from '../../store/store.ts'
import type { Vault } from '../../vault/vault.ts'

const SETTING = 'audit.receivers'
const KEY_BYTES = 32

const PLACE = { table: 'settings', id: SETTING, field: 'value' }

/** Whose position it is, for people. */
export interface Owner {
  type: string
  address: string
}

export interface Registered {
  /** In hex. */
  key: string
  /** By the names of their positions. */
  owners: Record<string, Owner>
}

export interface Register {
  /** A fresh one when there is none, or none that this vault has sealed. */
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
