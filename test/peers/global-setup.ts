/** Prepares a run of tests with real programs: the programs, a build, unique ports for each test, an RSA host key. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { builtProgram } from '../../bin/built.mjs'
import { PROGRAM, startBroker } from './broker.ts'
import { PORT_CLAIMS } from './process.ts'
import { makeRsaHostKey } from './rsa-host-key.ts'
import { makeStartedData } from './started-data.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/**
 * Called by vitest before the first test file, once for each project. Returns a function for after the last.
 */
export default async function setup(): Promise<(() => void) | undefined> {
  if (process.env[PORT_CLAIMS] !== undefined) return undefined
  installPrograms()
  // The tests start hundreds of brokers and commands: a build starts in half the time of the sources.
  const program = builtProgram(ROOT)
  if (program === undefined) throw new Error('the sources could not be built')
  process.env[PROGRAM] = program
  const claims = mkdtempSync(join(tmpdir(), 'sallyport-ports-'))
  process.env[PORT_CLAIMS] = claims
  const removeKey = makeRsaHostKey()
  const removeData = await makeStartedData(async (dataFolder) => (await startBroker({ dataFolder })).stop)
  return () => {
    removeData()
    removeKey()
    rmSync(claims, { recursive: true, force: true })
  }
}

function installPrograms(): void {
  const script = join(ROOT, 'bin', 'setup.mjs')
  const { status } = spawnSync(process.execPath, [script, '--peers', '--build'], { stdio: 'inherit' })
  if (status !== 0) throw new Error('the programs that tests talk to could not be installed')
}
