/** The name of this process for ps, top, pgrep and killall: Node's own is that of its main thread. */
import { writeFileSync } from 'node:fs'

const NAME = 'sallyport'

/**
 * Names this process. Its command line, which `process.title` would replace, stays: it shows the build that runs.
 */
export function nameProcess(): void {
  try {
    writeFileSync('/proc/self/comm', NAME)
  } catch {
    // Not on Linux, or without /proc.
  }
}
