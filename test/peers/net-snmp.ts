/** The managers of net-snmp, which know our MIB. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunResult, run } from './process.ts'
import { findProgram, type ProgramName } from './program.ts'
import { baseMibs, MIB_FOLDER } from './snmptrapd.ts'

export interface Managers {
  /** Runs a program: it asks once, and waits two seconds for each answer. */
  ask(program: ProgramName, ...args: string[]): Promise<RunResult>
  remove(): void
}

export function startManagers(): Managers {
  const mibs = baseMibs()
  const persistent = mkdtempSync(join(tmpdir(), 'sallyport-managers-'))
  const env = {
    ...process.env,
    MIBDIRS: `${MIB_FOLDER}:${mibs}`,
    MIBS: 'SALLYPORT-MIB:SNMPv2-MIB',
    SNMP_PERSISTENT_DIR: persistent,
    SNMPCONFPATH: persistent,
  }
  return {
    ask: (program, ...args) => run(findProgram(program), ['-t', '2', '-r', '0', ...args], { env }),
    remove() {
      for (const folder of [mibs, persistent]) rmSync(folder, { recursive: true, force: true })
    },
  }
}
