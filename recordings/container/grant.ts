/** The least that a recording process needs to write one session: see docs/recording-format.md. */
export interface RecordingGrant {
  /** The session's own key, 32 bytes. */
  key: Uint8Array
  /** Metadata of the header, in clear text: user, addresses, time. */
  metadata: Record<string, string | number>
}
