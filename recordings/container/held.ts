import type { Buffer } from 'node:buffer'

/** Sealed bytes that the sealing thread holds, and writes itself: the caller has only their length. */
export class HeldBytes {
  readonly length: number
  /** The request's number, and that of the thread's run. */
  readonly id: number
  readonly run: number

  constructor(id: number, run: number, length: number) {
    this.id = id
    this.run = run
    this.length = length
  }
}

/** A part of what is appended to a recording. */
export type Part = Uint8Array | HeldBytes

/** The body of a sealed group, and its `bodyHash`. */
export interface Sealed {
  body: readonly Part[]
  hash: Buffer
}
