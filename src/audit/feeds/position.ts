/**
 * How far a receiver has come in the audit log, in a file of its own: `data_dir/sinks/NAME.json`. It is replaced as a
 * whole, and bears a check sum, so that it is either what was written or seen not to be. The hash of the row tells
 * whether the log is still the one that it was about.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const SUFFIX = '.json'
const MAX_BYTES = 16 * 1024

/** Whose position it is, for people. */
export interface Owner {
  type: string
  address: string
}

export interface Position {
  /** The last row that the receiver has; 0: none. */
  sequence: number
  /** Hash of that row in hex; empty for row 0. */
  hash: string
}

/** `unreadable`: there is a file, which is not what was written. */
export type ReadPosition = (Owner & Position) | 'missing' | 'unreadable'

const checkOf = (body: object): string => createHash('sha256').update(JSON.stringify(body)).digest('hex')

export class Positions {
  readonly #folder: string

  /** Makes the folder. */
  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  }

  /** A file's name has to be one wherever the receiver is. */
  nameOf(identity: string): string {
    return createHash('sha256').update(identity).digest('hex').slice(0, 32)
  }

  /** Names that have a position, whatever it is. */
  names(): string[] {
    return readdirSync(this.#folder)
      .filter((name) => name.endsWith(SUFFIX))
      .map((name) => name.slice(0, -SUFFIX.length))
  }

  read(name: string): ReadPosition {
    let text: string
    try {
      text = readFileSync(this.#path(name), 'utf8')
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : 'unreadable'
    }
    try {
      const { check, ...body } = JSON.parse(text.slice(0, MAX_BYTES))
      const { type, address, sequence, hash } = body
      const isWhole = check === checkOf(body) && Number.isSafeInteger(sequence) && sequence >= 0
      return isWhole ? { type, address, sequence, hash } : 'unreadable'
    } catch {
      return 'unreadable'
    }
  }

  async write(name: string, { type, address }: Owner, { sequence, hash }: Position): Promise<void> {
    const body = { type, address, sequence, hash }
    const path = this.#path(name)
    await writeFile(`${path}.new`, `${JSON.stringify({ ...body, check: checkOf(body) })}\n`, { mode: 0o600 })
    await rename(`${path}.new`, path)
  }

  remove(name: string): void {
    rmSync(this.#path(name), { force: true })
    rmSync(`${this.#path(name)}.new`, { force: true })
  }

  #path(name: string): string {
    return join(this.#folder, `${name}${SUFFIX}`)
  }
}
