/** The verification of the log in the store, as commands do it beside a broker that writes to it. */
import type { Store } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import { auditAnchor } from './anchor.ts'
import { type AuditVerdict, type AuditVerifyOptions, anchorFault, verifyAudit } from './verify.ts'

/** Verifies the log and the note of its end as of one moment: rows may be added, and the oldest be removed, meanwhile. */
export async function verifyStored(
  { store, vault }: { store: Store; vault: Vault },
  { known = [], ...options }: AuditVerifyOptions,
): Promise<AuditVerdict> {
  return await store.snapshot(async (within) => {
    const anchor = await auditAnchor({ ...within, vault }).read()
    const walked = await verifyAudit(within.audit, {
      ...options,
      known: [...known, ...(anchor ? [anchor] : [])],
    })
    return anchorFault(walked, anchor)
  })
}
