/**
 * Refusals that repeat become one event with a count, so that nobody fills the audit log, and the queue before it,
 * with sign-ins that fail. The first of a kind is told at once; what is like it (the same but for the client's port)
 * is counted, and told when its window is over: 10 s, growing to 60 while it goes on. Who varies what he is refused for is
 * counted together per session, or per network, once he has used up what may be told one by one.
 */
import { networkOf } from '../model/networks.ts'
import type { AuditEvent, EventCode } from './catalogue.ts'
import type { EventField, EventFields } from './fields.ts'
import { type After, systemAfter } from './sink.ts'

const REFUSALS: ReadonlySet<EventCode> = new Set([
  'auth.failure',
  'session.denied',
  'channel.denied',
  'file.denied',
  'ticket.denied',
  'checkout.denied',
])
const FIRST_WINDOW_MS = 10_000
const MAX_WINDOW_MS = 60_000
const SWEEP_MS = 1000
/** Of a kind that are told one by one. */
const ONE_BY_ONE = 10
/** Kinds that are told apart, and sessions and networks; beyond, what is alike in the code alone is counted together. */
const MAX_KINDS = 300
const MAX_GROUPS = 100
/** What may be told one by one: of a session, of a network, and of all networks together. */
const OF_SESSION = { burst: 100, perSecond: 2 }
const OF_NETWORK = { burst: 60, perSecond: 1 / 3 }
const OF_ALL_NETWORKS = { burst: 1000, perSecond: 1 }
const MAX_ALLOWANCES = 2000
/** Fields that several refusals of one session, or network, have in common. */
const SHARED: readonly EventField[] = [
  'session',
  'user',
  'client_ip',
  'protocol',
  'account',
  'domain',
  'device',
]

interface Rate {
  burst: number
  perSecond: number
}

/** What is still left of a rate. */
interface Allowance {
  left: number
  at: number
}

interface Counted {
  code: EventCode
  fields: EventFields
  count: number
  /** How many more of it are told one by one. */
  left: number
  first: number
  last: number
  window: number
  /** When it is told. */
  until: number
}

export interface RefusalsOptions {
  /** Milliseconds since the epoch. */
  now: () => number
  after?: After
}

export class Refusals {
  readonly #now: () => number
  readonly #after: After
  readonly #counted = new Map<string, Counted>()
  readonly #allowances = new Map<string, Allowance>()
  readonly #strangers: Allowance
  #kinds = 0
  #sweeping = false
  /** Is handed what was counted, when it is due. */
  tell: (event: AuditEvent) => void = () => undefined

  constructor({ now, after = systemAfter }: RefusalsOptions) {
    this.#now = now
    this.#after = after
    this.#strangers = { left: OF_ALL_NETWORKS.burst, at: now() }
  }

  /** Whether events of this kind are refusals at all. */
  isRefusal(code: EventCode): boolean {
    return REFUSALS.has(code)
  }

  /** True: it is counted, and told later. False: it is to be told now. */
  takes(event: AuditEvent): boolean {
    if (!REFUSALS.has(event.code)) return false
    const kind = kindOf(event)
    const known = this.#counted.get(kind)
    if (known) {
      if (known.left > 0 && this.#allows(event)) {
        known.left--
        return false
      }
      known.left = 0
      this.#add(known, event)
      return true
    }
    if (this.#kinds >= MAX_KINDS || !this.#allows(event)) {
      this.count(event)
      return true
    }
    this.#kinds++
    const { client_port: _, ...fields } = event.fields
    this.#counted.set(kind, { ...this.#fresh(event.code, fields), left: ONE_BY_ONE - 1 })
    this.#sweepSoon()
    return false
  }

  /** Counts it with others of its session or network. */
  count(event: AuditEvent): void {
    const { code, fields } = event
    const group = `${code} ${groupOf(fields)}`
    let counted = this.#counted.get(group)
    if (!counted && this.#counted.size - this.#kinds < MAX_GROUPS) {
      counted = this.#fresh(code, sharedOf(fields))
      this.#counted.set(group, counted)
    }
    counted ??= this.#counted.get(code)
    if (!counted) {
      counted = this.#fresh(code, { reason: 'several, from several networks or sessions' })
      this.#counted.set(code, counted)
    }
    this.#add(counted, event)
    this.#sweepSoon()
  }

