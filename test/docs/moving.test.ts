/** The move of docs/operations.md to a server, with its own shell block, and the broker that goes on there. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Broker, sallyportCommand, startBroker } from '../peers/broker.ts'
import { type TestDatabase, testDatabase } from '../peers/databases.ts'
import { run } from '../peers/process.ts'
import { adapt, walkOf } from './walks.ts'

const ROLE = 'bastion'
const PASSWORD = 'of the server'

let folder: string
let database: TestDatabase
let broker: Broker | undefined
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-moving-'))
  database = await testDatabase({ isEmpty: true })
  const role = `${ROLE}_${database.place.database}`
  await database.sql(`create role ${role} login password '${PASSWORD}'`)
  await database.sql(`alter database ${database.place.database} owner to ${role}`)
})
afterEach(async () => {
  await broker?.stop()
  await database.drop()
  rmSync(folder, { recursive: true, force: true })
})

test('the move works as it stands there, and users sign in afterwards', { timeout: 300_000 }, async () => {
  const dataFolder = join(folder, 'data')
  const start = async (config: Record<string, unknown>) => {
    broker = await startBroker({ dataFolder, config })
    return broker
  }
  const stop = async () => {
    await broker?.stop()
    broker = undefined
  }
  const old = { database: { url: 'sqlite:sallyport.db' } }
  const first = await start(old)
  await first.must('POST', '/devices', { device_name: 'srv1', host: '192.0.2.1' })
  const config = join(folder, 'sallyport.yaml')
  writeFileSync(config, JSON.stringify({ data_dir: dataFolder, ...old }))

  const role = `${ROLE}_${database.place.database}`
  const url = database.url.replace(/\/\/.*@/, `//${role}@`)
  const passwordFile = join(folder, 'db-password')
  writeFileSync(passwordFile, `${PASSWORD}\n`, { mode: 0o600 })
  const [program, args] = sallyportCommand([])
  const [block] = walkOf('docs/operations.md').filter(({ name }) => name === 'move')
  const script = adapt(block!.text, {
    '/etc/sallyport/sallyport.yaml': config,
    'postgres://sallyport@db.example.com/sallyport?sslrootcert=/etc/sallyport/db-ca.pem': url,
    '/etc/sallyport/db-password': passwordFile,
    'sallyport store': `${[program, ...args].map((word) => `'${word}'`).join(' ')} store`,
  })
  const walk = () => run('bash', ['-euc', script])
  const early = await walk()
  expect(early).toMatchObject({ code: 1, stdout: '' })
  expect(early.stderr).toContain('sallyport.db is in use: stop the broker')
  await stop()
  const done = await walk()
  expect(done.code, done.stderr).toBe(0)
  // A slow copy says how far it is.
  expect(done.stderr).toMatch(/^(sallyport: (copied|compared) \d+ rows of \w+\n)*$/)
  expect(done.stdout).toContain('compared one by one\nthe audit log is in order')
  expect(done.stdout + done.stderr).not.toContain(PASSWORD)

  const moved = { database: { url, password: { file: passwordFile } } }
  const second = await start(moved)
  // Signs in by the password that was carried.
  expect(await second.must('GET', '/devices')).toMatchObject([{ device_name: 'srv1' }])
  await second.must('POST', '/devices', { device_name: 'srv2', host: '192.0.2.2' })
  const verified = await run(...sallyportCommand(['audit', 'verify', '--config', second.configFile]))
  expect(verified).toMatchObject({ code: 0, stderr: '' })
  await stop()
  await expect(start(old)).rejects.toThrow('are used there: correct database.url')
})
