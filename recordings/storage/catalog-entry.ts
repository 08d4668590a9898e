/** A recording as listed by the catalog. */
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
  /** The header's metadata. Empty if the header cannot be read. */
  metadata: Metadata
  /** Present if the file is only in the object store, under this key. */
  stored?: StoredAway
}

/** The place of a recording's file that is only in the object store. */
export interface StoredAway {
  /** Key of the object. */
  key: string
  /** SHA-256 of the file, in hex. */
  sha256: string
}
