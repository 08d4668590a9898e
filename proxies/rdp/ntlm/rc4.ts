/** RC4, which NTLM uses for session keys and messages (MS-NLMP 3.4.3) and OpenSSL 3 no longer provides. */
import { Buffer } from 'node:buffer'

/** One key stream; encryption and decryption are the same. */
export class Rc4 {
  readonly #state = new Uint8Array(256)
  #i = 0
  #j = 0

  /** `key`: 1 to 256 bytes. */
  constructor(key: Uint8Array) {
    const state = this.#state
    for (let i = 0; i < 256; i++) state[i] = i
    for (let i = 0, j = 0; i < 256; i++) {
      j = (j + state[i]! + key[i % key.length]!) & 0xff
      this.#swap(i, j)
    }
  }

  /** Returns `bytes` combined with the next bytes of the key stream. Does not change `bytes`. */
  apply(bytes: Uint8Array): Buffer {
    const state = this.#state
    const result = Buffer.allocUnsafe(bytes.length)
    for (let at = 0; at < bytes.length; at++) {
      this.#i = (this.#i + 1) & 0xff
      this.#j = (this.#j + state[this.#i]!) & 0xff
      this.#swap(this.#i, this.#j)
      result[at] = bytes[at]! ^ state[(state[this.#i]! + state[this.#j]!) & 0xff]!
    }
    return result
  }

  #swap(one: number, other: number): void {
    const kept = this.#state[one]!
    this.#state[one] = this.#state[other]!
    this.#state[other] = kept
  }
}
