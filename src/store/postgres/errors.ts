/**
 * The meaning of PostgreSQL's errors (appendix A of its manual). What callers cannot act on becomes an error
 * without the server's details: they quote rows, and rows have secrets.
 */
import { SearchError } from '../../search/grammar.ts'
import { ConflictError, StoreError, StoreUnavailableError, UniqueViolationError } from '../engine/errors.ts'

const UNIQUE = '23505'
/**
 * Others changed what this transaction has read or written. A foreign key (23503) is one of them: repositories
 * look for what they refer to, and see it gone when they look again.
 */
const CONFLICTS: readonly string[] = ['40001', '40P01', '23503']
const CANCELLED = '57014'
const READ_ONLY = '25006'
const FULL = '53100'
const NO_RIGHT = '42501'
/** Connection exceptions, too many connections, shutdown, crash, start, and the time-outs of idle ones. */
const UNAVAILABLE = /^(08...|53300|57P0[1-5]|25P03)$/

/** Returns what a caller of the store gets for an error of `pg`. */
export function storeErrorOf(error: unknown, isSearch = false): Error {
  if (error instanceof StoreError || error instanceof SearchError) return error
  // A fault of this program.
  if (error instanceof TypeError || error instanceof ReferenceError) return error
  const { code, message } = error as Error & { code?: unknown }
  const words = `${message}${typeof code === 'string' ? ` (${code})` : ''}`
  if (code === UNIQUE) return new UniqueViolationError()
  if (typeof code === 'string' && CONFLICTS.includes(code)) return new ConflictError(words)
  if (code === CANCELLED && isSearch)
    return new SearchError('value', 0, 'a narrower search', '"~" on more text than can be looked at in time')
  if (code === READ_ONLY)
    return new StoreUnavailableError('it takes no writes: it is a standby, or was made read-only')
  if (code === FULL) return new StoreUnavailableError(`its disk is full: ${words}`, { isFull: true })
  if (code === NO_RIGHT)
    return new StoreUnavailableError(`its user lacks a right: ${message}; the user has to own the database`)
  // Errors of sockets, and of `pg` itself, have no SQLSTATE.
  if (typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code) || UNAVAILABLE.test(code))
    return new StoreUnavailableError(words)
  if (code === CANCELLED) return new StoreUnavailableError(`a statement took too long: ${words}`)
  return new StoreError(`the database refused a statement: ${words}`)
}

/** Whether the connection must not be used again. */
export function isBroken(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code) || UNAVAILABLE.test(code)
}
