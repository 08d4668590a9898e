/** Errors of the store that callers distinguish; any other error is a fault of the database itself. */

/** Limit of the users of an object that an `InUseError` names. */
export const MAX_USERS_NAMED = 20

export class StoreError extends Error {
  override readonly name: string = 'StoreError'
}

/** A unique name, or the pair of an authorization, exists already. */
export class DuplicateError extends StoreError {
  override readonly name = 'DuplicateError'
  readonly objectType: string
  readonly objectName: string

  constructor(objectType: string, objectName: string) {
    super(`${objectType} "${objectName}" already exists`)
    this.objectType = objectType
    this.objectName = objectName
  }
}

/** There are as many objects of the kind as may be. */
export class TooManyError extends StoreError {
  override readonly name = 'TooManyError'
  readonly objectType: string

  constructor(objectType: string) {
    super(`there are as many of the type ${objectType} as may be: remove one first`)
    this.objectType = objectType
  }
}

/** Other objects still refer to the object. */
export class InUseError extends StoreError {
  override readonly name = 'InUseError'
  readonly objectType: string
  readonly objectName: string
  /** Objects that refer to it, by type and name, at most `MAX_USERS_NAMED`. */
  readonly users: readonly string[]

  constructor(objectType: string, objectName: string, users: readonly string[]) {
    super(`${objectType} "${objectName}" is in use by ${users.join(', ')}: remove it there first`)
    this.objectType = objectType
    this.objectName = objectName
    this.users = users
  }
}

/** An id does not exist: the object's own (`field` is `id`), or one that it refers to. */
export class MissingReferenceError extends StoreError {
  override readonly name = 'MissingReferenceError'
  readonly objectType: string
  readonly field: string
  readonly id: string

  constructor(objectType: string, field: string, id: string) {
    super(`${objectType} refers to "${id}" in ${field}, which does not exist`)
    this.objectType = objectType
    this.field = field
    this.id = id
  }
}

/** The object has changed since it was read. */
export class ChangedError extends StoreError {
  override readonly name = 'ChangedError'

  constructor(objectType: string) {
    super(`the ${objectType} was changed meanwhile: read it again`)
  }
}

/** No user with all rights would be left. */
export class LastAdministratorError extends StoreError {
  override readonly name = 'LastAdministratorError'

  constructor() {
    super('this is the last product_administrator who can sign in: make another one first')
  }
}

/** A factory object cannot be changed in this respect. */
export class FactoryError extends StoreError {
  override readonly name = 'FactoryError'

  constructor(objectType: string, objectName: string, what: string) {
    super(`the ${objectType} "${objectName}" is from the factory: it cannot be ${what}`)
  }
}

/** `sort` names a key that this collection is not sorted by. */
export class SortError extends StoreError {
  override readonly name = 'SortError'
  readonly key: string

  constructor(key: string, known: readonly string[]) {
    super(`cannot sort by "${key}": expected one of ${known.join(', ')}`)
    this.key = key
  }
}

/** The limit of long lists read at a time, or of their disk space, is reached: try again later. */
export class StoreBusyError extends StoreError {
  override readonly name = 'StoreBusyError'

  constructor() {
    super('too many lists are read at this moment: try again')
  }
}

/** The database was written by a newer program, or is not one of Sallyport's. */
export class SchemaError extends StoreError {
  override readonly name = 'SchemaError'
}

/** Others changed, at the same moment, what this transaction has read or written. */
export class ConflictError extends StoreError {
  override readonly name = 'ConflictError'

  constructor(reason: string) {
    super(`others change the same objects at this moment: try again (${reason})`)
  }
}

/** The database does not answer, or not in time, or takes no writes. */
export class StoreUnavailableError extends StoreError {
  override readonly name = 'StoreUnavailableError'
  /** Whether it has no room on its disk: it answers, and stores nothing more. */
  readonly isFull: boolean
  /** Whether its data are used elsewhere, or are no whole store: it stays so. */
  readonly isElsewhere: boolean

  constructor(reason: string, { isFull = false, isElsewhere = false } = {}) {
    super(`the database cannot be used: ${reason}`)
    this.isFull = isFull
    this.isElsewhere = isElsewhere
  }
}

/** The answer to a commit was lost, and no server can tell whether it was done. */
export class UnknownOutcomeError extends StoreError {
  override readonly name = 'UnknownOutcomeError'
}

/** Another broker works on the database. */
export class StoreClaimedError extends StoreError {
  override readonly name = 'StoreClaimedError'

  constructor(place: string, holder: string) {
    super(
      `${place} is in use by another broker (connected from ${holder}): one broker works on a database at a time; ` +
        'stop that one first',
    )
  }
}

/** A second row under a unique key, where the engine's own error has more than callers may see. */
export class UniqueViolationError extends StoreError {
  override readonly name = 'UniqueViolationError'

  constructor() {
    super('there is such a row already')
  }
}

const UNIQUE_CODES: readonly unknown[] = [2067, 1555] // SQLITE_CONSTRAINT_UNIQUE, SQLITE_CONSTRAINT_PRIMARYKEY

/** Returns true for an error about a second row under a unique key: SQLite's own (sqlite.org/rescode.html), or ours. */
export function isUniqueViolation(error: unknown): boolean {
  if (error instanceof UniqueViolationError) return true
  return error instanceof Error && 'errcode' in error && UNIQUE_CODES.includes(error.errcode)
}

/** Returns true for an error about a full disk of the database, or one that it has caused. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof StoreUnavailableError) return error.isFull
  // SQLITE_FULL.
  return ('errcode' in error && (Number(error.errcode) & 0xff) === 13) || isDiskFull(error.cause)
}

/** Returns true for SQLite's error about a lock of another process. */
export function isLocked(error: unknown): boolean {
  // SQLITE_BUSY; its extended codes have it in their lowest byte.
  return error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === 5
}
