/**
 * Parses the file as a stream of records: accepts bytes in pieces of any size, returns the header and then
 * each record, and checks each record's sequence and link. It needs no key, does no I/O, and never holds more
 * than one record beyond the current piece.
 */
import { Buffer } from 'node:buffer'
import { RecordingError } from './error.ts'
import { HEADER_PREFIX_LENGTH, type Header, headerLength, parseHeader } from './header.ts'
import { LINK_LENGTH, MAX_RECORD_BODY } from './limits.ts'
import { bodyHash, linkOf, parseRecordHeader, RECORD_HEADER_LENGTH, type RecordHeader } from './record.ts'

/** A record in its place; the buffers are views, valid until the next `push`. */
export interface PlacedRecord extends RecordHeader {
  /** Offset in the file of the record's first byte, and of the byte after its link. */
  offset: number
  end: number
  body: Buffer
  /** The chain's head before and after the record. */
  before: Buffer
  link: Buffer
}

/** The place where a record begins in a file, with the chain's state before it. */
export interface RecordPlace {
  offset: number
  sequence: number
  /** The chain's head there, 32 bytes. */
  head: Buffer
}

export class RecordParser {
  #rest: Buffer = Buffer.alloc(0)
  #at = 0
  /** Offset in the file of `#rest[0]`. */
  #base = 0
  #header: Header | undefined
  #head: Buffer = Buffer.alloc(0)
  #sequence = 0

  /** Creates a parser for the bytes from a place on; `header` is that of the file. */
  static resume(header: Header, place: RecordPlace): RecordParser {
    const parser = new RecordParser()
    parser.#header = header
    parser.#base = place.offset
    parser.#head = place.head
    parser.#sequence = place.sequence
    return parser
  }

  /** Offset in the file of the first unparsed byte. */
  get offset(): number {
    return this.#base + this.#at
  }

  /** Number of bytes pushed and not parsed yet. More than 0 at the file's end means that the file is cut. */
  get pending(): number {
    return this.#rest.length - this.#at
  }

  /** The chain's head: the link of the last parsed record, or of the header. */
  get head(): Buffer {
    return this.#head
  }

  /** The sequence that the next record must have. */
  get sequence(): number {
    return this.#sequence
  }

  push(chunk: Uint8Array): void {
    const left = this.#rest.subarray(this.#at)
    this.#base += this.#at
    this.#at = 0
    const view = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    this.#rest = left.length === 0 ? view : Buffer.concat([left, view])
  }

  /** Returns the header, or undefined if more bytes are needed. Throws RecordingError. */
  header(): Header | undefined {
    if (this.#header) return this.#header
    if (this.pending < HEADER_PREFIX_LENGTH) return undefined
    const length = headerLength(this.#rest)
    if (this.pending < length) return undefined
    this.#header = parseHeader(this.#rest.subarray(0, length))
    this.#head = Buffer.from(this.#rest.subarray(length - LINK_LENGTH, length))
    this.#at = length
    return this.#header
  }

  /**
   * Returns the next record, or undefined if more bytes are needed. Call after `header`. Throws
   * RecordingError.
   */
  next(): PlacedRecord | undefined {
    const header = this.#peek()
    if (!header) return undefined
    const { offset } = this
    if (header.sequence !== this.#sequence) {
      const later = header.sequence > this.#sequence
      throw new RecordingError(
        later ? 'missing_records' : 'misplaced_record',
        `expected record ${this.#sequence} at byte ${offset}, found record ${header.sequence}`,
        offset,
      )
    }
    const length = RECORD_HEADER_LENGTH + header.length
    if (this.pending < length + LINK_LENGTH) return undefined
    const start = this.#at
    const body = this.#rest.subarray(start + RECORD_HEADER_LENGTH, start + length)
    const link = this.#rest.subarray(start + length, start + length + LINK_LENGTH)
    const headerBytes = this.#rest.subarray(start, start + RECORD_HEADER_LENGTH)
    if (!linkOf(this.#head, headerBytes, bodyHash(body)).equals(link)) {
      throw new RecordingError(
        'damaged_record',
        `record ${header.sequence} (bytes ${offset} to ${offset + length + LINK_LENGTH}) was changed, or is from elsewhere`,
        offset,
      )
    }
    const before = this.#head
    this.#head = Buffer.from(link)
    this.#at = start + length + LINK_LENGTH
    this.#sequence++
    return {
      ...header,
      offset,
      end: this.offset,
      body,
      before,
      link: this.#head,
    }
  }

  /**
   * Parses only the header of the next record, whatever its sequence and link: used to search on after a
   * fault. Returns undefined if more bytes are needed; throws RecordingError `damaged_header` as `next` does.
   */
  skip(): RecordHeader | undefined {
    const header = this.#peek()
    const length = RECORD_HEADER_LENGTH + (header?.length ?? 0) + LINK_LENGTH
    if (!header || this.pending < length) return undefined
    this.#at += length
    return header
  }

  #peek(): RecordHeader | undefined {
    if (this.pending < RECORD_HEADER_LENGTH) return undefined
    const header = parseRecordHeader(this.#rest, this.#at)
    if (!header || header.length > MAX_RECORD_BODY) {
      throw new RecordingError(
        'damaged_header',
        `the header of record ${this.#sequence} (bytes ${this.offset} to ${this.offset + RECORD_HEADER_LENGTH}) was changed`,
        this.offset,
      )
    }
    return header
  }
}
