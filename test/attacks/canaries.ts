/** Secrets that are recognisable in every form in which they could leak. */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { filesBelow, formsOf } from '../e2e/recorded.ts'

/** Secrets by their names: `the password of a user`. */
export class Canaries {
  readonly #forms = new Map<string, Buffer[]>()

  /** Makes a secret that is hard to quote; its unique part stays unchanged in JSON, URLs and HTML. */
  awkward(name: string): string {
    const secret = `ä "\\'<&%${this.plain(name)}`
    this.add(name, secret)
    return secret
  }

  /** Makes a secret of letters and digits. */
  plain(name: string): string {
    const secret = `Zq${randomBytes(12).toString('hex')}`
    this.add(name, secret)
    return secret
  }

  /** Adds a secret that was made elsewhere. */
  add(name: string, secret: string | Buffer): void {
    this.#forms.set(name, [...(this.#forms.get(name) ?? []), ...formsOf(secret)])
  }

  get names(): string[] {
    return [...this.#forms.keys()]
  }

  /** Returns the names of the secrets in the content, except `allowed`. */
  in(content: string | Uint8Array, allowed: readonly string[] = []): string[] {
    const bytes = Buffer.from(content)
    return this.names.filter(
      (name) => !allowed.includes(name) && this.#forms.get(name)!.some((form) => bytes.includes(form)),
    )
  }

  /** Returns the names of the secrets in the files below a folder, each with the file. */
  below(folder: string): string[] {
    return filesBelow(folder).flatMap((file) =>
      this.in(readFileSync(file)).map((name) => `${name} in ${file}`),
    )
  }
}

/** Returns the 32 secret bytes of an Ed25519 key in OpenSSH's format without a passphrase. */
export function seedOf(privateKey: string, publicKey: string): Buffer {
  const blob = Buffer.from(privateKey.replace(/-----.*-----|\n/g, ''), 'base64')
  const point = Buffer.from(publicKey.split(' ')[1] ?? '', 'base64').subarray(-32)
  const at = blob.lastIndexOf(point)
  return blob.subarray(at - 32, at)
}
