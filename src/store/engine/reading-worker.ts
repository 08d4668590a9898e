/**
 * The reading thread: long lists, some rows at a time, as of the beginning of their reading. A list is read
 * to its end as fast as the disk allows, and waits in a spool for its client: while the database is read, its
 * write-ahead log cannot restart, and that must not depend on a client. For the same reason lists are read
 * one after the other, and the log is written back in between: overlapping lists would hold the log without
 * end.
 */
import { statSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { setImmediate as aside } from 'node:timers/promises'
import { deserialize, serialize } from 'node:v8'
import { parentPort, workerData } from 'node:worker_threads'
import { SearchError } from '../../search/grammar.ts'
import { Patterns } from './patterns.ts'
import type { ReadingAnswer, ReadingCall, ReadingData, SearchFlaw } from './reading-messages.ts'
import { NoRoomError, Room, Spool } from './reading-spool.ts'

/** Time that a statement waits for another process. */
const BUSY_TIMEOUT_MS = 5000
/** Characters from which on a piece is large enough. */
const ENOUGH = 128 * 1024
/** Bytes of the log from which on it is written back. */
const LONG_LOG = 4 * 1024 * 1024

interface Cursor {
  call: Extract<ReadingCall, { type: 'open' }>
  spool: Spool
  /** Set when all rows are in the spool, or reading has failed with `failure`. */
  isRead: boolean
  failure?: Extract<ReadingAnswer, { failure: string }>
  /** Set while the next rows are requested. */
  isWanted: boolean
}

const { path } = workerData as ReadingData
const room = new Room(path)
const cursors = new Map<number, Cursor>()
/** Cursors that are not read yet. */
const queue: Cursor[] = []
let isReading = false
let isEnded = false

parentPort?.on('message', (call: ReadingCall) => {
  if (call.type === 'end') {
    isEnded = true
    for (const cursor of cursors.keys()) close(cursor)
    parentPort?.close()
  } else if (call.type === 'close') close(call.cursor)
  else if (call.type === 'open') {
    const cursor: Cursor = { call, spool: new Spool(path, room), isRead: false, isWanted: false }
    cursors.set(call.cursor, cursor)
    queue.push(cursor)
    if (!isReading) void readAll()
  } else {
    const cursor = cursors.get(call.cursor)
    if (!cursor) return
    cursor.isWanted = true
    if (cursor.isRead) answer(cursor)
  }
})

async function readAll(): Promise<void> {
  isReading = true
  for (let cursor = queue.shift(); cursor && !isEnded; cursor = queue.shift()) {
    if (!isOpen(cursor)) continue
    try {
      await read(cursor)
    } catch (error) {
      cursor.failure = {
        cursor: cursor.call.cursor,
        failure: error instanceof Error ? error.message : String(error),
        isBusy: error instanceof NoRoomError,
        ...(error instanceof SearchError && { search: flawOf(error) }),
      }
    }
    cursor.isRead = true
    if (cursor.isWanted && isOpen(cursor)) answer(cursor)
  }
  isReading = false
}

const flawOf = ({ fault, position, expected, found }: SearchError): SearchFlaw => ({
  fault,
  position,
  expected,
  found,
})

/** Reads all rows into the spool, and sends pieces of other lists meanwhile. @throws NoRoomError */
async function read(cursor: Cursor): Promise<void> {
  const { sql, parameters, rows: most } = cursor.call
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
  try {
    // The connection may write the log back, but nothing else.
    database.exec('pragma query_only = on')
    // Registers the functions that searches use.
    new Patterns(database).beginStatement()
    const from = database.prepare(sql).iterate(...(parameters as SQLInputValue[]))
    for (;;) {
      const { rows, isLast } = some(from, most)
      if (rows.length > 0) cursor.spool.add(serialize(rows))
      if (isLast) break
      await aside()
      if (isOpen(cursor)) continue
      from.return?.()
      break
    }
    if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) >= LONG_LOG)
      database.exec('pragma wal_checkpoint(passive)')
  } finally {
    database.close()
  }
}

function some(from: Iterator<Record<string, unknown>>, most: number): { rows: unknown[]; isLast: boolean } {
  const rows: unknown[] = []
  for (let size = 0; rows.length < most && size < ENOUGH; ) {
    const { value, done } = from.next()
    if (done) return { rows, isLast: true }
    rows.push(value)
    for (const cell of Object.values(value as object)) if (typeof cell === 'string') size += cell.length
  }
  return { rows, isLast: false }
}

/** Sends the next rows of a list that was read. */
function answer(cursor: Cursor): void {
  const id = cursor.call.cursor
  cursor.isWanted = false
  let message: ReadingAnswer
  try {
    const piece = cursor.failure ? undefined : cursor.spool.next()
    message = cursor.failure ?? {
      cursor: id,
      rows: piece ? (deserialize(piece) as unknown[]) : [],
      isLast: piece === undefined,
    }
  } catch (error) {
    message = { cursor: id, failure: error instanceof Error ? error.message : String(error), isBusy: false }
  }
  if ('failure' in message || message.isLast) close(id)
  parentPort?.postMessage(message)
}

const isOpen = (cursor: Cursor) => cursors.get(cursor.call.cursor) === cursor

function close(cursor: number): void {
  const one = cursors.get(cursor)
  cursors.delete(cursor)
  one?.spool.close()
}
