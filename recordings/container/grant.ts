/** The least that a recording process needs to write one session: see docs/recording-format.md. */
export interface RecordingGrant {
  /** The session's folder, an absolute path. The broker has made it, with `key.age` in it. */
  directory: string
  /** The session's own key, 32 bytes. */
  key: Uint8Array
  /** Metadata of the header, in clear text: user, addresses, time. */
  metadata: Record<string, string | number>
  /** Free space on the volume, in bytes, below which recording fails. */
  minimumFree: number
}
