/** Cleans up after the previous run of this data, at the broker's start. */
import { takeUpFound } from './found.ts'
import { type RecoverDeps, recoverSessions } from './recover.ts'
import { forgetRestore, type RestoreNote, readRestoreNote } from './restored.ts'

export interface TakenOver {
  /** Set if the data was restored since the last start. */
  restored: RestoreNote | undefined
  /** Lines for the log. */
  report: string[]
}

/**
 * Accounts for sessions after a crash, and after a restore for recordings that the database does not know.
 */
export async function takeOver(deps: Omit<RecoverDeps, 'restored'>): Promise<TakenOver> {
  const { settings } = deps.store
  const restored = await readRestoreNote(settings)
  const report = await recoverSessions({ ...deps, ...(restored && { restored }) })
  if (!restored) return { restored, report }
  report.push(...(await takeUpFound(deps, restored)))
  await forgetRestore(settings)
  return { restored, report }
}
