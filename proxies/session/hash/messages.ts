/** Messages to and from the hashing thread. They are handled in the order of their arrival. */

export type ToHasher =
  /** Consecutive pieces of streams: `segments` holds the stream and the length of each. */
  | { kind: 'data'; buffer: ArrayBuffer; segments: number[] }
  | { kind: 'digest'; stream: number }
  | { kind: 'drop'; stream: number }

export type FromHasher =
  /** The buffer of a `data` message, for reuse. */
  { kind: 'free'; buffer: ArrayBuffer } | { kind: 'digest'; stream: number; sha256: string }
