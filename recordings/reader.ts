/** Reads a recording's frames: needs the session's key. */
import { Buffer } from 'node:buffer'
import { createSecretKey, type KeyObject } from 'node:crypto'
import { type CheckpointKind, parseCheckpoint } from './format/checkpoint.ts'
import { RecordingError } from './format/error.ts'
import { CONTINUED, openGroup, parseGroupHeader, type RawFrame } from './format/group.ts'
import type { Header } from './format/header.ts'
import { MAX_STRUCTURED_PAYLOAD, SESSION_KEY_LENGTH } from './format/limits.ts'
import { type PlacedRecord, RecordParser } from './format/parser.ts'
import { RECORD } from './format/record.ts'
import { FRAME, type Frame } from './frames.ts'

const TYPES: ReadonlySet<number> = new Set(Object.values(FRAME))

/**
 * A recording that is being read. Signatures are the verifier's business; the chain's links and the groups' seals
 * are checked here, and the frames before a fault have been given by then. A file that still grows, or was cut,
 * simply ends: `ending` says how.
 */
export class RecordingReader {
  readonly header: Header
  readonly #parser: RecordParser
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #key: KeyObject
  #ending: Exclude<CheckpointKind, 'interim'> | 'open' = 'open'
  #groups = 0
  #joining: { type: number; channel: number; time: number; parts: Buffer[]; length: number } | undefined

  private constructor(
    header: Header,
    parser: RecordParser,
    chunks: AsyncIterator<Uint8Array>,
    key: Uint8Array,
  ) {
    this.header = header
    this.#parser = parser
    this.#chunks = chunks
    this.#key = createSecretKey(key)
  }

  /**
   * Reads the header. `source` gives the bytes of `session.rec` in pieces, which must not change afterwards.
   * Throws RecordingError.
   */
  static async open(source: AsyncIterable<Uint8Array>, key: Uint8Array): Promise<RecordingReader> {
    if (key.length !== SESSION_KEY_LENGTH) {
      throw new RecordingError(
        'wrong_key',
        `expected a key of ${SESSION_KEY_LENGTH} bytes, got ${key.length}`,
      )
    }
    const parser = new RecordParser()
    const chunks = source[Symbol.asyncIterator]()
    for (;;) {
      const header = parser.header()
      if (header) return new RecordingReader(header, parser, chunks, key)
      const chunk = await chunks.next()
      if (chunk.done)
        throw new RecordingError('cut_tail', 'the file ends in the middle of its header', parser.offset)
      parser.push(chunk.value)
    }
  }

  /** How the file ends, once `frames` has come to its end. */
  get ending(): Exclude<CheckpointKind, 'interim'> | 'open' {
    return this.#ending
  }

  /** The frames, in order, once. Throws RecordingError. Frames of types that this program does not know are left out. */
  async *frames(): AsyncGenerator<Frame> {
    try {
      for (;;) {
        for (let record = this.#parser.next(); record; record = this.#parser.next()) {
          yield* this.#framesOf(record)
        }
        const chunk = await this.#chunks.next()
        if (chunk.done) return
        this.#parser.push(chunk.value)
      }
    } finally {
      await this.#chunks.return?.()
    }
  }

  *#framesOf(record: PlacedRecord): Generator<Frame> {
    if (record.type === RECORD.checkpoint) {
      const kind = parseCheckpoint(record.body)?.checkpoint.kind
      if (kind !== undefined && kind !== 'interim') this.#ending = kind
      return
    }
    if (parseGroupHeader(record.body)?.number !== this.#groups) {
      throw new RecordingError(
        'bad_group',
        `expected group ${this.#groups} at byte ${record.offset}`,
        record.offset,
      )
    }
    this.#groups++
    for (const raw of openGroup(this.#key, record.body, record.offset)) {
      const frame = this.#whole(raw, record.offset)
      if (frame && isKnown(frame)) yield frame
    }
  }

  /** Joins a structured payload that was split over frames; undefined while its end is missing. */
  #whole(raw: RawFrame, offset: number): (Omit<Frame, 'type'> & { type: number }) | undefined {
    const type = raw.type & ~CONTINUED
    const more = (raw.type & CONTINUED) !== 0
    const joining = this.#joining
    if (!joining && !more) return { ...raw, type }
    const begun = joining ?? { type, channel: raw.channel, time: raw.time, parts: [], length: 0 }
    begun.parts.push(raw.payload)
    begun.length += raw.payload.length
    if (begun.type !== type || begun.channel !== raw.channel || begun.length > MAX_STRUCTURED_PAYLOAD) {
      throw new RecordingError('bad_group', `the group at byte ${offset} goes on with another frame`, offset)
    }
    this.#joining = more ? begun : undefined
    return more
      ? undefined
      : { type, channel: begun.channel, time: begun.time, payload: Buffer.concat(begun.parts) }
  }
}

function isKnown(frame: Omit<Frame, 'type'> & { type: number }): frame is Frame {
  return TYPES.has(frame.type)
}
