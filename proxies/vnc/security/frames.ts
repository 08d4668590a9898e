/**
 * The encryption of RA2: each frame has its length in two bytes, which are authenticated with it, the message
 * in AES-EAX and a tag of 16 bytes; the nonce is the number of the frame, little-endian. EAX (Bellare,
 * Rogaway, Wagner) is CTR and CMAC (RFC 4493), which OpenSSL does not combine.
 */
import { Buffer } from 'node:buffer'
import { type Cipheriv, createCipheriv, timingSafeEqual } from 'node:crypto'
import { MalformedError } from '../../bytes/malformed.ts'

const BLOCK = 16
const ZERO = Buffer.alloc(BLOCK)
const TAG = 16
const HEADER = 2
/** Bytes in one sent frame, the maximum of TigerVNC. */
export const SENT_FRAME = 8192

const NONCE = 0
const ASSOCIATED = 1
const MESSAGE = 2

/**
 * Bytes up to which blocks share one permanent cipher: creating a cipher costs as much as 4 KiB of blocks.
 */
const SHORT = 256

/** AES-128 or AES-256, by the key's length. */
export class Eax {
  readonly #key: Uint8Array
  readonly #bits: number
  /** Encrypts single blocks: without a chain it has no state. */
  readonly #block: Cipheriv
  readonly #whole: Buffer
  readonly #padded: Buffer

  constructor(key: Uint8Array) {
    this.#key = key
    this.#bits = key.length * 8
    this.#block = createCipheriv(`aes-${this.#bits}-ecb`, key, null).setAutoPadding(false)
    this.#whole = doubled(this.#block.update(ZERO))
    this.#padded = doubled(this.#whole)
  }

  /** Returns the encrypted message, and its tag. */
  seal(nonce: Uint8Array, associated: Uint8Array, message: Uint8Array): [sealed: Buffer, tag: Buffer] {
    const start = this.#mac(NONCE, nonce)
    const sealed = this.#counted(start, message)
    return [sealed, this.#tag(start, associated, sealed)]
  }

  /** Returns the message, or undefined if it was altered or is under another key. */
  open(nonce: Uint8Array, associated: Uint8Array, sealed: Uint8Array, tag: Uint8Array): Buffer | undefined {
    const start = this.#mac(NONCE, nonce)
    if (!timingSafeEqual(this.#tag(start, associated, sealed), tag)) return undefined
    return this.#counted(start, sealed)
  }

  #tag(start: Buffer, associated: Uint8Array, sealed: Uint8Array): Buffer {
    const tag = this.#mac(ASSOCIATED, associated)
    xorInto(tag, start)
    xorInto(tag, this.#mac(MESSAGE, sealed))
    return tag
  }

  #counted(start: Buffer, bytes: Uint8Array): Buffer {
    if (bytes.length > SHORT) return createCipheriv(`aes-${this.#bits}-ctr`, this.#key, start).update(bytes)
    const counter = Buffer.from(start)
    const blocks = Buffer.alloc(Math.ceil(bytes.length / BLOCK) * BLOCK)
    for (let at = 0; at < blocks.length; at += BLOCK) {
      blocks.set(counter, at)
      for (let place = BLOCK - 1; place >= 0; place--) {
        counter[place] = (counter[place]! + 1) & 0xff
        if (counter[place] !== 0) break
      }
    }
    const sealed = this.#block.update(blocks).subarray(0, bytes.length)
    xorInto(sealed, bytes)
    return sealed
  }

  /** Returns the CMAC of a block that names the purpose, and of the data. */
  #mac(of: number, data: Uint8Array): Buffer {
    const padding = data.length === 0 ? 0 : (BLOCK - (data.length % BLOCK)) % BLOCK
    const blocks = Buffer.alloc(BLOCK + data.length + padding)
    blocks[BLOCK - 1] = of
    blocks.set(data, BLOCK)
    if (padding > 0) blocks[BLOCK + data.length] = 0x80
    xorInto(blocks.subarray(-BLOCK), padding > 0 ? this.#padded : this.#whole)
    if (blocks.length > SHORT) {
      const cipher = createCipheriv(`aes-${this.#bits}-cbc`, this.#key, ZERO).setAutoPadding(false)
      return Buffer.from(cipher.update(blocks).subarray(-BLOCK))
    }
    let chained = this.#block.update(blocks.subarray(0, BLOCK))
    for (let at = BLOCK; at < blocks.length; at += BLOCK) {
      xorInto(chained, blocks.subarray(at, at + BLOCK))
      chained = this.#block.update(chained)
    }
    return chained
  }
}

/** Returns the bytes as a polynomial over GF(2), times x (RFC 4493 section 2.3). */
function doubled(bytes: Buffer): Buffer {
  const result = Buffer.alloc(BLOCK)
  for (let at = 0; at < BLOCK; at++) result[at] = (bytes[at]! << 1) | ((bytes[at + 1] ?? 0) >> 7)
  if (bytes[0]! & 0x80) result[BLOCK - 1]! ^= 0x87
  return result
}

function xorInto(target: Uint8Array, other: Uint8Array): void {
  for (let at = 0; at < target.length; at++) target[at]! ^= other[at]!
}

/** Counts frames for their nonces. */
class FrameCount {
  readonly nonce = Buffer.alloc(BLOCK)

  next(): void {
    for (let at = 0; at < BLOCK; at++) {
      this.nonce[at] = (this.nonce[at]! + 1) & 0xff
      if (this.nonce[at] !== 0) return
    }
  }
}

/** Frames toward the peer. */
export class FrameSealer {
  readonly #eax: Eax
  readonly #count = new FrameCount()

  constructor(key: Uint8Array) {
    this.#eax = new Eax(key)
  }

  /** Returns as many frames as needed. */
  seal(bytes: Uint8Array): Buffer {
    const pieces: Buffer[] = []
    for (let at = 0; at < bytes.length; at += SENT_FRAME) {
      const message = bytes.subarray(at, at + SENT_FRAME)
      const header = Buffer.from([message.length >> 8, message.length & 0xff])
      pieces.push(header, ...this.#eax.seal(this.#count.nonce, header, message))
      this.#count.next()
    }
    return Buffer.concat(pieces)
  }
}

/** Frames from the peer. */
export class FrameOpener {
  readonly #eax: Eax
  readonly #count = new FrameCount()
  /** The beginning of an incomplete frame: under 64 KiB. */
  #pending: Buffer = Buffer.alloc(0)

  constructor(key: Uint8Array) {
    this.#eax = new Eax(key)
  }

  /** Returns the contents of the complete frames. Throws MalformedError. */
  open(bytes: Uint8Array): Buffer {
    const all = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes])
    const opened: Buffer[] = []
    let at = 0
    while (all.length - at >= HEADER) {
      const header = all.subarray(at, at + HEADER)
      const length = (header[0]! << 8) | header[1]!
      // No peer needs empty frames, and opening one costs as much as opening a full one.
      if (length === 0) throw new MalformedError('vnc: a frame came without a message')
      const end = at + HEADER + length + TAG
      if (all.length < end) break
      const tag = all.subarray(end - TAG, end)
      const message = this.#eax.open(this.#count.nonce, header, all.subarray(at + HEADER, end - TAG), tag)
      if (!message) throw new MalformedError('vnc: a frame came whose tag is wrong')
      this.#count.next()
      opened.push(message)
      at = end
    }
    this.#pending = Buffer.from(all.subarray(at))
    return Buffer.concat(opened)
  }
}
