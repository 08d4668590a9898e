/** What of this process's memory, which holds credentials, others may come by with the system's own means. */
import { writeFileSync } from 'node:fs'

/** Which kinds of mappings a core dump holds (core(5)), of this process and of those that it starts. */
const CORE_DUMP_FILTER = '/proc/self/coredump_filter'

/**
 * From here on a core dump of this process has registers and no memory, whatever `ulimit -c` and the system's collector
 * say. Answers whether that could be done: it takes Linux with /proc.
 */
export function withholdFromCoreDumps(): boolean {
  try {
    writeFileSync(CORE_DUMP_FILTER, '0')
    return true
  } catch {
    return false
  }
}
