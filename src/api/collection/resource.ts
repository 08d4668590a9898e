/** The description of a resource, from which the routes of its collection and its table are made. */
import type { Static, TObject } from 'typebox'
import type { EventCode } from '../../audit/events/catalogue.ts'
import type { EventFields } from '../../audit/events/fields.ts'
import type { Id } from '../../model/objects.ts'
import type { Listed, Page } from '../../store/store.ts'
import type { ApiRequest } from '../access/caller.ts'
import type { Params } from './paths.ts'
import type { Names } from './references.ts'

/** A change that was found to be possible. */
export interface Plan<T> {
  (): Promise<T>
  /** What else has to stand in the audit before it is made, beside the object's own event. */
  events?: readonly PlannedEvent[]
  /** How the events call the object, where its body does not say it whole. */
  label?: string
}
export interface PlannedEvent {
  code: EventCode
  fields: EventFields
}

/** The plan with events of its own. */
export function announced<T>(events: readonly PlannedEvent[], plan: () => Promise<T>): Plan<T> {
  return Object.assign(plan, { events })
}

/** What a collection holds; `secretRevision` counts changes that are not shown. */
export interface Item {
  id: Id
  secretRevision?: number
}

export interface Resource<T extends Item, C extends TObject, U extends TObject, V extends TObject> {
  /** As Fastify writes it: `/devices/:device/services`. */
  path: string
  /** Where its objects have their one URL, when that is another path than this. */
  home?: string
  /** Ids of what an object stands below: so that its URL stays when that is called otherwise. */
  parents?(object: T): Params
  /** The event's `object_type`. */
  type: string
  /** Headline in the reference. */
  title: string
  /** What the collection is for, and anything that its fields do not say. */
  description: string
  create: { schema: C; plan(body: Static<C>, request: ApiRequest): Promise<Plan<T>> }
  update: { schema: U; plan(old: T, body: Static<U>, request: ApiRequest): Promise<Plan<T>> }
  /** Checks that go beyond the store's own; absent: none. Answers what else stands in the audit for it. */
  remove?: { check(old: T, request: ApiRequest): Promise<readonly PlannedEvent[]> }
  removeFrom(old: T): Promise<void>
  view: V
  show(object: T, names: Names): Promise<Omit<Static<V>, 'id' | 'url'>>
  /** Of an object that is about to be created: how events call it. */
  label(object: Readonly<Record<string, unknown>>): string
  /** Fields that go in and never come out. */
  secrets: readonly string[]
  /** Fields that are shown in the answer that made the object, and never again. */
  once?: readonly string[]
  list(request: ApiRequest, page: Page): Promise<Listed<T>>
  find(request: ApiRequest, ref: string): Promise<T | undefined>
}

/** One whose objects come to be by other ways than the API need not say how they are created. */
export type ResourceOfCollection<
  T extends Item,
  C extends TObject,
  U extends TObject,
  V extends TObject,
> = Omit<Resource<T, C, U, V>, 'create'> & Partial<Pick<Resource<T, C, U, V>, 'create'>>

/** A resource, its types taken from what describes it. */
export function resource<T extends Item, C extends TObject, U extends TObject, V extends TObject>(
  description: Resource<T, C, U, V>,
): Resource<T, C, U, V> {
  return description
}
