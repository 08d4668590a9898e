/**
 * Removes secrets from output, because a target may echo the bastion's input. A possible beginning of a
 * secret is held until the next bytes decide.
 */
import { Buffer } from 'node:buffer'

export class Redactor {
  readonly #secrets: readonly Buffer[]
  #held = Buffer.alloc(0)

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets.filter((secret) => secret !== '').map((secret) => Buffer.from(secret))
  }

  /** Returns the bytes that may be shown now. */
  redact(bytes: Uint8Array): Buffer {
    const all = Buffer.concat([this.#held, bytes])
    const { shown, end } = this.#without(all, (from) => this.#beginOfHeld(all, from))
    this.#held = Buffer.from(all.subarray(end))
    return shown
  }

  /** The bytes held back, without the secrets in them. */
  get held(): Uint8Array {
    return this.#without(this.#held, () => this.#held.length).shown
  }

  /** Returns `held` and empties it: no more output comes. */
  flush(): Uint8Array {
    const { held } = this
    this.#held = Buffer.alloc(0)
    return held
  }

  /**
   * Returns `all` without its secrets up to `end`, where the beginning of one stands: a shorter secret there
   * may be part of it.
   */
  #without(all: Buffer, endFrom: (from: number) => number): { shown: Buffer; end: number } {
    const parts: Buffer[] = []
    for (let from = 0; ; ) {
      const end = endFrom(from)
      const found = this.#next(all, from)
      if (!found || end <= found.at) {
        parts.push(all.subarray(from, end))
        return { shown: Buffer.concat(parts), end }
      }
      parts.push(all.subarray(from, found.at))
      from = found.at + found.length
    }
  }

  /** Returns the first secret from there on. */
  #next(all: Buffer, from: number): { at: number; length: number } | undefined {
    return this.#secrets
      .map((secret) => ({ at: all.indexOf(secret, from), length: secret.length }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at - b.at || b.length - a.length)[0]
  }

  #beginOfHeld(all: Buffer, from: number): number {
    const longest = Math.max(0, ...this.#secrets.map((secret) => secret.length - 1))
    for (let at = Math.max(from, all.length - longest); at < all.length; at++) {
      const tail = all.subarray(at)
      const isBegin = (secret: Buffer) =>
        tail.length < secret.length && secret.subarray(0, tail.length).equals(tail)
      if (this.#secrets.some(isBegin)) return at
    }
    return all.length
  }
}
