/** One recording as the catalog lists it. */
import type { Metadata } from '../container/format/header.ts'

export interface CatalogEntry {
  session: string
  directory: string
  /** `open`: running, or to be recovered; `damaged`: the header cannot be read; `empty`: there is no file. */
  state: 'open' | 'sealed' | 'recovered' | 'failed' | 'damaged' | 'empty'
  /** Bytes of the file. */
  size: number
  /** Absent while the state is `open`, `damaged` or `empty`. */
  frames?: number
  digest?: string
  /** What the header says; empty when it cannot be read. */
  metadata: Metadata
  /** The file is not in the folder any more, but in the object store under this key. */
  stored?: StoredAway
}

/** Where the file of a recording is that lies in the object store only. */
export interface StoredAway {
  /** Of the object. */
  key: string
  /** Of the file, in hex. */
  sha256: string
}
