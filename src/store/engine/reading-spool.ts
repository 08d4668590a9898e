/**
 * Holds the rows of one list for a slow client, so that the database does not have to: the first in memory,
 * the rest in a file beside the database that has no name. The file is gone when it is closed, or when the
 * process ends, and its content is sealed by a key that only this object holds: rows have hashes and sealed
 * credentials, and the blocks of a deleted file are not overwritten.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { closeSync, openSync, readSync, statfsSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Limit of a list's bytes in memory, before one more piece; a shorter list needs no file. */
export const MAX_KEPT = 256 * 1024
/** Limit of the bytes in the files of all lists, and their part of the volume's free space. */
const MAX_SPOOLED = 8 * 1024 ** 3
const PART_OF_FREE = 1 / 8

const CIPHER = 'aes-256-gcm'
const KEY_LENGTH = 32
const NONCE_LENGTH = 12
const TAG_LENGTH = 16

/** There is no room for more of a list at this moment. */
export class NoRoomError extends Error {
  override readonly name = 'NoRoomError'
}

/** The room that all lists share on the volume of a file. */
export class Room {
  readonly #folder: string
  #used = 0

  constructor(path: string) {
    this.#folder = dirname(path)
  }

  /** Number of used bytes. */
  get used(): number {
    return this.#used
  }

  /** @throws NoRoomError */
  take(bytes: number): void {
    const { bavail, bsize } = statfsSync(this.#folder)
    const used = this.#used + bytes
    if (used > MAX_SPOOLED || used > (bavail * bsize + this.#used) * PART_OF_FREE)
      throw new NoRoomError('no room on the volume of the database for the rows of a list')
    this.#used = used
  }

  give(bytes: number): void {
    this.#used -= bytes
  }
}

/** Pieces, read once and in the order in which they were added. */
export class Spool {
  readonly #path: string
  readonly #room: Room
  readonly #key = randomBytes(KEY_LENGTH)
  readonly #kept: Buffer[] = []
  #keptBytes = 0
  #file: number | undefined
  /** Lengths of the pieces in the file. */
  readonly #lengths: number[] = []
  #written = 0
  #nextRead = 0
  #read = 0

  /** `path`: a file in the folder for the spool's own file. */
  constructor(path: string, room: Room) {
    this.#path = path
    this.#room = room
  }

  /** @throws NoRoomError */
  add(piece: Buffer): void {
    if (this.#file === undefined && this.#keptBytes < MAX_KEPT) {
      this.#kept.push(piece)
      this.#keptBytes += piece.length
      return
    }
    const cipher = createCipheriv(CIPHER, this.#key, nonceOf(this.#lengths.length))
    const sealed = Buffer.concat([cipher.update(piece), cipher.final(), cipher.getAuthTag()])
    this.#room.take(sealed.length)
    const at = this.#written
    this.#written += sealed.length
    this.#lengths.push(sealed.length)
    this.#file ??= nameless(this.#path)
    try {
      for (let done = 0; done < sealed.length; )
        done += writeSync(this.#file, sealed, done, sealed.length - done, at + done)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') throw new NoRoomError('the volume is full')
      throw error
    }
  }

  /**
   * Returns the next piece, or undefined if there are no more. @throws Error if the file does not hold the
   * written bytes
   */
  next(): Buffer | undefined {
    const kept = this.#kept.shift()
    if (kept) return kept
    const length = this.#lengths[this.#nextRead]
    if (length === undefined || this.#file === undefined) return undefined
    const sealed = Buffer.allocUnsafe(length)
    for (let done = 0; done < length; ) {
      const count = readSync(this.#file, sealed, done, length - done, this.#read + done)
      if (count === 0) throw new Error('the file of a list is shorter than what was written to it')
      done += count
    }
    const decipher = createDecipheriv(CIPHER, this.#key, nonceOf(this.#nextRead), {
      authTagLength: TAG_LENGTH,
    })
    decipher.setAuthTag(sealed.subarray(length - TAG_LENGTH))
    const piece = Buffer.concat([decipher.update(sealed.subarray(0, length - TAG_LENGTH)), decipher.final()])
    this.#read += length
    this.#nextRead++
    return piece
  }

  /** Closes the file. May be called again. */
  close(): void {
    this.#kept.length = 0
    this.#lengths.length = 0
    this.#key.fill(0)
    this.#room.give(this.#written)
    this.#written = 0
    if (this.#file === undefined) return
    const file = this.#file
    this.#file = undefined
    closeSync(file)
  }
}

/** Opens a file and removes its name. */
function nameless(beside: string): number {
  const path = `${beside}-list-${randomBytes(8).toString('hex')}`
  const file = openSync(path, 'wx+', 0o600)
  try {
    unlinkSync(path)
  } catch (error) {
    closeSync(file)
    throw error
  }
  return file
}

/** Returns the piece's nonce. Each key seals each number once. */
function nonceOf(piece: number): Buffer {
  const nonce = Buffer.alloc(NONCE_LENGTH)
  nonce.writeUInt32BE(piece, NONCE_LENGTH - 4)
  return nonce
}
