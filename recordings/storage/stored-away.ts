/**
 * The note `stored.json` in a session's folder, in place of a recording that is only in the object store: the
 * file's place, and the catalog's fields of the file.
 */
import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { FILE_NAME } from '../container/format/limits.ts'
import { syncDirectory } from '../container/session-file.ts'
import type { CatalogEntry, StoredAway } from './catalog-entry.ts'

export const STORED_NAME = 'stored.json'

type Note = Pick<CatalogEntry, 'state' | 'size' | 'frames' | 'digest' | 'metadata'> & { stored: StoredAway }

/** Only files of closed recordings are stored. */
const Note = Type.Object({
  state: Type.Union((['sealed', 'recovered', 'failed'] as const).map((state) => Type.Literal(state))),
  size: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  frames: Type.Optional(Type.Integer({ minimum: 0 })),
  digest: Type.Optional(Type.String()),
  metadata: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()])),
  stored: Type.Object({ key: Type.String(), sha256: Type.String() }),
})

/** Returns the note of a folder, or undefined if there is none that can be read. */
export async function readStoredAway(directory: string): Promise<Note | undefined> {
  try {
    const note: unknown = JSON.parse(await readFile(join(directory, STORED_NAME), 'utf8'))
    return Value.Check(Note, note) ? (Value.Clean(Note, note) as Note) : undefined
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Writes the note and removes the file: a crash in between leaves both, and the file counts. */
export async function storeAway({ directory, ...entry }: CatalogEntry, stored: StoredAway): Promise<void> {
  const draft = join(directory, `${STORED_NAME}.new`)
  const handle = await open(draft, 'w', 0o600)
  try {
    await handle.writeFile(`${JSON.stringify({ ...entry, stored })}\n`)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(draft, join(directory, STORED_NAME))
  await syncDirectory(directory)
  await rm(join(directory, FILE_NAME))
  await syncDirectory(directory)
}
