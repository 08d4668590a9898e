/** Passes the data of SFTP packets on to the hash of the file that they belong to. */
import type { PacketVisitor } from '../codec/sftp-packets.ts'
import type { OrderedHash } from './ordered-hash.ts'

/** Receives a packet's data. */
export interface DataTarget {
  content: OrderedHash
  offset: number
  /** Number of bytes still to come. */
  rest: number
  /** Called after the last byte. */
  done?: () => void
}

export class DataVisitor implements PacketVisitor {
  readonly wants: PacketVisitor['wants']
  readonly #onPacket: (type: number, head: Uint8Array, rest: number) => DataTarget | undefined
  #target: DataTarget | undefined

  constructor(
    wants: PacketVisitor['wants'],
    onPacket: (type: number, head: Uint8Array, rest: number) => DataTarget | undefined,
  ) {
    this.wants = wants
    this.#onPacket = onPacket
  }

  packet(type: number, head: Uint8Array, rest: number): void {
    this.#target = this.#onPacket(type, head, rest)
  }

  data(bytes: Uint8Array): void {
    if (this.#target === undefined) return
    this.#target.content.add(this.#target.offset, bytes)
    this.#target.offset += bytes.length
    this.#target.rest -= bytes.length
    if (this.#target.rest === 0) this.#target.done?.()
  }
}
