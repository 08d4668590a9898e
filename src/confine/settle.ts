/** The worker's own part of its cage: the bounds that can hold only once Node has started. */
import { readFileSync } from 'node:fs'
import { CAGE_VARIABLE, type Launched } from './cage.ts'
import { closeMemory } from './closed-memory.ts'
import { installFilter, lastProgramFilter } from './filter.ts'
import { openKernel } from './kernel.ts'
import type { CageReport } from './report.ts'

/**
 * Ends the start: from now on no thread of this process starts a program, nor does what filter.ts forbids, and
 * other processes of the user see nothing of its memory. Call it once, before the first byte from a client.
 * Returns what holds.
 */
export function settle(): CageReport {
  const launched = launchedBy(process.env[CAGE_VARIABLE])
  delete process.env[CAGE_VARIABLE]
  const missing = [...launched.missing]
  const opened = openKernel()
  let isLastProgram = false
  let dumpable = true
  if ('kernel' in opened) {
    const { kernel } = opened
    dumpable = !closeMemory(kernel)
    const fault = installFilter(kernel, lastProgramFilter(kernel.processor))
    isLastProgram = fault === undefined
    if (fault !== undefined && !missing.includes(fault)) missing.push(fault)
  } else if (!missing.includes(opened.missing)) missing.push(opened.missing)
  const status = statusOfProcess()
  return {
    uid: process.geteuid?.() ?? -1,
    gid: process.getegid?.() ?? -1,
    capabilities: /[^0]/.test(status.get('CapEff') ?? '0'),
    noNewPrivileges: status.get('NoNewPrivs') === '1',
    ...(launched.landlock !== undefined && { landlock: launched.landlock }),
    seccomp: launched.filtered && isLastProgram,
    dumpable,
    permission: process.permission !== undefined,
    missing,
  }
}

function launchedBy(variable: string | undefined): Launched {
  if (variable !== undefined) return JSON.parse(variable) as Launched
  return { filtered: false, missing: ['the worker was started without its launcher'] }
}

/** Returns the lines of /proc/self/status by name; none on other systems. */
function statusOfProcess(): ReadonlyMap<string, string> {
  try {
    const lines = readFileSync('/proc/self/status', 'utf8').split('\n')
    return new Map(
      lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
    )
  } catch {
    return new Map()
  }
}
