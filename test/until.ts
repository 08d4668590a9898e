/** For a machine whose disk stops for seconds. */
const WAIT_MS = 60_000

/** Calls `ask` until it returns a value; rejects with `what` after a minute, or `withinMs`. */
export async function until<T>(
  what: string | (() => string),
  ask: () => T | undefined | Promise<T | undefined>,
  withinMs = WAIT_MS,
): Promise<T> {
  const end = Date.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    if (Date.now() > end) throw new Error(`waited in vain for ${typeof what === 'string' ? what : what()}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
