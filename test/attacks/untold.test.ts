/**
 * A user tries to act without a log: while the receiver of events is down, by killing the broker, by changing
 * the receivers, or by the command line. The receiver is a real rsyslogd; only its output counts.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { sallyport } from '../e2e/recorded.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Rsyslog, type SyslogMessage, startRsyslog } from '../peers/rsyslog.ts'
import { until } from '../until.ts'

type Fields = Record<string, string>
const fieldsOf = (message: SyslogMessage): Fields => message['rfc5424-sd']?.['sallyport@32473'] ?? {}
const rowOf = (message: SyslogMessage): number => Number(fieldsOf(message)['sequence'])

describeWithPeers('doing something untold', ['rsyslogd'], () => {
  let rsyslog: Rsyslog
  let broker: Broker
  let folder: string
  /** Messages of receivers that were stopped. */
  let earlier: SyslogMessage[] = []

  const config = () => ({ syslog: [{ host: '127.0.0.1', port: rsyslog.port, transport: 'tcp' }] })
  const start = async () => {
    broker = await startBroker({ dataFolder: join(folder, 'data'), config: config() })
  }
  const messages = () => [...earlier, ...rsyslog.messages()]
  const heard = (what: string, fits: (code: string, fields: Fields) => boolean) =>
    until(what, () => messages().find((message) => fits(message.msgid, fieldsOf(message))))
  const device = (name: string) => broker.must('POST', '/devices', { device_name: name, host: '192.0.2.1' })
  const aboutDevice = (name: string) =>
    heard(name, (code, { object }) => code === 'object.create' && object === name)
  async function leave(): Promise<void> {
    earlier = messages()
    await rsyslog.stop()
  }
  const come = async () => {
    rsyslog = await startRsyslog(rsyslog.port)
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-untold-'))
    rsyslog = await startRsyslog()
    await start()
    await heard('the start', (code) => code === 'service.start')
  })
  afterAll(async () => {
    await broker.stop()
    await rsyslog.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Expects every row, in order; a repeated row was sent again with all rows after it. */
  function expectEveryRow(): void {
    let highest = 0
    for (const row of messages().map(rowOf)) {
      expect(row).toBeLessThanOrEqual(highest + 1)
      highest = Math.max(highest, row)
    }
    expect(highest).toBeGreaterThan(10)
  }

  test('while the receiver is away, over a broker that is killed, and one that stops', async () => {
    await leave()
    await device('while-away')
    await broker.kill()
    await start()
    await device('after-the-kill')
    await broker.stop()
    await start()
    await come()
    for (const name of ['while-away', 'after-the-kill']) await aboutDevice(name)
    await device('when-back')
    await aboutDevice('when-back')
    expectEveryRow()
  })

  test('in the moment before the broker is killed', async () => {
    for (let i = 0; i < 20; i++) await device(`before-${i}`)
    await broker.kill()
    await start()
    await aboutDevice('before-19')
    await device('after-it')
    await aboutDevice('after-it')
    expectEveryRow()
  })

  test('in the moment before the receiver is gone', async () => {
    for (let i = 0; i < 20; i++) await device(`last-${i}`)
    await leave()
    await device('into-the-void')
    await come()
    await aboutDevice('into-the-void')
    expectEveryRow()
  })

  test.each<[string, string[], string, Fields]>([
    ['an export', ['export', 'devices'], 'object.export', { object_type: 'devices' }],
    ['an export of the log', ['audit', 'export'], 'audit.export', {}],
    ['a password', ['admin', 'reset-password', 'admin'], 'secret.change', { object: 'admin' }],
    ['a backup', ['backup', 'BACKUP'], 'backup.end', {}],
    ['a check of recordings', ['recordings', 'verify'], 'recording.verify', { result: 'success' }],
    ['a search', ['recordings', 'search', 'needle'], 'recording.search', {}],
    ['a new master key', ['master-key', 'rotate'], 'secret.change', { object_type: 'master_key' }],
  ])('by the command line beside the broker: %s', async (_, words, code, fields) => {
    const args = words.map((word) => (word === 'BACKUP' ? join(folder, 'backup') : word))
    const done = await sallyport(broker, args, { env: { ...process.env, SUDO_USER: 'mallory' } })
    expect(done.stderr).toBe('')
    const message = await heard(
      code,
      (found, told) =>
        found === code &&
        told['uid'] !== undefined &&
        Object.entries(fields).every(([name, value]) => told[name] === value),
    )
    expect(fieldsOf(message)).toMatchObject({
      user: `local:${userInfo().username}`,
      uid: String(process.getuid?.()),
      sudo_user: 'mallory',
    })
  })

  test('by an import while no broker runs: an administrator is made, and told of at the next start', async () => {
    const configFile = join(folder, 'beside.yaml')
    writeFileSync(configFile, readFileSync(broker.configFile))
    await broker.stop()
    const table = join(folder, 'users.csv')
    writeFileSync(table, '#user_name;profile;user_auths\nbackdoor;product_administrator;local_password\n')
    const done = await sallyport({ configFile }, ['import', 'users', table], {
      env: { ...process.env, SUDO_USER: 'mallory' },
    })
    expect(done.stderr).toBe('')
    await start()
    const message = await heard(
      'the import',
      (code, { object }) => code === 'object.create' && object === 'backdoor',
    )
    expect(fieldsOf(message)).toMatchObject({
      method: 'import',
      uid: String(process.getuid?.()),
      sudo_user: 'mallory',
    })
    expectEveryRow()
  })

  test('by a configuration without the receiver: it is told that it is left', async () => {
    const text = readFileSync(broker.configFile, 'utf8')
    const second = await startRsyslog()
    try {
      const changed = parse(text)
      changed.syslog = [{ host: '127.0.0.1', port: second.port, transport: 'tcp' }]
      writeFileSync(broker.configFile, stringify(changed))
      process.kill(broker.pid, 'SIGHUP')
      const told = await heard('the reload', (code) => code === 'config.reload')
      expect(fieldsOf(told)).toMatchObject({ changes: 'syslog[0].port', result: 'success' })
      expect(JSON.stringify(told)).not.toContain(String(second.port))
      await until('the new receiver hears who was left', () =>
        second
          .messages()
          .find((one) => one.msgid === 'sink.end' && fieldsOf(one)['object']?.endsWith(`:${rsyslog.port}`)),
      )
      writeFileSync(broker.configFile, text)
      process.kill(broker.pid, 'SIGHUP')
      await until(
        'the reload back',
        () => second.messages().filter(({ msgid }) => msgid === 'config.reload')[0],
      )
      await heard(
        'the beginning anew',
        (code, { reason }) => code === 'sink.begin' && reason?.includes('new here') === true,
      )
    } finally {
      await second.stop()
    }
  })

  test('by a configuration without the receiver at a restart: the others hear of it', async () => {
    await broker.stop()
    const other = await startRsyslog(await freePort())
    const left = rsyslog
    try {
      rsyslog = other
      await start()
      const end = await until('the end', () => other.messages().find(({ msgid }) => msgid === 'sink.end'))
      expect(fieldsOf(end)['object']).toBe(`tcp://127.0.0.1:${left.port}`)
      await broker.stop()
    } finally {
      rsyslog = left
      await other.stop()
      await start()
    }
  })
})
