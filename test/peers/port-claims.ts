/** The folder in which the test files of one run claim ports, so that no two are given the same one. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PORT_CLAIMS } from './process.ts'

/** Called by vitest before the first test file; it calls what this returns after the last. */
export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-ports-'))
  process.env[PORT_CLAIMS] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
