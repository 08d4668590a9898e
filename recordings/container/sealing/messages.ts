/** Messages to and from the sealing thread. They are handled in the order of their arrival. */

export type ToSealer =
  /** The key of a recording, before its first group. */
  | { kind: 'open'; recording: number; key: Uint8Array<ArrayBuffer> }
  | { kind: 'seal'; groups: SealRequest[] }
  /** Wipes the recording's key. */
  | { kind: 'close'; recording: number }
  /** Wipes the keys of all recordings. */
  | { kind: 'wipe' }

/** A group: the first `length` bytes of `buffer`, and the fields of its header. */
export interface SealRequest {
  id: number
  recording: number
  number: number
  first: number
  last: number
  frames: number
  compress: boolean
  buffer: ArrayBuffer
  length: number
}

/** A sealed group, and its hash. `buffer` is that of the request, for reuse. */
export interface SealAnswer {
  id: number
  head: Uint8Array
  ciphertext: Uint8Array
  tag: Uint8Array
  hash: Uint8Array
  buffer: ArrayBuffer
}

/** There is one answer for each message `seal`, in their order. */
export type FromSealer = { kind: 'sealed'; groups: SealAnswer[] } | { kind: 'wiped' }
