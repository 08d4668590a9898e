import type { Kernel } from './kernel.ts'
import { CALLS } from './system-calls.ts'

const PR_GET_DUMPABLE = 3
const PR_SET_DUMPABLE = 4

/**
 * Closes the memory of this process to others of its user: they can neither trace it nor read its files in /proc.
 * Returns whether that worked. The next program of the process begins open again.
 */
export function closeMemory(kernel: Kernel): boolean {
  kernel.call(CALLS.prctl, PR_SET_DUMPABLE, 0, 0, 0, 0)
  return kernel.call(CALLS.prctl, PR_GET_DUMPABLE, 0, 0, 0, 0) === 0
}
