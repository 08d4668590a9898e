/** Starts a process in the cage of a session worker, and lets it report what holds on this system. */
import { execFile } from 'node:child_process'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Cage } from './cage.ts'
import { confined } from './command.ts'
import type { CageReport } from './report.ts'

const PATIENCE_MS = 20_000
const MAX_OUTPUT = 64 * 1024

const TRIAL = fileURLToPath(new URL(`./trial${extname(import.meta.url)}`, import.meta.url))

/** Throws an error with the process's own words if it does not start. */
export async function tryCage(cage: Cage): Promise<CageReport> {
  const { file, arguments: args, ...options } = confined({ arguments: [TRIAL], env: {} }, cage)
  // As the workers: that of an administrator may be closed to their user.
  const settings = { ...options, cwd: '/', timeout: PATIENCE_MS, maxBuffer: MAX_OUTPUT }
  const { stdout } = await promisify(execFile)(file, args, settings)
  return JSON.parse(stdout) as CageReport
}
