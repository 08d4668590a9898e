/**
 * The note of the audit log's last checkpoint, kept outside of the log and sealed by the vault, so that rows
 * cut off at the log's end are missed. The note only moves forward, and only while the log still has the
 * noted row: a broker that starts on a cut log leaves the note as the evidence. It does not protect against
 * an older copy of the whole database: for that, checkpoints go to the sinks too, and `audit verify --head`
 * reads one from there.
 */
import { Buffer } from 'node:buffer'
import { Secret } from '../model/secret.ts'
import type { AuditRepository, SettingRepository } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import type { Head } from './chain.ts'

const SETTING = 'audit.anchor'
/** Rows at the log's beginning that contain its first checkpoints. */
const BEGINNING = 1000
/** Attempts if another process (a command line beside the broker) writes the note at the same moment. */
const MAX_ATTEMPTS = 5

const PLACE = { table: 'settings', id: SETTING, field: 'value' }

export interface Anchor {
  /**
   * Notes the row unless a later one is noted already. Throws, and leaves the note, if the log is not the
   * noted one.
   */
  note(head: Head): Promise<void>
  /** Returns the note, or undefined if there is none that this vault sealed. */
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
      // Another value was written there: as good as none.
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

/**
 * Throws unless the log is new, since an older one has a note. A crash may have come between the first
 * checkpoint and its note.
 */
async function requireNew(audit: AnchorOptions['audit'], { sequence }: Head, isSet: boolean): Promise<void> {
  const rows = isSet ? [] : await audit.range(0, BEGINNING)
  const before = rows.filter((row) => row.code === 'audit.checkpoint' && row.sequence < sequence)
  if (!isSet && before.length < 2) return
  throw new Error(
    'the note of how far the audit log reached is missing or was changed (see sallyport audit verify)',
  )
}
