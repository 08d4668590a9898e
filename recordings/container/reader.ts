/** Reads a recording's frames with the session's key. */
import { Buffer } from 'node:buffer'
import { createSecretKey, type KeyObject } from 'node:crypto'
import { type CheckpointKind, parseCheckpoint } from './format/checkpoint.ts'
import { RecordingError } from './format/error.ts'
import { CONTINUED, openGroup, parseGroupHeader, type RawFrame } from './format/group.ts'
import type { Header } from './format/header.ts'
import { MAX_STRUCTURED_PAYLOAD, SESSION_KEY_LENGTH } from './format/limits.ts'
import { type PlacedRecord, RecordParser, type RecordPlace } from './format/parser.ts'
import { RECORD } from './format/record.ts'
import { FRAME, type Frame } from './frames.ts'

/** A place where reading can begin: a group's record, and the group's number. */
export interface GroupPlace extends RecordPlace {
  group: number
}

/** A group's frames and its place. */
export interface PlacedGroup {
  place: GroupPlace
  /** Length of the group's record in bytes. */
  length: number
  /** False if the group continues a payload of an earlier one, so that reading cannot begin here. */
  isBeginning: boolean
  frames: Frame[]
}

const TYPES: ReadonlySet<number> = new Set(Object.values(FRAME))

/**
 * Reads a recording. It checks the chain's links and the groups' seals; signatures are checked by the
 * verifier. Frames before a fault are returned first. A file that still grows, or was cut, simply ends: see
 * `ending`.
 */
export class RecordingReader {
  readonly header: Header
  readonly #parser: RecordParser
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #key: KeyObject
  #ending: Exclude<CheckpointKind, 'interim'> | 'open' = 'open'
  #groups: number
  #joining: { type: number; channel: number; time: number; parts: Buffer[]; length: number } | undefined

  private constructor(
    header: Header,
    parser: RecordParser,
    chunks: AsyncIterator<Uint8Array>,
    key: Uint8Array,
    groups: number,
  ) {
    this.header = header
    this.#groups = groups
    this.#parser = parser
    this.#chunks = chunks
    this.#key = createSecretKey(key)
  }

  /**
   * Reads the header. `source` yields the bytes of `session.rec` in pieces, which must not change afterwards.
   * Throws RecordingError.
   */
  static async open(source: AsyncIterable<Uint8Array>, key: Uint8Array): Promise<RecordingReader> {
    requireKey(key)
    const parser = new RecordParser()
    const chunks = source[Symbol.asyncIterator]()
    for (;;) {
      const header = parser.header()
      if (header) return new RecordingReader(header, parser, chunks, key, 0)
      const chunk = await chunks.next()
      if (chunk.done)
        throw new RecordingError('cut_tail', 'the file ends in the middle of its header', parser.offset)
      parser.push(chunk.value)
    }
  }

  /**
   * Continues from a place that a reader of the same file returned; `source` yields the bytes from there on.
   * Throws RecordingError.
   */
  static resume(
    source: AsyncIterable<Uint8Array>,
    key: Uint8Array,
    header: Header,
    place: GroupPlace,
  ): RecordingReader {
    requireKey(key)
    const chunks = source[Symbol.asyncIterator]()
    return new RecordingReader(header, RecordParser.resume(header, place), chunks, key, place.group)
  }

  /** Returns the place where reading continues. */
  get place(): GroupPlace {
    const { offset, sequence, head } = this.#parser
    return { offset, sequence, head, group: this.#groups }
  }

  /** The kind of the file's ending, valid after `frames` has finished. */
  get ending(): Exclude<CheckpointKind, 'interim'> | 'open' {
    return this.#ending
  }

  /** Closes the source, for a caller that needs no more frames. */
  async close(): Promise<void> {
    await this.#chunks.return?.()
  }

  /**
   * Yields the frames, in order, once. Leaves out frames of types that this program does not know. Throws
   * RecordingError.
   */
  async *frames(): AsyncGenerator<Frame> {
    for await (const group of this.groups()) yield* group.frames
  }

  /** Yields the same frames by groups. */
  async *groups(): AsyncGenerator<PlacedGroup> {
    try {
      for (;;) {
        for (let record = this.#parser.next(); record; record = this.#parser.next()) {
          const group = this.#groupOf(record)
          if (group) yield group
        }
        const chunk = await this.#chunks.next()
        if (chunk.done) return
        this.#parser.push(chunk.value)
      }
    } finally {
      await this.#chunks.return?.()
    }
  }

  #groupOf(record: PlacedRecord): PlacedGroup | undefined {
    if (record.type === RECORD.checkpoint) {
      const kind = parseCheckpoint(record.body)?.checkpoint.kind
      if (kind !== undefined && kind !== 'interim') this.#ending = kind
      return undefined
    }
    const { offset, sequence, before: head } = record
    if (parseGroupHeader(record.body)?.number !== this.#groups) {
      throw new RecordingError('bad_group', `expected group ${this.#groups} at byte ${offset}`, offset)
    }
    const place = { offset, sequence, head, group: this.#groups }
    const isBeginning = this.#joining === undefined
    this.#groups++
    const frames: Frame[] = []
    for (const raw of openGroup(this.#key, record.body, offset)) {
      const frame = this.#whole(raw, offset)
      if (frame && isKnown(frame)) frames.push(frame)
    }
    return { place, length: record.end - offset, isBeginning, frames }
  }

  /** Joins a structured payload that was split over frames. Returns undefined while its end is missing. */
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

function requireKey(key: Uint8Array): void {
  if (key.length === SESSION_KEY_LENGTH) return
  throw new RecordingError('wrong_key', `expected a key of ${SESSION_KEY_LENGTH} bytes, got ${key.length}`)
}

function isKnown(frame: Omit<Frame, 'type'> & { type: number }): frame is Frame {
  return TYPES.has(frame.type)
}
