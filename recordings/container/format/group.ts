/**
 * A group: the frames of at most a second, sealed together. The body of the record:
 *
 *     0   4  number of the group: 0, 1, 2 …
 *     4   8  time of the first frame, microseconds since the recording began
 *    12   4  time of the last frame, microseconds after the first
 *    16   4  number of frames
 *    20   1  compression: 0 none, 1 zstd (one frame, RFC 8878)
 *    21   3  length of the frames before compression
 *    24   n  ciphertext: AES-256-GCM under the session's key; the nonce is eight zero bytes and the group's number
 *            (four bytes); the 24 bytes above are the additional data
 *  24+n  16  tag
 *
 * Numbers are big-endian. A frame: type (one byte), then as varints channel, microseconds since the frame before
 * (or since the group's first), length of the payload; then the payload. Bit 7 of the type:
 * the structured payload continues in the next frame.
 */
import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { RecordingError } from './error.ts'
import {
  GCM_NONCE_LENGTH,
  GCM_TAG_LENGTH,
  MAX_CHANNEL,
  MAX_FRAME_PAYLOAD,
  MAX_GROUP_PLAIN,
} from './limits.ts'
import { bodyHash } from './record.ts'
import { readVarint, varintLength, writeVarint } from './varint.ts'

export const GROUP_HEADER_LENGTH = 24
/** Set in a frame's type if its payload continues in the next frame. */
export const CONTINUED = 0x80

/** Microseconds: the largest value of the header's field for the last frame's time. */
const MAX_GROUP_TIME = 0xffff_ffff
/** Below this size zstd's own header outweighs its savings. */
const MIN_COMPRESSED = 64
const ZSTD_LEVEL = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

export interface GroupHeader {
  number: number
  /** Microseconds since the recording began. */
  first: number
  last: number
  frames: number
  compressed: boolean
  plainLength: number
}

/** Initial capacity, unless the previous group needed more: nearly all groups of a terminal are smaller. */
const SMALL = 4096
/** Free buffers for the largest group. They are shared, so that an idle session holds none. */
let free: ArrayBuffer[] = []
const MAX_FREE = 16

/** Keeps the buffer of a collected group for the next large one, if it is large itself. */
export function reuse(buffer: ArrayBuffer): void {
  if (buffer.byteLength === MAX_GROUP_PLAIN && free.length < MAX_FREE) free.push(buffer)
}

/** Releases the memory of the free buffers. */
export function dropBuffers(): void {
  free = []
}

/** Frames before they are sealed. `plain` begins its buffer and belongs to the holder of the group. */
export interface CollectedGroup {
  plain: Buffer
  /** Microseconds since the recording began. */
  first: number
  last: number
  frames: number
}

/** The body of a record, and its `bodyHash`. */
export interface SealedBody {
  body: readonly [head: Buffer, ciphertext: Buffer, tag: Buffer]
  hash: Buffer
}

/** Collects frames for one group in a buffer that is filled, sealed and released. */
export class GroupBuilder {
  #buffer: Buffer | undefined
  #size = SMALL
  #length = 0
  #frames = 0
  #first = 0
  #last = 0

  get length(): number {
    return this.#length
  }

