/**
 * How far the audit log reached at its last checkpoint, noted outside of it and sealed by the vault: rows that
 * are cut off at its end are missed. The note only moves forward, and only while the log still has the row that it
 * names: a broker that starts on a log that was cut leaves the note as the evidence. It is no proof against who puts an older copy of the whole database back:
 * for that, checkpoints go out to the sinks too, and `audit verify --head` takes one from there.
 */
import { Buffer } from 'node:buffer'
import { Secret } from '../model/secret.ts'
import type { AuditRepository, SettingRepository } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import type { Head } from './chain.ts'

const SETTING = 'audit.anchor'
/** Rows at the log's beginning among which its first checkpoints stand. */
const BEGINNING = 1000
/** Attempts when another process (a command line beside the broker) notes at the same moment. */
const MAX_ATTEMPTS = 5

const PLACE = { table: 'settings', id: SETTING, field: 'value' }

export interface Anchor {
  /**
   * Notes the row unless a later one is noted already. Throws, and leaves the note, when the log is not the one that
   * was noted.
   */
  note(head: Head): Promise<void>
  /** undefined: there is none, or it is not one that this vault sealed. */
  read(): Promise<Head | undefined>
}

export interface AnchorOptions {
  settings: Pick<SettingRepository, 'get' | 'replace'>
  vault: Pick<Vault, 'seal' | 'open'>
  audit: Pick<AuditRepository, 'range'>
}

export function auditAnchor({ settings, vault, audit }: AnchorOptions): Anchor {
  const opened = (sealed: Uint8Array): Head | undefined => {
    try {
      const { sequence, hash } = JSON.parse(vault.open(PLACE, sealed).revealText())
      return { sequence, hash: Buffer.from(hash, 'hex') }
    } catch {
      // Somebody wrote another value there: as good as none.
      return undefined
    }
  }
  return {
    async note(head) {
      const text = JSON.stringify({ sequence: head.sequence, hash: Buffer.from(head.hash).toString('hex') })
      for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
        const sealed = await settings.get(SETTING)
        const before = sealed && opened(sealed)
        if (before) await requireRow(audit, before)
        else await requireNew(audit, head, sealed !== undefined)
        if (before && before.sequence >= head.sequence) return
        if (await settings.replace(SETTING, sealed, vault.seal(PLACE, Secret.of(text)))) return
      }
      throw new Error('others note how far the audit log reaches all the time: it is tried again')
    },

    async read() {
      const sealed = await settings.get(SETTING)
      return sealed && opened(sealed)
    },
  }
}

async function requireRow(audit: AnchorOptions['audit'], { sequence, hash }: Head): Promise<void> {
  const [row] = await audit.range(sequence, 1)
  if (row?.sequence === sequence && Buffer.from(row.hash).equals(hash)) return
  throw new Error(
    `the audit log had a row ${sequence} that it has no more: its end was cut off or written anew ` +
      '(see sallyport audit verify)',
  )
}

/** No note is in order only while the log is new; a crash may have come between its first checkpoint and the note. */
async function requireNew(audit: AnchorOptions['audit'], { sequence }: Head, isSet: boolean): Promise<void> {
  const rows = isSet ? [] : await audit.range(0, BEGINNING)
  const before = rows.filter((row) => row.code === 'audit.checkpoint' && row.sequence < sequence)
  if (!isSet && before.length < 2) return
  throw new Error(
    'the note of how far the audit log reached is missing or was changed (see sallyport audit verify)',
  )
}
