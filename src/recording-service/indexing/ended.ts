/** A recording that has just been closed: all that indexing would otherwise read from the disk. */
import type { Secret } from '../../model/secret.ts'

export interface EndedRecording {
  /** The recording's folder. */
  directory: string
  /** Beginning of the session, in milliseconds since the epoch. */
  begin: number
  size: number
  digest: string
  key: Secret
}
