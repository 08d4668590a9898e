/** Fields of Kerberos messages in DER (RFC 4120 section 5.2): numbered parts of a sequence, and their simple types. */
import { Buffer } from 'node:buffer'
import { contextTag, DerReader, der, TAG } from '../../proxies/bytes/der.ts'
import { MalformedError } from '../../proxies/bytes/malformed.ts'

const GENERAL_STRING = 0x1b
const GENERALIZED_TIME = 0x18
/** [APPLICATION n], constructed. */
export const applicationTag = (number: number): number => 0x60 | number
/** Fields of the largest sequence there is (KDC-REP's encrypted part has 13). */
const MAX_FIELDS = 32
/** Parts of a list: components of a name, hints of a KDC. */
const MAX_PARTS = 32

export class Fields {
  readonly #parts = new Map<number, Uint8Array>()
  readonly #what: string

  /** Reads the fields of a SEQUENCE's value. @throws MalformedError */
  constructor(sequence: Uint8Array, what: string) {
    this.#what = what
    const reader = new DerReader(sequence, what)
    let last = -1
    while (!reader.isAtEnd) {
      const { tag, body } = reader.any()
      const number = tag & 0x1f
      if (tag !== contextTag(number) || number <= last || this.#parts.size >= MAX_FIELDS)
        throw new MalformedError(
          `${what}: numbered fields in order were expected, got tag 0x${tag.toString(16)}`,
        )
      last = number
      this.#parts.set(number, body)
    }
  }

  /** Reads a message: [APPLICATION number] of a SEQUENCE. @throws MalformedError */
  static ofMessage(bytes: Uint8Array, number: number, what: string): Fields {
    return new Fields(new DerReader(bytes, what).enter(applicationTag(number)).take(TAG.SEQUENCE), what)
  }

  has(number: number): boolean {
    return this.#parts.has(number)
  }

  /** Returns the bytes of a field, tag and length of its type included. @throws MalformedError */
  whole(number: number): Uint8Array {
    const bytes = this.#parts.get(number)
    if (!bytes) throw new MalformedError(`${this.#what}: field ${number} was expected, and is absent`)
    return bytes
  }

  sequence(number: number): Fields {
    return new Fields(this.#reader(number).take(TAG.SEQUENCE), this.#what)
  }

  /** Returns a reader of the parts of a SEQUENCE OF. */
  list(number: number): DerReader {
    return this.#reader(number).enter(TAG.SEQUENCE)
  }

  uint32(number: number): number {
    return this.#reader(number).uint32()
  }

  octets(number: number): Uint8Array {
    return this.#reader(number).take(TAG.OCTET_STRING)
  }

  text(number: number): string {
    return Buffer.from(this.#reader(number).take(GENERAL_STRING)).toString()
  }

  /** Returns flags: bit 0 is the highest of 32. */
  bits(number: number): number {
    const bytes = this.#reader(number).take(TAG.BIT_STRING)
    // The first byte counts the unused bits at the end.
    if (bytes.length !== 5)
      throw new MalformedError(`${this.#what}: 32 flags were expected, got ${bytes.length} bytes`)
    return Buffer.from(bytes).readUInt32BE(1)
  }

  /** Returns milliseconds since the epoch. */
  time(number: number): number {
    const text = Buffer.from(this.#reader(number).take(GENERALIZED_TIME)).toString('latin1')
    const [, year, month, day, hour, minute, second] =
      /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(text) ?? []
    const time = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
    if (Number.isNaN(time)) throw new MalformedError(`${this.#what}: a time was expected in field ${number}`)
    return time
  }

  /** Returns the components of a PrincipalName. */
  name(number: number): string[] {
    const reader = this.sequence(number).list(1)
    return readAll(reader, this.#what, () => Buffer.from(reader.take(GENERAL_STRING)).toString())
  }

  #reader(number: number): DerReader {
    return new DerReader(this.whole(number), this.#what)
  }
}

/** Reads the parts of a list to its end. @throws MalformedError for more than 32 */
export function readAll<T>(reader: DerReader, what: string, read: () => T): T[] {
  const parts: T[] = []
  while (!reader.isAtEnd) {
    if (parts.length >= MAX_PARTS)
      throw new MalformedError(`${what}: at most ${MAX_PARTS} parts of a list were expected`)
    parts.push(read())
  }
  return parts
}

export const text = (value: string): Buffer => der(GENERAL_STRING, Buffer.from(value))

/** Encodes milliseconds since the epoch, without the part of a second. */
export const time = (value: number): Buffer =>
  der(GENERALIZED_TIME, Buffer.from(new Date(value).toISOString().replaceAll(/[-:T]|\.\d+/g, '')))

/** Encodes flags: bit 0 is the highest. */
export function flags(value: number): Buffer {
  const bytes = Buffer.alloc(5)
  bytes.writeUInt32BE(value >>> 0, 1)
  return der(TAG.BIT_STRING, bytes)
}
