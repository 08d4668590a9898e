/** The priority of threads whose work gives way to sessions. */
import { getPriority, setPriority } from 'node:os'

/** The calls of node:os. On Linux 0 is the calling thread (setpriority(2), C library/kernel differences). */
export interface Priorities {
  getPriority(thread: number): number
  setPriority(thread: number, niceness: number): void
}

/**
 * Gives the calling thread this niceness, of 19 at most. A thread of a lower priority keeps its own: the kernel lets only
 * root raise it. Elsewhere than on Linux it would be that of the whole process, which stays.
 */
export function giveWay(niceness: number, system: Priorities = { getPriority, setPriority }): void {
  if (process.platform === 'linux' && system.getPriority(0) < niceness) system.setPriority(0, niceness)
}
