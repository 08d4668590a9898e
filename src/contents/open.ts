/**
 * Prepares the index's file at the broker's start: it can always be rebuilt, from the audit log and the
 * recordings.
 */
import { rmSync } from 'node:fs'
import { ContentDatabase, OutdatedError } from './database.ts'

/** `off`: no index; `commands`: commands and files from the audit log; `full`: output as well. */
export type ContentMode = 'full' | 'commands' | 'off'

/** SQLITE_CORRUPT, SQLITE_NOTADB */
const DAMAGED = [11, 26]

/**
 * Returns the possible mode: of recordings that the broker cannot open, only the audit log's events can be
 * indexed.
 */
export function contentMode({ search, brokerKey }: { search: ContentMode; brokerKey: boolean }): ContentMode {
  return search === 'full' && !brokerKey ? 'commands' : search
}

/**
 * Leaves a file of that mode, or none if it is off. A file that has another mode or version, is damaged, or
 * is ahead of the audit log (a backup was restored), is replaced. `last`: the last row of the audit log.
 */
export function prepareContents(path: string, mode: ContentMode, last: number): void {
  if (mode === 'off') {
    removeContents(path)
    return
  }
  try {
    if (sequenceIn(path, mode) <= last) return
  } catch (error) {
    if (!(error instanceof OutdatedError) && !isDamaged(error)) throw error
  }
  removeContents(path)
  sequenceIn(path, mode)
}

function sequenceIn(path: string, mode: ContentMode): number {
  const database = new ContentDatabase(path, mode)
  try {
    return database.sequence()
  } finally {
    database.close()
  }
}

function removeContents(path: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true })
}

function isDamaged(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && DAMAGED.includes(Number(error.errcode) & 0xff)
}