  /**
   * Appends a frame of at most MAX_FRAME_PAYLOAD bytes. Returns false if the group has no room left for it.
   * `time` is microseconds since the recording began, not less than that of the previous frame.
   */
  append(type: number, channel: number, time: number, payload: Uint8Array): boolean {
    if (this.#frames > 0 && time - this.#first > MAX_GROUP_TIME) return false
    const delta = this.#frames === 0 ? 0 : time - this.#last
    const head = 1 + varintLength(channel) + varintLength(delta) + varintLength(payload.length)
    if (this.#length + head + payload.length > MAX_GROUP_PLAIN) return false
    const buffer = this.#withRoom(head + payload.length)
    buffer[this.#length] = type
    let at = writeVarint(buffer, this.#length + 1, channel)
    at = writeVarint(buffer, at, delta)
    at = writeVarint(buffer, at, payload.length)
    buffer.set(payload, at)
    this.#length = at + payload.length
    if (this.#frames === 0) this.#first = time
    this.#last = time
    this.#frames++
    return true
  }

  /** Returns the collected frames, and starts a new group. */
  take(): CollectedGroup {
    const plain = (this.#buffer ?? Buffer.alloc(0)).subarray(0, this.#length)
    const group = { plain, first: this.#first, last: this.#last, frames: this.#frames }
    this.#size = this.#length <= SMALL ? SMALL : MAX_GROUP_PLAIN
    this.#length = 0
    this.#frames = 0
    this.#buffer = undefined
    return group
  }

  #withRoom(bytes: number): Buffer {
    const before = this.#buffer
    if (before && this.#length + bytes <= before.length) return before
    const isSmall = before === undefined && this.#size === SMALL && bytes <= SMALL
    const buffer = Buffer.from(
      isSmall ? new ArrayBuffer(SMALL) : (free.pop() ?? new ArrayBuffer(MAX_GROUP_PLAIN)),
    )
    before?.copy(buffer, 0, 0, this.#length)
    this.#buffer = buffer
    return buffer
  }
}

/** Seals collected frames as the group of this number. The frames stay as they are. */
export function sealGroup(
  key: KeyObject | Uint8Array,
  number: number,
  { plain, first, last, frames }: CollectedGroup,
  compress: boolean,
): SealedBody {
  const tried = compress && plain.length >= MIN_COMPRESSED ? zstdCompressSync(plain, ZSTD_LEVEL) : plain
  const compressed = tried.length < plain.length
  const head = Buffer.alloc(GROUP_HEADER_LENGTH)
  head.writeUInt32BE(number, 0)
  head.writeBigUInt64BE(BigInt(first), 4)
  head.writeUInt32BE(last - first, 12)
  head.writeUInt32BE(frames, 16)
  head.writeUInt8(compressed ? 1 : 0, 20)
  head.writeUIntBE(plain.length, 21, 3)
  const cipher = createCipheriv('aes-256-gcm', key, nonceOf(number))
  cipher.setAAD(head)
  const ciphertext = cipher.update(compressed ? tried : plain)
  cipher.final()
  const body = [head, ciphertext, cipher.getAuthTag()] as const
  // Hash here and not in the flush: the bytes are still in the processor's cache.
  return { body, hash: bodyHash(...body) }
}

/**
 * Releases the memory of sealed bytes that are no longer used. The garbage collector would do so too, but it runs
 * over the whole heap for every 64 MiB of such buffers, which has cost as much as sealing.
 */
export function releaseBytes({ buffer, byteLength }: Uint8Array): void {
  if (byteLength > SMALL && buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) {
    buffer.transfer(0)
  }
}

function nonceOf(number: number): Buffer {
  const nonce = Buffer.alloc(GCM_NONCE_LENGTH)
  nonce.writeUInt32BE(number, GCM_NONCE_LENGTH - 4)
  return nonce
}

/** Parses the part of a group that needs no key. Returns undefined if it is malformed. */
export function parseGroupHeader(body: Buffer): GroupHeader | undefined {
  if (body.length < GROUP_HEADER_LENGTH + GCM_TAG_LENGTH) return undefined
  const first = body.readBigUInt64BE(4)
  const compression = body.readUInt8(20)
  const plainLength = body.readUIntBE(21, 3)
  if (
    first > BigInt(Number.MAX_SAFE_INTEGER - MAX_GROUP_TIME) ||
    compression > 1 ||
    plainLength > MAX_GROUP_PLAIN
  ) {
    return undefined
  }
  return {
    number: body.readUInt32BE(0),
    first: Number(first),
    last: Number(first) + body.readUInt32BE(12),
    frames: body.readUInt32BE(16),
    compressed: compression === 1,
    plainLength,
  }
}

/** A frame as stored in a group. `payload` is a view. */
export interface RawFrame {
  type: number
  channel: number
  time: number
  payload: Buffer
}

/**
 * Opens a group. Throws RecordingError `wrong_key` or `bad_group`; `offset` is the record's, for the message.
 */
export function openGroup(key: KeyObject, body: Buffer, offset: number): RawFrame[] {
  const header = parseGroupHeader(body)
  if (!header)
    throw new RecordingError('bad_group', `the group at byte ${offset} has a malformed header`, offset)
  const sealed = body.subarray(GROUP_HEADER_LENGTH, body.length - GCM_TAG_LENGTH)
  const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(header.number), {
    authTagLength: GCM_TAG_LENGTH,
  })
  decipher.setAAD(body.subarray(0, GROUP_HEADER_LENGTH))
  decipher.setAuthTag(body.subarray(body.length - GCM_TAG_LENGTH))
  let plain = decipher.update(sealed)
  try {
    decipher.final()
  } catch {
    throw new RecordingError(
      'wrong_key',
      `the group at byte ${offset} does not open: another session's key?`,
      offset,
    )
  }
  if (header.compressed) {
    try {
      plain = zstdDecompressSync(plain, { maxOutputLength: Math.max(1, header.plainLength) })
    } catch {
      throw new RecordingError('bad_group', `the group at byte ${offset} does not decompress`, offset)
    }
  }
  if (plain.length !== header.plainLength) {
    throw new RecordingError(
      'bad_group',
      `expected ${header.plainLength} bytes in a group, got ${plain.length}`,
      offset,
    )
  }
  return parseFrames(plain, header, offset)
}

function parseFrames(plain: Buffer, header: GroupHeader, offset: number): RawFrame[] {
  const frames: RawFrame[] = []
  const malformed = () =>
    new RecordingError(
      'bad_group',
      `frame ${frames.length} of the group at byte ${offset} is malformed`,
      offset,
    )
  let at = 0
  let time = header.first
  while (at < plain.length) {
    const channel = readVarint(plain, at + 1, MAX_CHANNEL)
    const delta = channel && readVarint(plain, channel.offset, header.last - time)
    const length = delta && readVarint(plain, delta.offset, MAX_FRAME_PAYLOAD)
    if (!length || length.offset + length.value > plain.length) throw malformed()
    time += delta.value
    const end = length.offset + length.value
    const payload = plain.subarray(length.offset, end)
    frames.push({ type: plain[at] ?? 0, channel: channel.value, time, payload })
    at = end
  }
  if (frames.length !== header.frames) throw malformed()
  return frames
}
