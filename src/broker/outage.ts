/**
 * What the broker does while the database is away: running sessions go on for a while, their events are kept on the
 * disk (audit/journal), and what is new is refused where it arrives. What waited is done when it is back.
 */
import type { Audit } from '../audit/events/catalogue.ts'
import type { Backlog } from '../audit/journal/backlog.ts'
import type { BrokerGate } from '../gate/gate.ts'
import type { Logger } from '../host/log.ts'
import type { Away, Reach } from '../store/store.ts'

export interface OutageOptions {
  reach: Reach
  audit: Audit
  backlog: Pick<Backlog, 'takeWritten'>
  gate: Pick<BrokerGate, 'endAll'>
  logger: Pick<Logger, 'error' | 'warn'>
  /** Milliseconds for which sessions go on. */
  grace: number
  /** Where the database is, without secrets. */
  place: string
  /** Reviews the rights of what runs: nothing could be looked up meanwhile. */
  review: () => void
  /** Milliseconds since the epoch. */
  now: () => number
}

export class Outage {
  readonly #options: OutageOptions
  readonly #forget: () => void
  #ending: NodeJS.Timeout | undefined
  #since: number | undefined

  constructor(options: OutageOptions) {
    this.#options = options
    this.#forget = options.reach.onChange((away) => (away ? this.#begin(away) : this.#over()))
  }

  close(): void {
    clearTimeout(this.#ending)
    this.#forget()
  }

  #begin({ since, reason }: Away): void {
    const { logger, grace, backlog, place: object } = this.#options
    logger.error({ reason }, 'the database cannot be used')
    this.#since = since
    backlog.takeWritten()
    this.#tell('database.away', { object_type: 'database', object, reason })
    const isStrict = (session: { isStrict: boolean }) => session.isStrict
    const now = 'the database of the audit log cannot be reached'
    if (grace === 0) {
      this.#end(now, () => true)
      return
    }
    this.#end(`${now}, and this session is recorded strictly`, isStrict)
    const after = `the database of the audit log has been unreachable for ${grace / 1000} s`
    this.#ending = setTimeout(() => this.#end(after, () => true), grace)
    this.#ending.unref()
  }

  #over(): void {
    const { logger, now, backlog, place: object, review } = this.#options
    clearTimeout(this.#ending)
    const duration = now() - (this.#since ?? now())
    const count = backlog.takeWritten()
    logger.warn({ duration, count }, 'the database is back')
    this.#tell('database.back', { object_type: 'database', object, duration, count })
    review()
  }

  #end(reason: string, which: (session: { isStrict: boolean }) => boolean): void {
    this.#options.gate.endAll(reason, which).catch((error: unknown) => {
      this.#options.logger.error({ error }, 'the end of sessions could not be written to the audit log')
    })
  }

  #tell(...event: Parameters<Audit['record']>): void {
    this.#options.audit.record(...event).catch((error: unknown) => {
      this.#options.logger.error({ error }, 'an outage of the database could not be written to the audit log')
    })
  }
}
