/** Errors of the store that the layers above tell apart; everything else is a fault of the database itself. */

/** How many users of an object an `InUseError` names at most. */
export const MAX_USERS_NAMED = 20

export class StoreError extends Error {
  override readonly name: string = 'StoreError'
}

/** A unique name, or the pair of an authorization, is taken. */
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

/** The object is still referred to. */
export class InUseError extends StoreError {
  override readonly name = 'InUseError'
  readonly objectType: string
  readonly objectName: string
  /** What refers to it, by type and name, `MAX_USERS_NAMED` at most. */
  readonly users: readonly string[]

  constructor(objectType: string, objectName: string, users: readonly string[]) {
    super(`${objectType} "${objectName}" is in use by ${users.join(', ')}: remove it there first`)
    this.objectType = objectType
    this.objectName = objectName
    this.users = users
  }
}

/** An id does not exist: that of the object itself (`field` is `id`), or one that it refers to. */
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

/** The object is not what it was when it was read: somebody else was quicker. */
export class ChangedError extends StoreError {
  override readonly name = 'ChangedError'

  constructor(objectType: string) {
    super(`the ${objectType} was changed meanwhile: read it again`)
  }
}

/** Nobody would be left who may do everything. */
export class LastAdministratorError extends StoreError {
  override readonly name = 'LastAdministratorError'

  constructor() {
    super('this is the last product_administrator who can sign in: make another one first')
  }
}

/** What is there from the first start stays as it is, in this respect. */
export class FactoryError extends StoreError {
  override readonly name = 'FactoryError'

  constructor(objectType: string, objectName: string, what: string) {
    super(`the ${objectType} "${objectName}" is from the factory: it cannot be ${what}`)
  }
}

/** `sort` names something that this collection is not sorted by. */
export class SortError extends StoreError {
  override readonly name = 'SortError'
  readonly key: string

  constructor(key: string, known: readonly string[]) {
    super(`cannot sort by "${key}": expected one of ${known.join(', ')}`)
    this.key = key
  }
}

/** As many long lists are read at this moment as may be, or as there is room for: to be tried again. */
export class StoreBusyError extends StoreError {
  override readonly name = 'StoreBusyError'

  constructor() {
    super('too many lists are read at this moment: try again')
  }
}

/** The database was written by a newer program, or is not one of ours. */
export class SchemaError extends StoreError {
  override readonly name = 'SchemaError'
}

const UNIQUE_CODES: readonly unknown[] = [2067, 1555] // SQLITE_CONSTRAINT_UNIQUE, SQLITE_CONSTRAINT_PRIMARYKEY

/** True for SQLite's refusal of a second row under a unique key (sqlite.org/rescode.html). */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && UNIQUE_CODES.includes(error.errcode)
}
