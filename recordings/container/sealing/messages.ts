/** Messages to and from the sealing thread. They are handled in the order of their arrival. */

export type ToSealer =
  /** The key of a recording, before its first group. */
  | { kind: 'open'; recording: number; key: Uint8Array<ArrayBuffer> }
  | SealRequest
  /** Wipes the recording's key. */
  | { kind: 'close'; recording: number }
  /** Wipes the keys of all recordings. */
  | { kind: 'wipe' }

/** A group: the first `length` bytes of `buffer`, and the fields of its header. */
export interface SealRequest {
  kind: 'seal'
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

export type FromSealer =
  | {
      kind: 'sealed'
      id: number
      /** The sealed group before and after its ciphertext, and the hash of the whole. */
      head: Uint8Array
      ciphertext: Uint8Array
      tag: Uint8Array
      hash: Uint8Array
      /** That of the request, for reuse. */
      buffer: ArrayBuffer
    }
  | { kind: 'wiped' }
