/** Connections of one server that are used one after the other, by one user at a time. */
import { ReportedError } from '../servers.ts'

/** Most sign-ins that wait for a connection. */
export const MAX_QUEUE = 256

interface Leased {
  readonly isOpen: boolean
  close(): void
}

export class Leases<C extends Leased> {
  readonly #open: (signal: AbortSignal) => Promise<C>
  readonly #most: number
  readonly #idleMs: number
  readonly #idle: { connection: C; timer: NodeJS.Timeout }[] = []
  readonly #waiting: (() => void)[] = []
  #used = 0
  #isClosed = false

  /** `idleMs`: milliseconds for which a connection is kept that is not used. */
  constructor(most: number, idleMs: number, open: (signal: AbortSignal) => Promise<C>) {
    this.#most = most
    this.#idleMs = idleMs
    this.#open = open
  }

  /**
   * Lends a connection for the work; one that failed meanwhile is not lent again. Work on a connection that had been idle, and
   * was found dead, is done again on a new one: it must change nothing. @throws ReportedError when too many wait
   */
  async use<T>(signal: AbortSignal, work: (connection: C) => Promise<T>): Promise<T> {
    return await this.#inTurn(signal, async () => {
      const idle = this.#take()
      if (!idle) return await this.#lend(await this.#open(signal), work)
      try {
        return await this.#lend(idle, work)
      } catch (error) {
        if (idle.isOpen || signal.aborted) throw error
        // The others have been idle for longer.
        this.#endIdle()
        return await this.#lend(await this.#open(signal), work)
      }
    })
  }

  /** Lends a connection for work that must not be done twice. @throws ReportedError when too many wait */
  async useOnce<T>(signal: AbortSignal, work: (connection: C) => Promise<T>): Promise<T> {
    return await this.#inTurn(signal, async () =>
      this.#lend(this.#take() ?? (await this.#open(signal)), work),
    )
  }

  close(): void {
    this.#isClosed = true
    this.#endIdle()
  }

  async #lend<T>(connection: C, work: (connection: C) => Promise<T>): Promise<T> {
    try {
      return await work(connection)
    } finally {
      this.#giveBack(connection)
    }
  }

  async #inTurn<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#turn(signal)
    try {
      return await work()
    } finally {
      // The place goes to the next one without being free in between.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#used -= 1
    }
  }

  #endIdle(): void {
    for (const { connection, timer } of this.#idle.splice(0)) {
      clearTimeout(timer)
      connection.close()
    }
  }

  async #turn(signal: AbortSignal): Promise<void> {
    if (this.#used >= this.#most) {
      if (this.#waiting.length >= MAX_QUEUE)
        throw new ReportedError('too many sign-ins wait for this directory')
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const onAbort = () => {
        const place = this.#waiting.indexOf(resolve)
        if (place >= 0) this.#waiting.splice(place, 1)
        reject(new Error('given up while waiting for the directory'))
      }
      this.#waiting.push(resolve)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      await promise.finally(() => signal.removeEventListener('abort', onAbort))
      return
    }
    this.#used += 1
  }

  #take(): C | undefined {
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) {
      clearTimeout(idle.timer)
      if (idle.connection.isOpen) return idle.connection
    }
    return undefined
  }

  #giveBack(connection: C): void {
    if (!connection.isOpen) return
    if (this.#isClosed) {
      connection.close()
      return
    }
    const idle = { connection, timer: setTimeout(() => this.#end(idle), this.#idleMs).unref() }
    this.#idle.push(idle)
  }

  #end(idle: { connection: C; timer: NodeJS.Timeout }): void {
    const place = this.#idle.indexOf(idle)
    if (place >= 0) this.#idle.splice(place, 1)
    idle.connection.close()
  }
}
