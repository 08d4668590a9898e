/** Processor time, for bounds on work: other programs on the machine are not in it. */

/** Returns the milliseconds that this thread has worked so far. */
export function processorTime(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
