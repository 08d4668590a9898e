/**
 * Connections to targets that the broker made, by number: it may use local ports that a session worker may not. The
 * connection and the answer that has its number come on different ways, so either may be first.
 */
import type { TcpHandle } from './accept.ts'

/** Connections that were not taken. More are a fault of the code that asked for them. */
const MAX_WAITING = 1_000

const arrived = new Map<number, TcpHandle>()
const expected = new Map<number, (handle: TcpHandle) => void>()
let next = 1

/** Keeps a connection until it is taken, and returns its number. */
export function keepDialled(handle: TcpHandle): number {
  const number = next++
  arrive(number, handle)
  return number
}

/** Keeps a connection under the number that another process has given it. */
export function arrive(number: number, handle: TcpHandle): void {
  const take = expected.get(number)
  expected.delete(number)
  if (take) take(handle)
  else if (arrived.size < MAX_WAITING) arrived.set(number, handle)
  else handle.close()
}

/** Resolves to the connection of this number when it is there. */
export function takeDialled(number: number): Promise<TcpHandle> {
  const handle = arrived.get(number)
  arrived.delete(number)
  return handle ? Promise.resolve(handle) : new Promise((resolve) => expected.set(number, resolve))
}
