/** Pictures on the fast path (MS-RDPBCGR 2.2.9.1.2): updates, which may be fragmented. */
import { Buffer } from 'node:buffer'
import { fastPathHeader, readFastPath } from './fast-path.ts'
import { FAST_PATH_LIMIT } from './framer.ts'
import type { ByteReader } from './reader.ts'
import { isRecordable, UPDATE, type Update } from './updates.ts'

/** Bytes of one update over all its fragments: an uncompressed desktop of 2048 x 2048 in one piece. */
export const UPDATE_LIMIT = 16 * 1024 * 1024

const CODE_BITS = 0x0f
const FRAGMENT = { single: 0, last: 1, first: 2, next: 3 } as const
const UPDATE_HEADER = 3
const NOTHING = Buffer.alloc(0)
/** Bytes of a fragment that we send: FreeRDP's servers and Windows stay below 16 KiB too. */
const PIECE_LIMIT = Math.min(16_000, FAST_PATH_LIMIT - 3 - UPDATE_HEADER)

/** Receives a whole update. `isSkipped`: the update is not sent to the client. */
export type TakeUpdate = (update: Update, isSkipped: boolean) => void

const never = () => false

/** Reassembles a target's updates. */
export class UpdateAssembler {
  readonly #limit: number
  #code: number | undefined
  /** Fragments, appended: an object for each would cost a hundred times the data of a short one. */
  #whole: Buffer = NOTHING
  #length = 0
  /** The current update is not sent to the client. */
  #isSkipped = false

  constructor(limit: number = UPDATE_LIMIT) {
    this.#limit = limit
  }

  /** Bytes of the incomplete update. */
  get pending(): number {
    return this.#length
  }

  /** An update has begun and has not ended. */
  get isWithinUpdate(): boolean {
    return this.#code !== undefined
  }

  /** The client has received the start of the current update. */
  get isWithinShown(): boolean {
    return this.isWithinUpdate && !this.#isSkipped
  }

  /**
   * Calls `take` with each complete recordable update; its data is valid during the call only. Returns the
   * bytes for the client: the whole PDU, the PDU without updates that are not recordable, or undefined if
   * nothing is left. Bitmap updates that begin while `skips` returns true are reported to `take` and not
   * returned. Only bitmaps can be skipped, since the target redraws them on request. Throws MalformedError.
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

  /** Copies, since the PDU's bytes belong to the framer. */
  #append(data: Uint8Array): void {
    if (this.#whole.length < this.#length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#length, Math.min(2 * this.#whole.length, this.#limit)))
      larger.set(this.#whole.subarray(0, this.#length - data.length))
      this.#whole = larger
    }
    this.#whole.set(data, this.#length - data.length)
  }
}

/** Builds the update's PDUs, in fragments if it is long. */
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
