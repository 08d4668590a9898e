/** The priority of threads and programs whose work gives way to sessions. */
import { getPriority, setPriority } from 'node:os'

/** The calls of node:os. On Linux 0 is the calling thread (setpriority(2), C library/kernel differences), elsewhere the process. */
export interface Priorities {
  getPriority(target: number): number
  setPriority(target: number, niceness: number): void
}

const SYSTEM: Priorities = { getPriority, setPriority }

/**
 * Gives the calling thread this niceness, of 19 at most. A thread of a lower priority keeps its own: the kernel lets only
 * root raise it. Elsewhere than on Linux it would be that of the whole process, which stays.
 */
export function giveWay(niceness: number, system = SYSTEM): void {
  if (process.platform === 'linux') lower(0, niceness, system)
}

/** The same for a program that was started: `child` is its process. */
export function letGiveWay(child: number, niceness: number, system = SYSTEM): void {
  lower(child, niceness, system)
}

function lower(target: number, niceness: number, system: Priorities): void {
  if (system.getPriority(target) < niceness) system.setPriority(target, niceness)
}
