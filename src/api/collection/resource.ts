/** Description of a resource, from which the routes of its collection and its table are made. */
import type { Static, TObject } from 'typebox'
import type { EventCode } from '../../audit/events/catalogue.ts'
import type { EventFields } from '../../audit/events/fields.ts'
import type { Id } from '../../model/objects.ts'
import type { Listed, Page } from '../../store/store.ts'
import type { ApiRequest } from '../access/caller.ts'
import type { Params } from './paths.ts'
import type { Names } from './references.ts'

/** A change that has been checked and can be made. */
export interface Plan<T> {
  (): Promise<T>
  /** Events that precede the change, besides the object's own event. */
  events?: readonly PlannedEvent[]
  /** Name of the object in events, if the body does not contain all of it. */
  label?: string
}
export interface PlannedEvent {
  code: EventCode
  fields: EventFields
}

/** Makes a plan with events of its own. */
export function announced<T>(events: readonly PlannedEvent[], plan: () => Promise<T>): Plan<T> {
  return Object.assign(plan, { events })
}

/** Base of a collection's objects; `secretRevision` counts changes of secrets, which are not shown. */
export interface Item {
  id: Id
  secretRevision?: number
}

export interface Resource<T extends Item, C extends TObject, U extends TObject, V extends TObject> {
  /** In Fastify's notation: `/devices/:device/services`. */
  path: string
  /** Path of the objects' canonical URL, if it differs from `path`. */
  home?: string
  /** Ids of the objects above, so that the URL stays the same when they are renamed. */
  parents?(object: T): Params
  /** The event's `object_type`. */
  type: string
  /** Headline in the reference. */
  title: string
  /** Purpose of the collection, and anything that its fields do not explain. */
  description: string
  create: { schema: C; plan(body: Static<C>, request: ApiRequest): Promise<Plan<T>> }
  update: { schema: U; plan(old: T, body: Static<U>, request: ApiRequest): Promise<Plan<T>> }
  /** Checks beyond the store's own, if any. Returns further events for the audit. */
  remove?: { check(old: T, request: ApiRequest): Promise<readonly PlannedEvent[]> }
  removeFrom(old: T): Promise<void>
  view: V
  show(object: T, names: Names): Promise<Omit<Static<V>, 'id' | 'url'>>
  /** Name of a new object in events. */
  label(object: Readonly<Record<string, unknown>>): string
  /** Write-only fields. */
  secrets: readonly string[]
  /** Fields shown only in the answer that creates the object. */
  once?: readonly string[]
  list(request: ApiRequest, page: Page): Promise<Listed<T>>
  find(request: ApiRequest, ref: string): Promise<T | undefined>
}

/** Omits creation and change for objects that are not created or changed by the API. */
export type ResourceOfCollection<
  T extends Item,
  C extends TObject,
  U extends TObject,
  V extends TObject,
> = Omit<Resource<T, C, U, V>, 'create' | 'update'> & Partial<Pick<Resource<T, C, U, V>, 'create' | 'update'>>

/** Returns the resource with its types inferred from the description. */
export function resource<T extends Item, C extends TObject, U extends TObject, V extends TObject>(
  description: Resource<T, C, U, V>,
): Resource<T, C, U, V> {
  return description
}
