/** The writing end of the chain: numbers and links the file's records and makes its checkpoints. */
import { Buffer } from 'node:buffer'
import { type CheckpointPlace, encodeStatement } from './format/checkpoint.ts'
import { SIGNATURE_LENGTH } from './format/limits.ts'
import {
  bodyHash,
  linkOf,
  MAX_SEQUENCE,
  RECORD,
  RECORD_HEADER_LENGTH,
  type RecordType,
  writeRecordHeader,
} from './format/record.ts'
import type { Part, Sealed } from './held.ts'
import type { Sign } from './signer.ts'

export class Chain {
  readonly #session: string
  #head: Uint8Array
  #sequence: number
  #offset: number

  /** Continues after a record whose link is `head`; `offset` is the file's length there. */
  constructor(session: string, head: Uint8Array, sequence: number, offset: number) {
    this.#session = session
    this.#head = head
    this.#sequence = sequence
    this.#offset = offset
  }

  /** Returns a copy that can advance without changing this chain. */
  fork(): Chain {
    return new Chain(this.#session, this.#head, this.#sequence, this.#offset)
  }

  get head(): Uint8Array {
    return this.#head
  }

  get place(): CheckpointPlace {
    return { session: this.#session, sequence: this.#sequence, offset: this.#offset, head: this.#head }
  }

  /** Returns the bytes of the next record with this body. */
  add(type: RecordType, body: readonly Buffer[]): Buffer[] {
    return this.#add(type, body, bodyHash(...body))
  }

  /** Returns the parts of the next record, a sealed group. */
  addGroup({ body, hash }: Sealed): Part[] {
    return this.#add(RECORD.group, body, hash)
  }

  /** Returns the bytes of a checkpoint at this place; `body` is that of `encodeCheckpoint`. */
  async checkpoint(body: Buffer, sign: Sign): Promise<Buffer[]> {
    const signature = await sign(encodeStatement(this.place, body))
    if (signature.length !== SIGNATURE_LENGTH) {
      throw new Error(`expected a signature of ${SIGNATURE_LENGTH} bytes, got ${signature.length}`)
    }
    return this.add(RECORD.checkpoint, [body, Buffer.from(signature)])
  }

  #add<Body extends Part>(type: RecordType, body: readonly Body[], hash: Buffer): (Body | Buffer)[] {
    if (this.#sequence > MAX_SEQUENCE)
      throw new Error(`a recording holds at most ${MAX_SEQUENCE + 1} records`)
    const length = body.reduce((sum, part) => sum + part.length, 0)
    const header = Buffer.allocUnsafe(RECORD_HEADER_LENGTH)
    writeRecordHeader(header, { type, length, sequence: this.#sequence })
    const link = linkOf(this.#head, header, hash)
    this.#head = link
    this.#sequence++
    this.#offset += header.length + length + link.length
    return [header, ...body, link]
  }
}
