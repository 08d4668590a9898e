/** The file for support, of a broker that was not started and is ill in places: it holds no secret of any place. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { doctor } from '../../src/commands/doctor.ts'
import { scrubbed } from '../../src/commands/scrub.ts'
import { Canaries } from '../attacks/canaries.ts'
import { freePort } from '../peers/process.ts'

const canaries = new Canaries()
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-doctor-'))
  mkdirSync(join(folder, 'data'), { mode: 0o700 })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = (configFile: string, output: string) =>
  doctor.run({ config: configFile, options: { output }, words: [], all: async () => [] })

async function configured(more: object): Promise<string> {
  const listener = async () => ({ host: '127.0.0.1', port: await freePort() })
  const listen = { https: await listener(), metrics: await listener() }
  const off = Object.fromEntries(['ssh', 'telnet', 'rlogin', 'vnc', 'rdp'].map((name) => [name, 'off']))
  const file = join(folder, 'sallyport.yaml')
  const config = { data_dir: 'data', workers: 0, listen: { ...listen, ...off }, ...more }
  writeFileSync(file, stringify(config), { mode: 0o600 })
  return file
}

test('it has what support asks for, and none of the secrets of configuration, files, variables and log', async () => {
  const key = join(folder, 'key')
  const env = 'SALLYPORT_TEST_COMMUNITY'
  process.env[env] = canaries.plain('a community in a variable')
  writeFileSync(key, canaries.awkward('an authentication in a file'), { mode: 0o600 })
  writeFileSync(join(folder, 'data', 'master.key'), canaries.plain('the master key'), { mode: 0o600 })
  const log = join(folder, 'sallyport.log')
  const ofFile = readFileSync(key, 'utf8')
  const lines = [
    { level: 'info', message: 'in order' },
    { level: 'error', error: { message: `refused for ${ofFile}` } },
    { level: 'warn', password: canaries.awkward('a password in a field') },
    { level: 'warn', message: `ldap://cn=x:${canaries.plain('a password in a URL')}@host/` },
    { level: 'warn', message: `Authorization: Bearer ${canaries.plain('a token')}` },
    { level: 'warn', message: `-----BEGIN OPENSSH PRIVATE KEY-----\n${canaries.plain('a key')}\n-----END` },
    {
      level: 'info',
      message: `admin was created with the password ${canaries.plain('a printed one')} (shown`,
    },
    { level: 'warn', message: `passphrase=${canaries.plain('a passphrase')}&x=1` },
  ]
  writeFileSync(log, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const trap = { host: '127.0.0.1', port: await freePort() }
  const configFile = await configured({
    hostname: 'bastion.example.com',
    log: { file: log },
    database: { url: `postgres://sallyport:${canaries.plain('the password of the database')}@127.0.0.1:1/x` },
    snmp: {
      traps: [
        { ...trap, version: '2c', community: { env } },
        {
          ...trap,
          version: 3,
          inform: true,
          user: 'noc',
          auth_password: { file: key },
          priv_password: canaries.plain('a privacy'),
        },
      ],
    },
  })
  const output = join(folder, 'report.json')
  try {
    expect(await run(configFile, output)).toBe(0)
  } finally {
    delete process.env[env]
  }
  expect(statSync(output).mode & 0o777).toBe(0o600)
  const text = readFileSync(output, 'utf8')
  // The log's own lines are texts within the report.
  expect(canaries.in(text)).toEqual([])
  const report = JSON.parse(text)
  expect(
    report.check.filter(({ subject }: { subject: string }) => subject === 'configuration'),
  ).toMatchObject([{ level: 'ok' }])
  expect(canaries.in(report.log.join('\n'))).toEqual([])
  expect(report).toMatchObject({
    version: expect.stringMatching(/^\d/),
    node: process.version,
    schema: expect.any(Number),
    configuration: { hostname: 'bastion.example.com', snmp: { traps: [{ community: '[secret]' }, {}] } },
    store: { fault: expect.any(String) },
    disk: [{ free: expect.any(Number) }, {}],
    metrics: { fault: expect.stringContaining('ECONNREFUSED') },
  })
  expect(report.log).toHaveLength(lines.length)
  expect(report.log[0]).toContain('in order')
  const subjects = report.check.map(({ subject }: { subject: string }) => subject)
  expect(subjects).toEqual(expect.arrayContaining(['crypto', 'https', 'store', 'traps', 'clock', 'disk']))

  await expect(run(configFile, output), 'a second report never replaces the first').rejects.toThrow('EEXIST')
})

test('a configuration that is refused is named by its faults, without its text', async () => {
  const configFile = await configured({ master_key: canaries.plain('a key where none belongs') })
  const output = join(folder, 'refused.json')
  expect(await run(configFile, output)).toBe(0)
  const text = readFileSync(output, 'utf8')
  expect(canaries.in(text)).toEqual([])
  expect(JSON.parse(text)).toMatchObject({ check: [{ level: 'error', subject: 'configuration' }] })
})

test('words that are no secrets stay', () => {
  const said = '{"message":"the password of ops1 was changed","user":"ops1","tokens":3}'
  expect(scrubbed(said, [])).toContain('the password of ops1 was changed')
})

// Each would take minutes if every beginning were read to the end.
test.each(['a.', 'x://a:', '-----BEGIN ', 'PRIVATE KEY', 'password'])('a long line of %j ends', (piece) => {
  const line = `-----BEGIN ${piece.repeat(256 * 1024)}`
  expect(scrubbed(line, []).length).toBeGreaterThan(0)
})
