/**
 * Commands for bash on a target that print again and again. They start no programs: a loop with `sleep` and `date` in it
 * takes a processor's whole time.
 */

/** Returns a loop that prints by `print`, which starts no program either, and waits `seconds`; without end by default. */
export function loopOf(print: string, seconds: number, rounds?: number): string {
  const head = rounds === undefined ? 'while :' : `for ((n = 1; n <= ${rounds}; n++))`
  // A pipe without a writer: reading from it waits.
  return `exec 9<> <(:); ${head}; do ${print}; read -rt ${seconds} -u 9; done`
}

/** Prints the clock's nanoseconds. */
export const PRINT_CLOCK = `echo $\{EPOCHREALTIME/[.,]/}000`