  /** All that is counted, to be told now. */
  takeAll(): AuditEvent[] {
    const all = [...this.#counted.values()].filter(({ count }) => count > 0)
    this.#counted.clear()
    this.#kinds = 0
    return all.map((one) => this.#eventOf(one))
  }

  #fresh(code: EventCode, fields: EventFields): Counted {
    const now = this.#now()
    return {
      code,
      fields,
      count: 0,
      left: 0,
      first: now,
      last: now,
      window: FIRST_WINDOW_MS,
      until: now + FIRST_WINDOW_MS,
    }
  }

  /** One that was folded already, and could not be stored, counts for as many. */
  #add(counted: Counted, { time, fields }: AuditEvent): void {
    if (counted.count === 0) counted.first = time
    counted.count += Number(fields.count ?? 1)
    counted.last = time
  }

  #allows({ fields }: AuditEvent): boolean {
    const isSession = fields.session !== undefined
    const group = groupOf(fields)
    const now = this.#now()
    const rate = isSession ? OF_SESSION : OF_NETWORK
    let own = this.#allowances.get(group)
    if (!own) {
      const [oldest] = this.#allowances.keys()
      if (this.#allowances.size >= MAX_ALLOWANCES && oldest !== undefined) this.#allowances.delete(oldest)
      own = { left: rate.burst, at: now }
      this.#allowances.set(group, own)
    }
    if (!take(own, rate, now)) return false
    return isSession || take(this.#strangers, OF_ALL_NETWORKS, now)
  }

  #sweepSoon(): void {
    if (this.#sweeping) return
    this.#sweeping = true
    this.#after(SWEEP_MS, () => {
      this.#sweeping = false
      this.#sweep()
      if (this.#counted.size > 0) this.#sweepSoon()
    })
  }

  #sweep(): void {
    const now = this.#now()
    for (const [key, counted] of this.#counted) {
      if (now < counted.until) continue
      if (counted.count === 0) {
        this.#counted.delete(key)
        if (key.startsWith('{')) this.#kinds--
        continue
      }
      const event = this.#eventOf(counted)
      counted.count = 0
      counted.window = Math.min(2 * counted.window, MAX_WINDOW_MS)
      counted.until = now + counted.window
      this.tell(event)
    }
  }

  #eventOf({ code, fields, count, first, last }: Counted): AuditEvent {
    const [from, to] = [first, last].map((time) => new Date(time).toISOString())
    return { time: this.#now(), code, fields: { ...fields, count, first: from!, last: to! } }
  }
}

/** Whether there was something left. */
function take(allowance: Allowance, { burst, perSecond }: Rate, now: number): boolean {
  const gained = (Math.max(0, now - allowance.at) / 1000) * perSecond
  allowance.left = Math.min(burst, allowance.left + gained)
  allowance.at = now
  if (allowance.left < 1) return false
  allowance.left--
  return true
}

/** A session, or else the network that the client is in. */
function groupOf({ session, client_ip: address }: EventFields): string {
  return session === undefined ? networkOf(String(address ?? '')) : `session ${session}`
}

/** Begins with a brace, which no group does. */
function kindOf({ code, fields }: AuditEvent): string {
  const { client_port: _, client_ip: address, count: _count, first: _first, last: _last, ...rest } = fields
  return JSON.stringify({ code, network: networkOf(String(address ?? '')), ...rest })
}

function sharedOf(fields: EventFields): EventFields {
  const isSession = fields.session !== undefined
  const shared = SHARED.filter((field) => isSession || field === 'client_ip' || field === 'protocol')
  const some = Object.fromEntries(
    shared.flatMap((field) => (fields[field] === undefined ? [] : [[field, fields[field]]])),
  )
  return { ...some, reason: 'several, too many to be told one by one' }
}
