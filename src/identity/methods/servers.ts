/** Order of the servers of one method: those that failed a moment ago come last, and are tried by one attempt at a time. */
import type { ExternalServer } from '../../model/external-auths.ts'

/** Milliseconds for which a server that failed is left to single trials. */
export const DEAD_MS = 15_000

/** An error that a server itself reports: it cannot judge this attempt, but is there for others. */
export class ReportedError extends Error {}

interface Known<S> {
  server: S
  /** Milliseconds since the epoch of the last failure; 0: it works. */
  failed: number
  isTried: boolean
}

export class ServerOrder<S = ExternalServer> {
  readonly #servers: Known<S>[]
  readonly #now: () => number

  constructor(servers: readonly S[], now: () => number) {
    this.#servers = servers.map((server) => ({ server, failed: 0, isTried: false }))
    this.#now = now
  }

  /**
   * Asks the servers in order until one answers, and returns its answer, or undefined if none did. `ask` throws if its
   * server cannot judge; `onFailure` is told each such error. A server that is down costs its time-out to one attempt
   * in a while: the others pass it by.
   */
  async first<T>(
    ask: (server: S) => Promise<T>,
    onFailure: (server: S, error: Error) => void,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    for (const known of this.#inOrder()) {
      if (known.isTried || signal.aborted) continue
      const isTrial = known.failed > 0
      known.isTried = isTrial
      try {
        const answer = await ask(known.server)
        known.failed = 0
        return answer
      } catch (error) {
        // A caller that gives up says nothing about the server.
        if (error instanceof ReportedError) known.failed = 0
        else if (!signal.aborted) known.failed = this.#now()
        onFailure(known.server, error as Error)
      } finally {
        if (isTrial) known.isTried = false
      }
    }
    return undefined
  }

  #inOrder(): Known<S>[] {
    const now = this.#now()
    const rest = this.#servers.filter(({ failed }) => now - failed < DEAD_MS && failed <= now)
    const alive = this.#servers.filter((known) => !rest.includes(known))
    // With no other left, a dead one is asked again by one attempt at a time.
    return [...alive, ...rest]
  }
}
