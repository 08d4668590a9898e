/** Starts the run's PostgreSQL server before the first test file that needs it, with a template for databases. */
import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../../src/store/open.ts'
import { placeOf, SERVER, TEMPLATE } from './databases.ts'
import { type Postgres, startPostgres } from './postgres.ts'
import { missingPackages } from './program.ts'

/** Called by vitest once for each project. Returns a function for after the last file. */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env[SERVER] !== undefined) return undefined
  const missing = missingPackages(['initdb', 'postgres'])
  if (missing.length > 0) {
    process.stderr.write(`the tests on PostgreSQL need apt-get install ${missing.join(' ')}\n`)
    return undefined
  }
  const server = await startWithTemplate()
  process.env[SERVER] = String(server.port)
  return async () => {
    delete process.env[SERVER]
    await server.stop()
  }
}

/** Starts a server with the template of `testDatabase`; `settings` go over those of tests. */
export async function startWithTemplate(settings?: Readonly<Record<string, string>>): Promise<Postgres> {
  const server = await startPostgres(settings)
  await server.sql(`create database ${TEMPLATE} template template0`)
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-template-'))
  const store = await openStore({ postgres: placeOf(server.port, TEMPLATE), folder })
  await store.close()
  rmSync(folder, { recursive: true })
  return server
}
