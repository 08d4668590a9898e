/**
 * The reading thread: long lists, some rows at a time, as they were when their reading began. Each has a connection of
 * its own, for a transaction that is read in by several would show all of them what the first one saw.
 */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { Patterns } from '../patterns.ts'
import type { ReadingAnswer, ReadingCall, ReadingData } from './messages.ts'

/** How long a statement waits for another process. */
const BUSY_TIMEOUT_MS = 5000
/** Characters after which an answer has enough rows. */
const ENOUGH = 128 * 1024

interface Cursor {
  database: DatabaseSync
  rows: Iterator<Record<string, unknown>>
}

const { path } = workerData as ReadingData
const cursors = new Map<number, Cursor>()

parentPort?.on('message', (call: ReadingCall) => {
  if (call.type === 'end') {
    for (const cursor of cursors.keys()) close(cursor)
    parentPort?.close()
  } else if (call.type === 'close') close(call.cursor)
  else {
    try {
      if (call.type === 'open') cursors.set(call.cursor, opened(call))
      else answer(read(call))
    } catch (error) {
      close(call.cursor)
      answer({ cursor: call.cursor, failure: error instanceof Error ? error.message : String(error) })
    }
  }
})

function opened({ sql, parameters }: Extract<ReadingCall, { type: 'open' }>): Cursor {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS })
  try {
    // sets the functions that searches ask by
    new Patterns(database).beginStatement()
    return { database, rows: database.prepare(sql).iterate(...(parameters as SQLInputValue[])) }
  } catch (error) {
    database.close()
    throw error
  }
}

function read({ cursor, rows: most }: Extract<ReadingCall, { type: 'read' }>): ReadingAnswer {
  const from = cursors.get(cursor)?.rows
  const rows: unknown[] = []
  for (let size = 0; from && rows.length < most && size < ENOUGH; ) {
    const { value, done } = from.next()
    if (done) {
      close(cursor)
      return { cursor, rows, isLast: true }
    }
    rows.push(value)
    for (const cell of Object.values(value as object)) if (typeof cell === 'string') size += cell.length
  }
  return { cursor, rows, isLast: !from }
}

function close(cursor: number): void {
  const one = cursors.get(cursor)
  cursors.delete(cursor)
  one?.rows.return?.()
  one?.database.close()
}

function answer(message: ReadingAnswer): void {
  parentPort?.postMessage(message)
}
