/**
 * Folds repeated refusals into one event with a count, so that failed sign-ins can fill neither the audit log
 * nor its queue. The first of a kind is logged at once; further ones (the same but for the client's port) are
 * counted, and logged when their window expires: 10 s, growing to 60 while they continue. Varied refusals are
 * counted together per session, or per network, once their allowance of single events is used up: this costs
 * sessions nothing, and other networks little.
 */
import { neighbourhoodOf, networkOf } from '../model/networks.ts'
import { Allowances } from './allowances.ts'
import type { AuditEvent, EventCode } from './events/catalogue.ts'
import type { EventFields } from './events/fields.ts'
import { type After, systemAfter } from './sink.ts'

const REFUSALS: ReadonlySet<EventCode> = new Set([
  'auth.failure',
  'auth.unavailable',
  'session.denied',
  'channel.denied',
  'file.denied',
  'file.failed',
  'ticket.denied',
  'checkout.denied',
])
const FIRST_WINDOW_MS = 10_000
const MAX_WINDOW_MS = 60_000
const SWEEP_MS = 1000
/** Number of refusals of a kind that are logged one by one. */
const ONE_BY_ONE = 10
/**
 * Kinds that are counted separately: of one session or one neighbourhood of networks, and of all sessions or
 * all networks. Without room for a kind its refusals are logged one by one, within the rates below.
 */
const KINDS = { each: 50, all: 300 }
/**
 * Sessions, or networks, that are counted together. Beyond this limit their neighbourhoods are, then all of
 * the same code.
 */
const GROUPS = { each: 5, all: 100 }
const WITHOUT_BOUNDS = { each: Number.POSITIVE_INFINITY, all: Number.POSITIVE_INFINITY }
/**
 * Rates of refusals logged one by one: of each code in a session, of a network, of its neighbourhood, of all
 * networks.
 */
const OF_SESSION = { burst: 100, perSecond: 2 }
const OF_NETWORK = { burst: 60, perSecond: 1 / 10 }
const OF_NEIGHBOURHOOD = { burst: 120, perSecond: 1 / 6 }
const OF_ALL_NETWORKS = { burst: 600, perSecond: 1 }

interface Counted {
  code: EventCode
  /** The session or neighbourhood whose room it uses. */
  owner: string
  /** The common fields of a group's refusals. */
  fields: EventFields
  /** Reason for a group of several kinds, logged if they differ. */
  group?: string
  /** Set if fields are left out because they differ. */
  differ: boolean
  count: number
  /** Number of further refusals that are logged one by one. */
  left: number
  /** Milliseconds since the epoch. */
  first: number
  last: number
  window: number
  /** End of the window, on the monotonic clock. */
  until: number
}

const TOO_MANY = 'several, too many to be told one by one'
const FROM_SEVERAL = 'several, from several networks or sessions'

/** Counted refusals within limits: `each` of one owner, `all` together. */
class Table {
  readonly counted = new Map<string, Counted>()
  readonly #bounds: { each: number; all: number }
  readonly #owned = new Map<string, number>()

  constructor(bounds: { each: number; all: number }) {
    this.#bounds = bounds
  }

  hasRoom(owner: string): boolean {
    return this.counted.size < this.#bounds.all && (this.#owned.get(owner) ?? 0) < this.#bounds.each
  }

  add(name: string, counted: Counted): Counted {
    this.counted.set(name, counted)
    this.#owned.set(counted.owner, (this.#owned.get(counted.owner) ?? 0) + 1)
    return counted
  }

  remove(name: string, { owner }: Counted): void {
    this.counted.delete(name)
    const left = (this.#owned.get(owner) ?? 0) - 1
    if (left > 0) this.#owned.set(owner, left)
    else this.#owned.delete(owner)
  }

  clear(): void {
    this.counted.clear()
    this.#owned.clear()
  }
}

/** Sessions have tables of their own, which only refusals within them can fill. */
class Side {
  readonly kinds = new Table(KINDS)
  readonly groups = new Table(GROUPS)
  /** At most one entry for each code. */
  readonly rest = new Table(WITHOUT_BOUNDS)
}

export interface RefusalsOptions {
  /** Milliseconds since the epoch. */
  now: () => number
  /** Milliseconds since any moment, never decreasing. */
  monotonic: () => number
  after?: After
}

export class Refusals {
  readonly #now: () => number
  readonly #monotonic: () => number
  readonly #after: After
  readonly #sessions = new Side()
  readonly #networks = new Side()
  readonly #ofSession = new Allowances(OF_SESSION)
  readonly #ofNetwork = new Allowances(OF_NETWORK)
  readonly #ofNeighbourhood = new Allowances(OF_NEIGHBOURHOOD)
  readonly #ofAllNetworks = new Allowances(OF_ALL_NETWORKS)
  #sweeping = false
  /** Receives a counted event when it is due. */
  tell: (event: AuditEvent) => void = () => undefined

  constructor({ now, monotonic, after = systemAfter }: RefusalsOptions) {
    this.#now = now
    this.#monotonic = monotonic
    this.#after = after
  }

  /** Returns whether events of this kind are refusals. */
  isRefusal(code: EventCode): boolean {
    return REFUSALS.has(code)
  }

