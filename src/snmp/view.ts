/** The objects that the agent has at one moment, in the order of a walk. */
import type { Buffer } from 'node:buffer'
import { der, sequence, TAG } from '../../proxies/bytes/der.ts'
import { compareOids, isBelow, type Oid, oidBytes } from './oid.ts'
import { END_OF_MIB_VIEW, NO_SUCH_INSTANCE, NO_SUCH_OBJECT } from './value.ts'

/** An object with its instances: `[0]` for a scalar, the index of each row for a column. */
export interface ManagedObject {
  name: Oid
  /** Instance and value in BER. */
  instances: readonly (readonly [instance: Oid, value: Buffer])[]
}

/** A name with its value, and both as a VarBind. */
export interface Binding {
  name: Oid
  bytes: Buffer
  isEnd: boolean
}

export class View {
  readonly #objects: readonly Oid[]
  readonly #bindings: readonly Binding[]

  constructor(objects: readonly ManagedObject[]) {
    this.#objects = objects.map(({ name }) => name)
    this.#bindings = objects
      .flatMap(({ name, instances }) =>
        instances.map(([instance, value]) => bind([...name, ...instance], value)),
      )
      .sort((a, b) => compareOids(a.name, b.name))
  }

  /** Returns the instance of this name, or the exception that stands in for it (RFC 3416 4.2.1). */
  get(name: Oid): Binding {
    const found = this.#bindings[this.#firstAtOrBehind(name)]
    if (found && compareOids(found.name, name) === 0) return found
    const isObject = this.#objects.some((object) => isBelow(name, object))
    return bind(name, isObject ? NO_SUCH_INSTANCE : NO_SUCH_OBJECT)
  }

  /** Returns the first instance behind this name, or the end of the view (RFC 3416 4.2.2). */
  next(name: Oid): Binding {
    const at = this.#firstAtOrBehind(name)
    const found = this.#bindings[at]
    const next = found && compareOids(found.name, name) === 0 ? this.#bindings[at + 1] : found
    return next ?? { ...bind(name, END_OF_MIB_VIEW), isEnd: true }
  }

  #firstAtOrBehind(name: Oid): number {
    let low = 0
    let high = this.#bindings.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (compareOids(this.#bindings[middle]!.name, name) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

function bind(name: Oid, value: Buffer): Binding {
  return { name, bytes: sequence(der(TAG.OID, oidBytes(name)), value), isEnd: false }
}
