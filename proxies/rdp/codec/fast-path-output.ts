/** Pictures on the fast path (MS-RDPBCGR 2.2.9.1.2): updates, which may come in fragments. */
import { Buffer } from 'node:buffer'
import { fastPathHeader, readFastPath } from './fast-path.ts'
import { FAST_PATH_LIMIT } from './framer.ts'
import type { ByteReader } from './reader.ts'
import { isRecordable, UPDATE, type Update } from './updates.ts'

/** Bytes of one update in all its fragments: a desktop of 2048 x 2048 in one piece, uncompressed. */
export const UPDATE_LIMIT = 16 * 1024 * 1024

const CODE_BITS = 0x0f
const FRAGMENT = { single: 0, last: 1, first: 2, next: 3 } as const
const UPDATE_HEADER = 3
const NOTHING = Buffer.alloc(0)
/** What a fragment of ours carries: FreeRDP's servers and Windows stay below 16 KiB too. */
const PIECE_LIMIT = Math.min(16_000, FAST_PATH_LIMIT - 3 - UPDATE_HEADER)

/** Takes an update that is whole. `isSkipped`: the client does not get it. */
export type TakeUpdate = (update: Update, isSkipped: boolean) => void

const never = () => false

/** Puts a target's updates together again. */
export class UpdateAssembler {
  readonly #limit: number
  #code: number | undefined
  /** Fragments, one behind the other: an object for each would cost a hundred times what a short one brings. */
  #whole: Buffer = NOTHING
  #length = 0
  /** The client gets none of the update that has begun last. */
  #isSkipped = false

  constructor(limit: number = UPDATE_LIMIT) {
    this.#limit = limit
  }

  /** Bytes of an update that has not come whole. */
  get pending(): number {
    return this.#length
  }

  /** An update has begun to come and has not ended. */
  get isWithinUpdate(): boolean {
    return this.#code !== undefined
  }

  /** The client has the begin of that update. */
  get isWithinShown(): boolean {
    return this.isWithinUpdate && !this.#isSkipped
  }

  /**
   * Calls `take` with each recordable update that is whole; its data is valid during the call only. Returns what of the
   * PDU a client may have: all of it, the PDU without what is not recordable, or nothing. Bitmaps that begin while
   * `skips` says so are taken and not had: those alone can be left out, for they are drawn anew whenever the target is
   * asked to. Throws MalformedError.
   */
  feed(pdu: Uint8Array, take: TakeUpdate, skips: () => boolean = never): Uint8Array | undefined {
    const { head, reader } = readFastPath(pdu, 'fast-path output')
    const kept: Uint8Array[] = []
    let isWhole = true
    while (reader.remaining > 0) {
      const begin = reader.offset
      const updateHead = reader.uint8()
      if (updateHead >> 6) {
        reader.fail(`updates that are not compressed were expected, found flags ${updateHead >> 6}`)
      }
      const code = updateHead & CODE_BITS
      const data = reader.bytes(reader.uint16())
      if (!isRecordable(code)) {
        isWhole = false
        continue
      }
      const fragment = (updateHead >> 4) & 3
      const update = this.#piece(reader, code, fragment, data)
      if (fragment === FRAGMENT.single || fragment === FRAGMENT.first) {
        this.#isSkipped = code === UPDATE.bitmap && skips()
      }
      if (this.#isSkipped) isWhole = false
      else kept.push(pdu.subarray(begin, reader.offset))
      if (update) take(update, this.#isSkipped)
    }
    if (isWhole) return pdu
    const length = kept.reduce((sum, piece) => sum + piece.length, 0)
    return length === 0 ? undefined : Buffer.concat([fastPathHeader(head, length), ...kept])
  }

  #piece(reader: ByteReader, code: number, fragment: number, data: Uint8Array): Update | undefined {
    const isBegin = fragment === FRAGMENT.single || fragment === FRAGMENT.first
    if (isBegin !== (this.#code === undefined)) {
      reader.fail(
        isBegin ? 'the rest of an update was expected, found another' : 'the begin of an update was expected',
      )
    }
    if (fragment === FRAGMENT.single) return { code, data }
    if (!isBegin && code !== this.#code)
      reader.fail(`the rest of update ${this.#code} was expected, found ${code}`)
    this.#code = code
    this.#length += data.length
    if (this.#limit < this.#length) {
      reader.fail(`an update of at most ${this.#limit} bytes was expected, found more`)
    }
    this.#append(data)
    if (fragment !== FRAGMENT.last) return undefined
    const whole = this.#whole.subarray(0, this.#length)
    this.#code = undefined
    this.#whole = NOTHING
    this.#length = 0
    return { code, data: whole }
  }

  /** A copy: the PDU's bytes are the framer's. */
  #append(data: Uint8Array): void {
    if (this.#whole.length < this.#length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#length, Math.min(2 * this.#whole.length, this.#limit)))
      larger.set(this.#whole.subarray(0, this.#length - data.length))
      this.#whole = larger
    }
    this.#whole.set(data, this.#length - data.length)
  }
}

/** PDUs with this update, in fragments where it is long. */
export function buildFastPathUpdate({ code, data }: Update): Buffer[] {
  const pdus: Buffer[] = []
  const count = Math.max(1, Math.ceil(data.length / PIECE_LIMIT))
  for (let index = 0; index < count; index++) {
    const piece = data.subarray(index * PIECE_LIMIT, (index + 1) * PIECE_LIMIT)
    const head = code | (fragmentOf(index, count) << 4)
    pdus.push(
      Buffer.concat([
        fastPathHeader(0, UPDATE_HEADER + piece.length),
        Uint8Array.of(head, piece.length & 0xff, piece.length >> 8),
        piece,
      ]),
    )
  }
  return pdus
}

function fragmentOf(index: number, count: number): number {
  if (count === 1) return FRAGMENT.single
  if (index === 0) return FRAGMENT.first
  return index === count - 1 ? FRAGMENT.last : FRAGMENT.next
}
