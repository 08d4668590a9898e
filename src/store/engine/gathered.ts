/**
 * Work of many callers that is done together: a server takes a message there and back for each statement, whatever the
 * number of rows.
 */
import { setImmediate } from 'node:timers/promises'

interface Waiting<T, R> {
  one: T
  resolve: (result: R) => void
  reject: (error: unknown) => void
}

/**
 * Returns a function for one piece of work. Pieces that come while others are done wait, and are done by one call of
 * `work`: `most` at a time, none with the key of another. `work` returns their results in their order; if it fails, they
 * are done one by one, so that none fails because of another.
 */
export function gathered<T, R>(
  most: number,
  keyOf: (one: T) => string,
  work: (all: readonly T[]) => Promise<R[]>,
): (one: T) => Promise<R> {
  let waiting: Waiting<T, R>[] = []
  let isRunning = false

  const take = (): Waiting<T, R>[] => {
    const taken = new Map<string, Waiting<T, R>>()
    const left = waiting.filter((each) => {
      const key = keyOf(each.one)
      if (taken.size >= most || taken.has(key)) return true
      taken.set(key, each)
      return false
    })
    waiting = left
    return [...taken.values()]
  }

  const settle = async (some: readonly Waiting<T, R>[]): Promise<void> => {
    try {
      const results = await work(some.map(({ one }) => one))
      for (const [at, { resolve }] of some.entries()) resolve(results[at]!)
    } catch (error) {
      if (some.length === 1) some[0]!.reject(error)
      else for (const each of some) await settle([each])
    }
  }

  const run = async (): Promise<void> => {
    isRunning = true
    while (waiting.length > 0) {
      // Work of the same turn joins in.
      await setImmediate()
      await settle(take())
    }
    isRunning = false
  }

  return (one) =>
    new Promise<R>((resolve, reject) => {
      waiting.push({ one, resolve, reject })
      if (!isRunning) void run()
    })
}
