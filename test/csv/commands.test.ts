/** `sallyport import` and `export`, run as by a user: beside a broker, and without one. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sallyport } from '../e2e/recorded.ts'
import { ADMIN_PASSWORD, type Broker, callApi, startBroker } from '../peers/broker.ts'

/** Time limit of tests that run many programs: on a busy machine each needs seconds. */
const SLOW = { timeout: 300_000 }
const folder = mkdtempSync(join(tmpdir(), 'sallyport-csv-'))
let broker: Broker
beforeAll(async () => {
  broker = await startBroker()
}, 300_000)
afterAll(async () => {
  await broker?.stop()
  rmSync(folder, { recursive: true, force: true })
})

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
const command = (...args: string[]) => sallyport(broker, args)
const devices = async () =>
  (await broker.must<{ device_name: string }[]>('GET', '/devices')).map((one) => one.device_name)

test('a table goes in, is seen by the running broker at once, and comes out as it is', SLOW, async () => {
  const table = file(
    'devices.csv',
    '#device_name,host,description\nsrv1,192.0.2.1,"one, two"\nsrv2,192.0.2.2,\n',
  )
  const dry = await command('import', 'devices', table, '--separator', ',', '--dry-run')
  expect(dry).toMatchObject({ code: 0, stderr: '' })
  expect(dry.stdout).toBe(
    'row 2: created srv1\nrow 3: created srv2\ndry run, nothing was changed: 2 created, 0 updated, 0 unchanged\n',
  )
  expect(await devices()).toEqual([])
  const done = await command('import', 'devices', table, '--separator', ',', '--json')
  expect(done).toMatchObject({ code: 0, stderr: '' })
  expect(
    done.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    { row: 2, result: 'created', object: 'srv1' },
    { row: 3, result: 'created', object: 'srv2' },
  ])
  expect(await devices()).toEqual(['srv1', 'srv2'])
  const given = await command('export', 'devices', '--separator', 'tab')
  expect(given).toMatchObject({ code: 0, stderr: '' })
  expect(given.stdout).toMatch(/^\uFEFF#device_name\thost\tdescription\r\n/)
  const again = await command('import', 'devices', file('again.tsv', given.stdout), '--separator', 'tab')
  expect(again.stdout).toMatch(/^0 created, 0 updated, 2 unchanged$/m)
  const log = await command('audit', 'export')
  const events = log.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const made = events.map(({ fields }) => fields).filter(({ method }) => method === 'import')
  expect(made).toHaveLength(2)
  expect(made[0]).toMatchObject({ method: 'import', object: 'srv1', user: expect.stringMatching(/^local:./) })
  expect(made[0]).not.toHaveProperty('client_ip')
})

test('a password that comes in by it signs in', SLOW, async () => {
  const table = file(
    'users.csv',
    '#user_name;password;profile\nops1;a long password;operator\nadmin;;product_administrator\n',
  )
  expect(await command('import', 'users', table)).toMatchObject({ code: 0, stderr: '' })
  const { https } = broker.ports
  const certificate = readFileSync(join(broker.dataFolder, 'tls', 'cert.pem'))
  for (const [user, password] of [
    ['ops1', 'a long password'],
    ['admin', ADMIN_PASSWORD],
  ]) {
    const answer = await callApi(https, certificate, 'POST', '/session', {
      user,
      password,
    })
    expect(answer.status).toBe(200)
  }
})

test('errors are told on standard error, with exit code 1, and nothing is changed', SLOW, async () => {
  const before = await devices()
  const table = file('bad.csv', '#device_name;host\ngood;192.0.2.9\nbad name;192.0.2.9\nworse;\u001b[31m;\n')
  const done = await command('import', 'devices', table)
  expect(done).toMatchObject({ code: 1, stdout: '' })
  const lines = done.stderr.trim().split('\n')
  expect(lines[0]).toBe(
    'sallyport: the table has errors; see details for their rows and columns. Nothing was changed',
  )
  expect(lines[1]).toMatch(/^row 3, column 1 \(device_name\): a name may hold/)
  expect(lines[2]).toMatch(/^row 4, column 2 \(host\): /)
  expect(done.stderr).not.toContain('\u001b')
  expect(await devices()).toEqual(before)
  const missing = await command('import', 'devices', join(folder, 'nothing.csv'))
  expect(missing).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^sallyport: ENOENT.*nothing\.csv/),
  })
})

test.each([
  [['import'], /expected a type: one of profiles, /],
  [['import', 'device', 'x'], /expected a type/],
  [['import', 'devices'], /expected import TYPE FILE/],
  [['import', 'devices', 'x', '--separator', '""'], /--separator: expected one character/],
  [['export', 'nothing'], /expected a type/],
  [['export', 'devices', 'x'], /one word too many/],
])('wrong usage: %j', async (args, message) => {
  const done = await command(...args)
  expect(done).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
})

test(
  'many changes go beside a running broker by the API only, and straight in when it does not run',
  SLOW,
  async () => {
    const rows = Array.from({ length: 10_001 }, (_, i) => `many${i};192.0.2.1`)
    const table = file('many.csv', ['#device_name;host', ...rows].join('\n'))
    const beside = await command('import', 'devices', table)
    expect(beside).toMatchObject({ code: 1, stdout: '' })
    expect(beside.stderr).toMatch(/a broker is running on this data, and 10001 changes would hold it up/)
    expect(await devices()).not.toContain('many0')
    await broker.kill()
    const alone = await command('import', 'devices', table)
    expect(alone).toMatchObject({ code: 0, stderr: '' })
    expect(alone.stdout).toMatch(/^10001 created, 0 updated, 0 unchanged$/m)
    const verified = await command('audit', 'verify')
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok: 100\d\d rows/) })
  },
)
