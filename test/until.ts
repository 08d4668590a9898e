/** For a machine whose disk stops for seconds. */
const WAIT_MS = 60_000

/**
 * Calls `ask` until it returns something else than undefined or false. Rejects with `what` after a minute, or `withinMs`.
 */
export async function until<T>(
  what: string | (() => string),
  ask: () => T | Promise<T>,
  withinMs = WAIT_MS,
): Promise<Exclude<T, undefined | false>> {
  const end = Date.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer as Exclude<T, undefined | false>
    if (Date.now() > end) throw new Error(`waited in vain for ${typeof what === 'string' ? what : what()}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
