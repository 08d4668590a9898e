/** Connections of one server that are used one after the other, by one user at a time. */

/** Most sign-ins that wait for a connection. */
export const MAX_QUEUE = 256
const IDLE_MS = 60_000

interface Leased {
  readonly isOpen: boolean
  close(): void
}

export class Leases<C extends Leased> {
  readonly #open: (signal: AbortSignal) => Promise<C>
  readonly #most: number
  readonly #idle: { connection: C; timer: NodeJS.Timeout }[] = []
  readonly #waiting: (() => void)[] = []
  #used = 0
  #isClosed = false

  constructor(most: number, open: (signal: AbortSignal) => Promise<C>) {
    this.#most = most
    this.#open = open
  }

  /** Lends a connection for the work; one that failed meanwhile is not lent again. @throws Error when too many wait */
  async use<T>(signal: AbortSignal, work: (connection: C) => Promise<T>): Promise<T> {
    await this.#turn(signal)
    try {
      const connection = this.#take() ?? (await this.#open(signal))
      try {
        return await work(connection)
      } finally {
        this.#giveBack(connection)
      }
    } finally {
      // The place goes to the next one without being free in between.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#used -= 1
    }
  }

  close(): void {
    this.#isClosed = true
    for (const { connection, timer } of this.#idle.splice(0)) {
      clearTimeout(timer)
      connection.close()
    }
  }

  async #turn(signal: AbortSignal): Promise<void> {
    if (this.#used >= this.#most) {
      if (this.#waiting.length >= MAX_QUEUE) throw new Error('too many sign-ins wait for this directory')
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
    const idle = { connection, timer: setTimeout(() => this.#end(idle), IDLE_MS).unref() }
    this.#idle.push(idle)
  }

  #end(idle: { connection: C; timer: NodeJS.Timeout }): void {
    const place = this.#idle.indexOf(idle)
    if (place >= 0) this.#idle.splice(place, 1)
    idle.connection.close()
  }
}
