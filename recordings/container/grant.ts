/** What the recording process needs to write one session, and no more: see docs/recording-format.md. */
export interface RecordingGrant {
  /** The session's folder, made by the broker, with `key.age` in it. Absolute. */
  directory: string
  /** 32 bytes: the session's own key. */
  key: Uint8Array
  /** Goes into the header in clear: who, where, when. */
  metadata: Record<string, string | number>
  /** Bytes of free space on the volume below which recording fails. */
  minimumFree: number
}
