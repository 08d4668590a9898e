/** Messages to and from the sealing thread. They are handled in the order of their arrival. */

export type ToSealer =
  /** The key of a recording, before its first group. */
  | { kind: 'open'; recording: number; key: Uint8Array<ArrayBuffer> }
  | { kind: 'seal'; groups: SealRequest[] }
  /** Writes bytes, and the held groups among them, to the thread's descriptor. */
  | { kind: 'write'; pieces: WrittenPiece[]; bytes: Uint8Array<ArrayBuffer> }
  /** Forgets held groups. */
  | { kind: 'release'; groups: number[] }
  /** Wipes the recording's key, and forgets its held groups. */
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

/** A range of the bytes of a message `write`, or the held group of this id. */
export type WrittenPiece = { from: number; until: number } | { group: number }

/** `buffer` is that of the request, for reuse. */
export type SealAnswer = { id: number; buffer: ArrayBuffer } & (SealedAnswer | HeldAnswer | LostAnswer)

/** A sealed group, and its hash. */
interface SealedAnswer {
  kind: 'sealed'
  head: Uint8Array
  ciphertext: Uint8Array
  tag: Uint8Array
  hash: Uint8Array
}

/** The thread, which has a descriptor, holds the group: so many bytes. */
interface HeldAnswer {
  kind: 'held'
  length: number
  hash: Uint8Array
}

interface LostAnswer {
  kind: 'lost'
  message: string
}

/** There is one answer for each message `seal` and for each `write`, in their order. */
export type FromSealer = { kind: 'sealed'; groups: SealAnswer[] } | { kind: 'written' } | { kind: 'wiped' }
