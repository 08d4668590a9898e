import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, type StoreOptions } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'

export interface TemporaryStore {
  store: Store
  /** The database file, in a folder of its own. */
  path: string
  /** Closes `store`, which a test may have replaced, and removes the folder. */
  remove(): Promise<void>
}

/** Opens a store on a new file in a folder of its own, under the system's temporary folder. */
export async function temporaryStore(options: Omit<StoreOptions, 'path'> = {}): Promise<TemporaryStore> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-store-'))
  const path = join(folder, 'sallyport.db')
  const store = await openStore({ path, ...options })
  const temporary: TemporaryStore = {
    store,
    path,
    async remove() {
      await temporary.store.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
  return temporary
}
