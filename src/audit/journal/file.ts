/**
 * A journal: events that were recorded while the database was away, in a file of the data folder until the audit
 * log has them. One line for each group of events that shared a write, on the disk before it counts; sealed by the
 * vault, as commands may have secrets in them, and bound to the journal, its number and the line before, so that a
 * line that was changed, moved or taken out does not open. What was cut off at the end is seen by the process that
 * wrote it only.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncDirectory } from '../../../recordings/container/session-file.ts'
import { Secret } from '../../model/secret.ts'
import type { Vault } from '../../vault/vault.ts'
import type { AuditEvent } from '../events/catalogue.ts'
import { type Ownership, takeOwnership } from './owner.ts'

/** Limit of a journal's bytes; later events are refused. */
export const MAX_JOURNAL_BYTES = 64 * 2 ** 20
/** Bytes of them that only the ends of sessions may use. */
export const ENDS_BYTES = 4 * 2 ** 20

const FOLDER = 'journal'
const SUFFIX = '.journal'
/** Suffix of the file whose lock tells that the journal's owner lives. */
const LOCK = '.lock'
const NAME = /^[0-9a-f]{32}\.journal$/
/** Suffix of a journal that could not be read to its end. */
const DAMAGED = '.damaged'
/** Bytes that are read at a time. */
const PIECE_BYTES = 256 * 1024
const MAX_LINE_BYTES = MAX_JOURNAL_BYTES

/** Rows that the audit log may have got before the database went away: their commit had no answer. */
export interface Doubt {
  /** Sequence of the first event's row, and of the last row, with its hash. */
  first: number
  last: number
  hash: Uint8Array
}

/** Events that shared a write. */
export interface Entry {
  /** From 1. */
  number: number
  events: AuditEvent[]
  /** Absent if the events were never sent to the database. */
  doubt?: Doubt
}

/** Says in words why a journal cannot be written or read. */
export class JournalError extends Error {
  override readonly name = 'JournalError'
}

export type JournalVault = Pick<Vault, 'seal' | 'open'>

/** Returns the journals' folder in a data folder. */
export const journalFolder = (dataDir: string): string => join(dataDir, FOLDER)

/** Returns the ids of the journals in the folder, oldest first as far as the disk tells; none if there is no folder. */
export async function journalsIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names
    .filter((name) => NAME.test(name))
    .map((name) => name.slice(0, -SUFFIX.length))
    .toSorted()
}

interface Parts {
  id: string
  folder: string
  file: FileHandle
  ownership: Ownership
  vault: JournalVault
  /** Bytes. */
  maximum: number
}

export class Journal {
  readonly id: string
  readonly #folder: string
  readonly #vault: JournalVault
  readonly #file: FileHandle
  readonly #ownership: Ownership
  readonly #maximum: number
  /** Bytes that are on the disk, with the number and the digest of their last line. */
  #end = { offset: 0, number: 0, digest: '' }
  /** The same of the last line that was read. */
  #read = { offset: 0, number: 0, digest: '' }
  /** Bytes that were read, and belong to no line yet. */
  #piece = Buffer.alloc(0)
  #isBroken = false

  private constructor({ id, folder, file, ownership, vault, maximum }: Parts) {
    this.id = id
    this.#folder = folder
    this.#file = file
    this.#ownership = ownership
    this.#vault = vault
    this.#maximum = maximum
  }

