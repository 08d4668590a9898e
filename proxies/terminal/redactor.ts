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
    const parts: Buffer[] = []
    let from = 0
    for (let found = this.#next(all, from); found; found = this.#next(all, from)) {
      parts.push(all.subarray(from, found.at))
      from = found.at + found.length
    }
    const end = this.#beginOfHeld(all, from)
    parts.push(all.subarray(from, end))
    this.#held = Buffer.from(all.subarray(end))
    return Buffer.concat(parts)
  }

  /** The bytes held back. */
  get held(): Uint8Array {
    return this.#held
  }

  /** Returns the held bytes: no more output comes. */
  flush(): Buffer {
    const held = this.#held
    this.#held = Buffer.alloc(0)
    return held
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
      if (this.#secrets.some((secret) => secret.subarray(0, tail.length).equals(tail))) return at
    }
    return all.length
  }
}
