/** Keeps this process's memory, which holds credentials, out of core dumps and from other processes. */
import { writeFileSync } from 'node:fs'
import { closeMemory } from '../confine/closed-memory.ts'
import { openKernel } from '../confine/kernel.ts'

/** The kinds of mappings in a core dump (core(5)), of this process and its children. */
const CORE_DUMP_FILTER = '/proc/self/coredump_filter'

/**
 * From now on a core dump of this process has registers and no memory, whatever `ulimit -c` and the system's
 * collector are set to. Returns whether that worked: it needs Linux with /proc.
 */
export function withholdFromCoreDumps(): boolean {
  try {
    writeFileSync(CORE_DUMP_FILTER, '0')
    return true
  } catch {
    return false
  }
}

/**
 * From now on only root can trace this process or read its memory: without root, its session workers and all else
 * that the same user runs could. Returns whether that worked.
 */
export function withholdFromOtherProcesses(): boolean {
  const opened = openKernel()
  return 'kernel' in opened && closeMemory(opened.kernel)
}
