/**
 * Receivers of events by what they are made of: one that is made of the same as before is the same, so that its feed
 * goes on while others are replaced.
 */
import type { Sink } from '../audit/sink.ts'

export class KeptSinks {
  #sinks: ReadonlyMap<string, Sink> = new Map()

  /** Returns the receiver of each, and forgets those of others. */
  async of<T>(origins: readonly T[], make: (origin: T) => Promise<Sink>): Promise<Sink[]> {
    const made = await Promise.all(
      origins.map(async (origin): Promise<[string, Sink]> => {
        const key = JSON.stringify(origin)
        return [key, this.#sinks.get(key) ?? (await make(origin))]
      }),
    )
    this.#sinks = new Map(made)
    return made.map(([, sink]) => sink)
  }
}
