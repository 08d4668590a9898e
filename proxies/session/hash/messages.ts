/** What the hashing thread is told, and what it answers. Messages are worked off in the order in which they come. */

export type ToHasher =
  /** Pieces of streams, one behind the other: `segments` has for each its stream and its length. */
  | { kind: 'data'; buffer: ArrayBuffer; segments: number[] }
  | { kind: 'digest'; stream: number }
  | { kind: 'drop'; stream: number }

export type FromHasher =
  /** The buffer of a `data` message, to be used again. */
  { kind: 'free'; buffer: ArrayBuffer } | { kind: 'digest'; stream: number; sha256: string }