  /** Returns true if the refusal is counted and logged later, false if it is to be logged now. */
  takes(event: AuditEvent): boolean {
    const { code, fields } = event
    if (!REFUSALS.has(code)) return false
    const { kinds } = this.#sideOf(fields)
    const kind = kindOf(event)
    const known = kinds.counted.get(kind)
    if (known) {
      if (known.left > 0 && this.#allows(event)) {
        known.left--
        return false
      }
      known.left = 0
      add(known, event)
      return true
    }
    if (!this.#allows(event)) {
      this.count(event)
      return true
    }
    const owner = ownerOf(fields)
    if (kinds.hasRoom(owner)) {
      const { client_port: _, ...same } = fields
      kinds.add(kind, { ...this.#fresh(code, owner), fields: same, left: ONE_BY_ONE - 1 })
      this.#sweepSoon()
    }
    return false
  }

  /** Counts it with others of its session or network. */
  count(event: AuditEvent): void {
    add(this.#groupOf(event), event)
    this.#sweepSoon()
  }

  #groupOf({ code, fields }: AuditEvent): Counted {
    const { groups, rest } = this.#sideOf(fields)
    const owner = ownerOf(fields)
    const own = `${code} ${groupOf(fields)}`
    const near = `${code} near ${owner}`
    const known = groups.counted.get(own) ?? groups.counted.get(near)
    if (known) return known
    const fresh = this.#fresh(code, owner)
    if (groups.hasRoom(owner)) return groups.add(own, { ...fresh, group: TOO_MANY })
    // The neighbourhood has room of its own, one entry for each code.
    if (groups.hasRoom(near)) return groups.add(near, { ...fresh, owner: near, group: TOO_MANY })
    return rest.counted.get(code) ?? rest.add(code, { ...fresh, group: FROM_SEVERAL })
  }

  /** Returns all counted events, to be logged now. */
  takeAll(): AuditEvent[] {
    return this.#tables().flatMap((table) => {
      const all = [...table.counted.values()].filter(({ count }) => count > 0)
      table.clear()
      return all.map((one) => this.#eventOf(one))
    })
  }

  #sideOf({ session }: EventFields): Side {
    return session === undefined ? this.#networks : this.#sessions
  }

  #tables(): Table[] {
    return [this.#sessions, this.#networks].flatMap(({ kinds, groups, rest }) => [kinds, groups, rest])
  }

  #fresh(code: EventCode, owner: string): Counted {
    return {
      code,
      owner,
      fields: {},
      differ: false,
      count: 0,
      left: 0,
      first: 0,
      last: 0,
      window: FIRST_WINDOW_MS,
      until: this.#monotonic() + FIRST_WINDOW_MS,
    }
  }

  #allows({ code, fields }: AuditEvent): boolean {
    const now = this.#monotonic()
    const group = groupOf(fields)
    if (fields.session !== undefined) return this.#ofSession.take(`${code} ${group}`, now)
    return (
      this.#ofNetwork.take(group, now) &&
      this.#ofNeighbourhood.take(ownerOf(fields), now) &&
      this.#ofAllNetworks.take('', now)
    )
  }

  #sweepSoon(): void {
    if (this.#sweeping) return
    this.#sweeping = true
    this.#after(SWEEP_MS, () => {
      this.#sweeping = false
      const tables = this.#tables()
      for (const table of tables) this.#sweep(table)
      if (tables.some(({ counted }) => counted.size > 0)) this.#sweepSoon()
    })
  }

  #sweep(table: Table): void {
    const now = this.#monotonic()
    for (const [name, counted] of table.counted) {
      if (now < counted.until) continue
      if (counted.count === 0) {
        table.remove(name, counted)
        continue
      }
      const event = this.#eventOf(counted)
      counted.count = 0
      counted.window = Math.min(2 * counted.window, MAX_WINDOW_MS)
      counted.until = now + counted.window
      this.tell(event)
    }
  }

  #eventOf({ code, fields, group, differ, count, first, last }: Counted): AuditEvent {
    const [from, to] = [first, last].map((time) => new Date(time).toISOString())
    const reason = differ ? group : undefined
    return {
      time: this.#now(),
      code,
      fields: { ...fields, ...(reason !== undefined && { reason }), count, first: from!, last: to! },
    }
  }
}

/** Adds an event. A folded one that could not be stored counts with its number. */
function add(counted: Counted, { time, fields }: AuditEvent): void {
  const isFirst = counted.count === 0
  if (isFirst) counted.first = time
  counted.count += Number(fields.count ?? 1)
  counted.last = time
  if (counted.group === undefined) return
  const { client_port: _, count: __, first: ___, last: ____, ...said } = fields
  if (isFirst) {
    counted.fields = said
    counted.differ = false
  } else keepCommon(counted, said)
}

/** Leaves out fields that differ, but keeps the address if all are from one network or its neighbours. */
function keepCommon(counted: Counted, said: EventFields): void {
  const { fields } = counted
  const names = Object.keys(fields) as (keyof EventFields)[]
  if (Object.keys(said).length !== names.length) counted.differ = true
  for (const name of names) {
    if (said[name] === fields[name]) continue
    counted.differ = true
    if (name !== 'client_ip' || counted.group === FROM_SEVERAL) delete fields[name]
  }
}

/** Returns the session, or else the neighbourhood of the client's network. */
function ownerOf({ session, client_ip: address }: EventFields): string {
  return session === undefined ? neighbourhoodOf(String(address ?? '')) : `session ${session}`
}

/** Returns the session, or else the client's network. */
function groupOf({ session, client_ip: address }: EventFields): string {
  return session === undefined ? networkOf(String(address ?? '')) : `session ${session}`
}

function kindOf({ code, fields }: AuditEvent): string {
  const { client_port: _, client_ip: address, count: _count, first: _first, last: _last, ...rest } = fields
  return JSON.stringify({ code, network: networkOf(String(address ?? '')), ...rest })
}
