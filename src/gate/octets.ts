/** Octets of running sessions: their proxies count them, and are asked for them, so that no packet costs more for it. */
import type { CountedRequest, GateNotice } from '../contract/gate.ts'
import type { Id } from '../model/objects.ts'

/** Milliseconds that proxies have for their answers: those of one that hangs are left out. */
const ANSWER_MS = 2_000

export type Counted = ReadonlyMap<Id, Pick<CountedRequest, 'bytesIn' | 'bytesOut'>>

export class Octets {
  readonly #notify: (notice: GateNotice) => void
  readonly #counted = new Map<Id, Pick<CountedRequest, 'bytesIn' | 'bytesOut'>>()
  /** Sessions that have not answered yet. */
  readonly #asked = new Set<Id>()
  #round: Promise<Counted> | undefined
  #complete: () => void = () => undefined

  constructor(notify: (notice: GateNotice) => void) {
    this.#notify = notify
  }

  /** Returns the octets of those sessions that answer in time. Askers at the same time share one round. */
  of(sessions: Iterable<{ id: Id }>): Promise<Counted> {
    this.#round ??= this.#ask([...sessions].map(({ id }) => id)).finally(() => {
      this.#round = undefined
    })
    return this.#round
  }

  /** Takes an answer; one that was not asked for is left out. */
  counted({ session, bytesIn, bytesOut }: CountedRequest): void {
    if (!this.#asked.delete(session)) return
    this.#counted.set(session, { bytesIn, bytesOut })
    if (this.#asked.size === 0) this.#complete()
  }

  onClosed(session: Id): void {
    if (this.#asked.delete(session) && this.#asked.size === 0) this.#complete()
  }

  async #ask(ids: readonly Id[]): Promise<Counted> {
    if (ids.length === 0) return new Map()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#complete = resolve
    for (const id of ids) this.#asked.add(id)
    const timer = setTimeout(resolve, ANSWER_MS)
    for (const session of ids) this.#notify({ type: 'count', session })
    await promise
    clearTimeout(timer)
    const answered = new Map(this.#counted)
    this.#counted.clear()
    this.#asked.clear()
    return answered
  }
}
