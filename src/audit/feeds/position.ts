/**
 * A receiver's position in the audit log, in a file of its own: `data_dir/sinks/NAME.json`. The file is
 * replaced as a whole, is on the disk before it counts, and has a keyed checksum, also over its name, so that
 * a manipulated one is detected. The hash of the row shows whether the log is still the same.
 */
import { createHash, createHmac } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { freshRegister, type Owner, type Register } from './register.ts'

const SUFFIX = '.json'
const MAX_BYTES = 16 * 1024

export interface Position {
  /** The last row that the receiver has, or 0 if none. */
  sequence: number
  /** Hash of that row in hex. Empty for row 0. */
  hash: string
}

/**
 * `missing`: the receiver never had a position. `lost`: its position is gone. `unreadable`: the file has
 * other content than was written.
 */
export type ReadPosition = (Owner & Position) | 'missing' | 'lost' | 'unreadable'

export class Positions {
  readonly #folder: string
  readonly #register: Register
  #registered = freshRegister()

  /** Makes the folder. */
  constructor(folder: string, register: Register) {
    this.#folder = folder
    this.#register = register
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  }

  /** Reads the key and the owners of positions; call it first. */
  async open(): Promise<void> {
    this.#registered = await this.#register.read()
  }

  /** Returns undefined if no receiver had a position of this name. */
  ownerOf(name: string): Owner | undefined {
    const { owners } = this.#registered
    return Object.hasOwn(owners, name) ? owners[name] : undefined
  }

  /** Notes that these receivers have positions, and no others. */
  async own(owners: Record<string, Owner>): Promise<void> {
    const before = this.#registered
    if (JSON.stringify(owners) === JSON.stringify(before.owners)) return
    this.#registered = { ...before, owners }
    await this.#register.write(this.#registered)
  }

  /** Returns a name that is valid as a file's name, for any receiver. */
  nameOf(identity: string): string {
    return createHash('sha256').update(identity).digest('hex').slice(0, 32)
  }

  /** Returns the names that have or had a position, valid or not. */
  names(): string[] {
    const files = readdirSync(this.#folder)
      .filter((name) => name.endsWith(SUFFIX))
      .map((name) => name.slice(0, -SUFFIX.length))
    return [...new Set([...files, ...Object.keys(this.#registered.owners)])]
  }

  read(name: string): ReadPosition {
    let text: string
    try {
      text = readFileSync(this.#path(name), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return 'unreadable'
      return this.ownerOf(name) ? 'lost' : 'missing'
    }
    try {
      const { check, ...body } = JSON.parse(text.slice(0, MAX_BYTES))
      const { type, address, sequence, hash } = body
      const isWhole = check === this.#checkOf(name, body) && Number.isSafeInteger(sequence) && sequence >= 0
      return isWhole ? { type, address, sequence, hash } : 'unreadable'
    } catch {
      return 'unreadable'
    }
  }

  async write(name: string, { type, address }: Owner, { sequence, hash }: Position): Promise<void> {
    const body = { type, address, sequence, hash }
    const path = this.#path(name)
    const file = await open(`${path}.new`, 'w', 0o600)
    try {
      await file.writeFile(`${JSON.stringify({ ...body, check: this.#checkOf(name, body) })}\n`)
      await file.datasync()
    } finally {
      await file.close()
    }
    await rename(`${path}.new`, path)
  }

  remove(name: string): void {
    rmSync(this.#path(name), { force: true })
    rmSync(`${this.#path(name)}.new`, { force: true })
  }

  #checkOf(name: string, body: object): string {
    return createHmac('sha256', Buffer.from(this.#registered.key, 'hex'))
      .update(JSON.stringify([name, body]))
      .digest('hex')
  }

  #path(name: string): string {
    return join(this.#folder, `${name}${SUFFIX}`)
  }
}
