/**
 * The only type of a secret in this program (invariant 5): it prints as `[secret]`, and its bytes are
 * overwritten when its owner wipes it.
 */
import { Buffer } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import { inspect } from 'node:util'

const MASK = '[secret]'

export class Secret {
  readonly #bytes: Buffer
  #wiped = false

  private constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Copies `value` into a secret; a string is encoded as UTF-8. The caller's bytes stay unchanged. */
  static of(value: string | Uint8Array): Secret {
    return new Secret(typeof value === 'string' ? Buffer.from(value, 'utf8') : Buffer.from(value))
  }

  /** Returns the bytes themselves, not a copy: valid until `wipe()`. Throws after the secret was wiped. */
  reveal(): Buffer {
    if (this.#wiped) throw new Error('this secret was already wiped')
    return this.#bytes
  }

  /** Returns the secret as text (UTF-8). A JavaScript string cannot be overwritten: keep it short-lived. */
  revealText(): string {
    return this.reveal().toString('utf8')
  }

  get length(): number {
    return this.#bytes.length
  }

  /** Compares in constant time; lengths may differ and are not secret. */
  equals(other: Secret): boolean {
    const a = this.reveal()
    const b = other.reveal()
    return a.length === b.length && timingSafeEqual(a, b)
  }

  /** Overwrites the bytes. May be called more than once. */
  wipe(): void {
    this.#bytes.fill(0)
    this.#wiped = true
  }

  toString(): string {
    return MASK
  }

  toJSON(): string {
    return MASK
  }

  [inspect.custom](): string {
    return MASK
  }
}
