/**
 * The data folder of a broker that has started once, for the brokers of tests: a first start takes a third more
 * processor time than the next ones, and there are hundreds. They share the keys in it and the password of `admin`.
 * A broker whose configuration says what a first start writes down begins with an empty folder.
 */
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isOnPostgres } from './databases.ts'

const FOLDER = 'SALLYPORT_TEST_STARTED_DATA'
/** Files of a broker for its own time. */
const OWN = /\.lock$|[/]sinks$/

/** Keys of the configuration that a first start takes no notice of. */
const LATER = new Set([
  'dns',
  'login_grace',
  'proxy_protocol',
  'recordings',
  'run_as',
  'shutdown_grace',
  'sign_in',
  'ticket_lifetime',
  'trusted_proxies',
  'workers',
])

/** Makes the folder: `start` starts a broker on it, and resolves to a function that stops the broker. */
export async function makeStartedData(
  start: (dataFolder: string) => Promise<() => Promise<void>>,
): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-started-'))
  const stop = await start(join(folder, 'data'))
  await stop()
  process.env[FOLDER] = join(folder, 'data')
  return () => {
    delete process.env[FOLDER]
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Copies the folder to the place of a broker that has never run, if its configuration has only keys of LATER. */
export function layStartedData(dataFolder: string, config: Record<string, unknown>): void {
  const started = process.env[FOLDER]
  if (started === undefined || existsSync(dataFolder) || isOnPostgres()) return
  if (!Object.keys(config).every((key) => LATER.has(key))) return
  cpSync(started, dataFolder, {
    recursive: true,
    preserveTimestamps: true,
    filter: (path) => !OWN.test(path),
  })
}
