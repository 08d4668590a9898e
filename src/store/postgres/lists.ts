/**
 * Long lists: read as of one moment and as fast as the database sends them, then kept for the client
 * (engine/reading-spool.ts). However slow that is, it holds neither a connection nor a snapshot.
 */
import { deserialize, serialize } from 'node:v8'
import type pg from 'pg'
import { StoreBusyError } from '../engine/errors.ts'
import { NoRoomError, Room, Spool } from '../engine/reading-spool.ts'
import { storeErrorOf } from './errors.ts'

/** Limit of lists in progress. */
export const MAX_LISTS = 64
/** Milliseconds for each piece of a list that is no search. */
const PIECE_MS = 30_000

export interface List {
  text: string
  parameters: unknown[]
  /** Rows of a piece. */
  most: number
  /** Milliseconds for each piece. */
  limit: number | undefined
}

export class ListReader {
  readonly #path: string
  readonly #room: Room
  #open = 0

  /** `path`: a file in the folder for the spools. */
  constructor(path: string) {
    this.#path = path
    this.#room = new Room(path)
  }

  /**
   * Yields the rows in pieces. The first comes after all rows have been read: an error of the query is thrown
   * before any piece.
   * @throws StoreBusyError
   */
  async *rows(connect: () => Promise<pg.PoolClient>, list: List): AsyncGenerator<unknown[]> {
    if (MAX_LISTS <= this.#open) throw new StoreBusyError()
    this.#open++
    const spool = new Spool(this.#path, this.#room)
    try {
      await read(await connect(), list, spool)
      for (let piece = spool.next(); piece; piece = spool.next()) yield deserialize(piece) as unknown[]
    } finally {
      spool.close()
      this.#open--
    }
  }
}

async function read(
  client: pg.PoolClient,
  { text, parameters, most, limit }: List,
  spool: Spool,
): Promise<void> {
  let failure: unknown
  try {
    const timeout = `set local statement_timeout = ${limit ?? PIECE_MS}`
    await client.query(`begin isolation level repeatable read read only; ${timeout}`)
    await client.query(`declare list no scroll cursor for ${text}`, parameters)
    for (;;) {
      const { rows } = await client.query(`fetch ${most} from list`)
      if (rows.length > 0) spool.add(serialize(rows))
      if (rows.length < most) break
    }
    await client.query('rollback')
  } catch (error) {
    failure = error
  }
  // A connection in a transaction that failed is closed with it.
  client.release(failure !== undefined)
  if (failure instanceof NoRoomError) throw new StoreBusyError()
  if (failure !== undefined) throw storeErrorOf(failure, limit !== undefined)
}