  /** Creates an empty one in the folder, which is made if need be. `id`: 32 hex digits that sort by time. */
  static async create(
    folder: string,
    id: string,
    vault: JournalVault,
    maximum = MAX_JOURNAL_BYTES,
  ): Promise<Journal> {
    let ownership: Ownership | undefined
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      ownership = takeOwnership(lockOf(folder, id))
      if (!ownership) throw new Error('another process has one of this name')
      const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL
      const file = await open(pathOf(folder, id), flags, 0o600)
      await syncDirectory(folder)
      await syncDirectory(dirname(folder))
      return new Journal({ id, folder, file, ownership, vault, maximum })
    } catch (error) {
      ownership?.remove()
      throw new JournalError(`the journal cannot be made: ${(error as Error).message}`)
    }
  }

  /** Opens one of an earlier process, to be read only. Returns undefined if its owner lives, or if it is gone. */
  static async open(folder: string, id: string, vault: JournalVault): Promise<Journal | undefined> {
    const ownership = takeOwnership(lockOf(folder, id))
    if (!ownership) return undefined
    let file: FileHandle
    try {
      file = await open(pathOf(folder, id), 'r')
    } catch (error) {
      ownership.remove()
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
    const journal = new Journal({ id, folder, file, ownership, vault, maximum: 0 })
    journal.#end.offset = (await file.stat()).size
    journal.#end.number = Number.POSITIVE_INFINITY
    return journal
  }

  /** Whether all that was written has been read. */
  get isRead(): boolean {
    return this.#read.number === this.#end.number
  }

  /**
   * Appends a group of events. Resolves when it is on the disk. One call at a time.
   * @throws JournalError if there is no room or the disk fails; the group is not in the journal then
   */
  async append(events: readonly AuditEvent[], doubt?: Doubt): Promise<void> {
    if (this.#isBroken) throw new JournalError('the journal is broken since a write failed')
    const number = this.#end.number + 1
    const line = this.#sealed(number, events, doubt)
    const reserve = events.every(isEnd) ? 0 : Math.min(ENDS_BYTES, this.#maximum / 4)
    if (this.#end.offset + line.length > this.#maximum - reserve) {
      throw new JournalError(`the journal is full: more than ${this.#maximum} bytes wait for the database`)
    }
    try {
      await writeAll(this.#file, line, this.#end.offset)
      await this.#file.datasync()
    } catch (error) {
      // Half a line would hide all that follow it.
      await this.#file.truncate(this.#end.offset).catch(() => {
        this.#isBroken = true
      })
      throw new JournalError(`the journal cannot be written: ${(error as Error).message}`)
    }
    this.#end = { offset: this.#end.offset + line.length, number, digest: digestOf(line) }
  }

  /**
   * Returns the next entry, or undefined at the end. A last line that is not whole is the end, too, in a journal of
   * an earlier process: its write had not come to its end, so nothing was done because of it.
   * @throws JournalError if the line is not the one that was written there; there is nothing to read after it
   */
  async next(): Promise<Entry | undefined> {
    if (this.isRead) return undefined
    for (;;) {
      const end = this.#piece.indexOf(0x0a)
      if (end >= 0) {
        const line = this.#piece.subarray(0, end + 1)
        const entry = this.#opened(line)
        this.#piece = this.#piece.subarray(end + 1)
        return entry
      }
      if (this.#piece.length > MAX_LINE_BYTES) throw this.#changed()
      const at = this.#read.offset + this.#piece.length
      const room = Math.min(PIECE_BYTES, this.#end.offset - at)
      const { bytesRead, buffer } = await this.#file.read(Buffer.alloc(room), 0, room, at)
      if (bytesRead === 0) {
        if (this.#end.number !== Number.POSITIVE_INFINITY) throw this.#changed()
        this.#end = { ...this.#read }
        return undefined
      }
      this.#piece = Buffer.concat([this.#piece, buffer.subarray(0, bytesRead)])
    }
  }

  /** Bytes after the last whole line. */
  get torn(): number {
    return this.#piece.length
  }

  /** Closes the file, and leaves the journal to other processes. */
  async close(): Promise<void> {
    await this.#file.close()
    this.#ownership.release()
  }

  /** Removes it: the audit log has all of it. */
  async remove(): Promise<void> {
    await this.#file.close()
    await rm(pathOf(this.#folder, this.id), { force: true })
    this.#ownership.remove()
    await syncDirectory(this.#folder)
  }

  /** Whether its file has been removed. */
  async isRemoved(): Promise<boolean> {
    return (await this.#file.stat()).nlink === 0
  }

  /** Keeps it under another name, which is returned, for people to look at. */
  async setAside(): Promise<string> {
    await this.#file.close()
    const name = `${this.id}${SUFFIX}${DAMAGED}`
    await rename(pathOf(this.#folder, this.id), join(this.#folder, name))
    this.#ownership.remove()
    await syncDirectory(this.#folder)
    return join(FOLDER, name)
  }

  #sealed(number: number, events: readonly AuditEvent[], doubt: Doubt | undefined): Buffer {
    const content = {
      events,
      ...(doubt && { doubt: { ...doubt, hash: Buffer.from(doubt.hash).toString('hex') } }),
    }
    const secret = Secret.of(JSON.stringify(content))
    const sealed = this.#vault.seal(this.#placeOf(number, this.#end.digest), secret)
    secret.wipe()
    return Buffer.from(`${Buffer.from(sealed).toString('base64')}\n`, 'latin1')
  }

  #opened(line: Buffer): Entry {
    const number = this.#read.number + 1
    try {
      const sealed = Buffer.from(line.subarray(0, -1).toString('latin1'), 'base64')
      const { events, doubt } = JSON.parse(
        this.#vault.open(this.#placeOf(number, this.#read.digest), sealed).revealText(),
      )
      this.#read = { offset: this.#read.offset + line.length, number, digest: digestOf(line) }
      return { number, events, ...(doubt && { doubt: { ...doubt, hash: Buffer.from(doubt.hash, 'hex') } }) }
    } catch {
      throw this.#changed()
    }
  }

  #placeOf(number: number, before: string) {
    return { table: 'journal', id: this.id, field: `${number} ${before}` }
  }

  #changed(): JournalError {
    return new JournalError(
      `line ${this.#read.number + 1} of the journal ${this.id} is not the one that was written there: it was changed or cut, or sealed by another vault`,
    )
  }
}

/** Events without which a session would be taken for one that was lost. */
const ENDS: ReadonlySet<string> = new Set([
  'session.close',
  'session.kill',
  'recording.sealed',
  'recording.failed',
  'database.back',
  'service.stop',
])

/** Whether the journal keeps room for the event. */
export const isEnd = ({ code }: AuditEvent): boolean => ENDS.has(code)

const digestOf = (line: Buffer) => createHash('sha256').update(line).digest('hex')

const pathOf = (folder: string, id: string) => join(folder, `${id}${SUFFIX}`)

const lockOf = (folder: string, id: string) => join(folder, `${id}${LOCK}`)

async function writeAll(file: FileHandle, bytes: Buffer, offset: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, offset + at)).bytesWritten
  }
}
