/** The command line, run as users run it: beside a broker, without one, and in error cases. */
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { formatMasterKey, newMasterKey } from '../../src/vault/master-key.ts'
import { sallyportCommand, startBroker } from '../peers/broker.ts'
import { createHome } from '../peers/home.ts'
import { ssh } from '../peers/openssh.ts'
import { freePort, type RunResult, run, startDaemon } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { isAlive } from '../peers/users.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { sallyport } from './recorded.ts'

/** For tests that run many programs: on a busy machine each takes seconds. */
const SLOW = { timeout: 300_000 }
const folder = mkdtempSync(join(tmpdir(), 'sallyport-commands-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/**
 * Writes a configuration with listeners on free ports and the given keys; its data folder does not exist yet.
 */
async function configure(name: string, keys: Record<string, unknown> = {}) {
  const listener = async () => ({ host: '127.0.0.1', port: await freePort() })
  const listen = {
    https: await listener(),
    ssh: await listener(),
    telnet: await listener(),
    rlogin: await listener(),
    telnets: await listener(),
    vnc: await listener(),
    rdp: await listener(),
    metrics: await listener(),
  }
  const configFile = join(folder, `${name}.yaml`)
  const dataFolder = join(folder, name)
  writeFileSync(configFile, stringify({ data_dir: dataFolder, listen, ...keys }))
  return { configFile, dataFolder, listen }
}
const nowhere = { configFile: join(folder, 'none.yaml') }
/** Returns the findings of `check`, by subject. */
function findings({ stdout }: RunResult): Record<string, string> {
  const lines = stdout.trim().split('\n')
  return Object.fromEntries(
    lines.map((line) => JSON.parse(line)).map(({ level, subject, text }) => [subject, `${level}: ${text}`]),
  )
}
const serve = (broker: { configFile: string }) => sallyport(broker, ['serve'], { timeout: 300_000 })

describe('check', () => {
  test('on a fresh configuration all is well, and nothing is made', async () => {
    const fresh = await configure('fresh')
    const done = await sallyport(fresh, ['check', '--json'])
    expect(done).toMatchObject({ code: 0, stderr: '' })
    const found = findings(done)
    for (const subject of ['configuration', 'https', 'ssh', 'metrics', 'store', 'disk']) {
      expect(found[subject]).toMatch(/^ok: /)
    }
    // A warning where nothing keeps the machine's clock in step.
    expect(found['clock']).toMatch(/^(ok|warning): /)
    expect(found['store']).toContain('will be made at the first start')
    expect(existsSync(fresh.dataFolder)).toBe(false)
    const forPeople = await sallyport(fresh, ['check'])
    expect(forPeople.stdout).toMatch(/^ok +configuration +.*fresh\.yaml$/m)
  })

  describe('a taken port', () => {
    let holder: Server
    let taken: Awaited<ReturnType<typeof configure>>
    beforeAll(async () => {
      taken = await configure('taken')
      holder = createServer()
      await new Promise<void>((resolve) => holder.listen(taken.listen.ssh.port, '127.0.0.1', resolve))
    })
    afterAll(() => {
      holder.close()
    })
    const message = () => {
      const { port } = taken.listen.ssh
      return `cannot listen for ssh on 127.0.0.1:${port}: the port is held by node (process ${process.pid}); stop it, or set another port at listen.ssh.port`
    }

    test('is named by check, with who holds it', async () => {
      const done = await sallyport(taken, ['check', '--json'])
      expect(done.code).toBe(1)
      expect(findings(done)['ssh']).toContain(`error: ${message().replace(/by node .*/, 'by ')}`)
      expect(findings(done)['ssh']).toContain(`(process ${process.pid})`)
      expect(findings(done)['https']).toMatch(/^ok: /)
    })

    test('is fatal for serve, which leaves nothing running', async () => {
      const done = await serve(taken)
      expect(done.code).toBe(1)
      expect(done.stderr).toMatch(
        new RegExp(
          `^sallyport: cannot listen for ssh on 127\\.0\\.0\\.1:${taken.listen.ssh.port}: the port is held by .*process ${process.pid}`,
        ),
      )
      expect(done.stdout).not.toContain('sallyport is ready')
      expect(existsSync(join(taken.dataFolder, 'sallyport.pid'))).toBe(false)
    })
  })
})

describe('a faulty configuration', () => {
  test.each([
    ['an unknown key', { lisen: {} }, /lisen: unknown key; the nearest known one is listen$/m],
    [
      'an unknown key below',
      { recordings: { mni_free: '1GiB' } },
      /recordings\.mni_free: unknown key; the nearest known one is recordings\.min_free$/m,
    ],
    ['a bad value', { login_grace: 'soon' }, /login_grace: expected a duration such as .*, got "soon"/],
    [
      'a database without a user',
      { database: { url: 'postgres://localhost/sallyport' } },
      /database\.url: expected the name of a user before the host/,
    ],
  ])('%s stops serve, and check names it', async (name, keys, message) => {
    const faulty = await configure(name.replaceAll(' ', '-'), keys)
    const checked = await sallyport(faulty, ['check'])
    expect(checked.code).toBe(1)
    expect(checked.stdout).toMatch(/^error +configuration /)
    expect(checked.stdout).toMatch(message)
    const served = await serve(faulty)
    expect({ code: served.code, stdout: served.stdout }).toEqual({ code: 1, stdout: '' })
    expect(served.stderr).toMatch(/^sallyport: /)
    expect(served.stderr).toMatch(message)
    expect(existsSync(faulty.dataFolder)).toBe(false)
  })

  test('that is not there is an error of every command', SLOW, async () => {
    for (const words of [['serve'], ['recordings', 'list'], ['master-key', 'rotate']]) {
      const done = await sallyport(nowhere, words)
      expect(done).toMatchObject({ code: 1, stdout: '' })
      expect(done.stderr).toMatch(/^sallyport: cannot read the configuration .*none\.yaml/)
    }
  })
})

test('wrong usage is exit code 2 and shows the usage, and so is no command at all', async () => {
  const done = await sallyport(nowhere, ['recordings', 'eat'])
  expect(done).toMatchObject({ code: 2, stdout: '' })
  expect(done.stderr).toMatch(/^sallyport: .+\nusage:\n/)
  const [command, args] = sallyportCommand([])
  expect(await run(command, args)).toMatchObject({ code: 2 })
})

test('version prints the version of the package', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const [command, args] = sallyportCommand(['version'])
  expect(await run(command, args)).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' })
  const [, json] = sallyportCommand(['version', '--json'])
  expect(JSON.parse((await run(command, json)).stdout)).toMatchObject({ version })
})

describeWithPeers('beside a broker', ['sshd', 'ssh'], () => {
  let bastion: Bastion
  let dataFolder: string
  const session = () => ssh(bastion.home, bastion.login(), ['echo reached'])

  beforeAll(async () => {
    dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-data-'))
    bastion = await startBastion({ credential: 'password', broker: { dataFolder } })
    expect(await session()).toMatchObject({ code: 0 })
  })
  afterAll(async () => {
    await bastion.stop()
    rmSync(dataFolder, { recursive: true, force: true })
  })
  /** Copies the data under its own configuration, as after a restore from a copy. */
  async function copied(name: string): Promise<Awaited<ReturnType<typeof configure>>> {
    const copy = await configure(name)
    await bastion.closedSessions(1)
    cpSync(dataFolder, copy.dataFolder, { recursive: true, preserveTimestamps: true })
    chmodSync(copy.dataFolder, 0o700)
    rmSync(join(copy.dataFolder, 'sallyport.pid'), { force: true })
    return copy
  }

  test('check knows that it runs, and that the master key lies beside the data', async () => {
    const done = await sallyport(bastion.broker, ['check', '--json'])
    const found = findings(done)
    expect(done.code).toBe(0)
    expect(found['ssh']).toContain(`(process ${bastion.broker.pid} runs with this data folder)`)
    expect(found['keys']).toBe('ok: the master key opens the vault')
    expect(found['audit']).toMatch(/^ok: \d+ rows in order/)
    expect(found['master key']).toMatch(/^warning: .*lies beside the data/)
  })

  test('a copy of the data without its master key does not start, and gives nothing', async () => {
    const copy = await copied('without-key')
    const key = join(copy.dataFolder, 'master.key')
    rmSync(key)
    const served = await serve(copy)
    expect(served).toMatchObject({ code: 1 })
    expect(served.stderr).toBe(
      `sallyport: the master key ${key} is missing: put back the one that this database was sealed with\n`,
    )
    expect(existsSync(key)).toBe(false)
    const checked = await sallyport(copy, ['check', '--json'])
    expect(checked.code).toBe(1)
    expect(findings(checked)['store']).toContain(`error: the master key ${key} is missing`)
    const list = await sallyport(copy, ['recordings', 'verify'])
    expect(list).toMatchObject({ code: 1, stdout: '' })
  })

  test('with another master key neither', async () => {
    const copy = await copied('wrong-key')
    writeFileSync(join(copy.dataFolder, 'master.key'), formatMasterKey(newMasterKey()).reveal())
    const checked = await sallyport(copy, ['check', '--json'])
    expect(checked.code).toBe(1)
    expect(findings(checked)['store']).toMatch(/^error: .*master key/)
    const served = await serve(copy)
    expect(served).toMatchObject({ code: 1 })
    expect(served.stderr).toMatch(/^sallyport: .*master key/)
  })

  test('audit verify and export, and what a changed row does', SLOW, async () => {
    const exported = await sallyport(bastion.broker, ['audit', 'export'])
    expect(exported).toMatchObject({ code: 0, stderr: '' })
    const rows = exported.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, i) => i + 1))
    expect(rows).toContainEqual(
      expect.objectContaining({ code: 'session.open', fields: expect.objectContaining({ user: 'ops1' }) }),
    )
    const verified = await sallyport(bastion.broker, ['audit', 'verify', '--json'])
    expect(verified.code).toBe(0)
    expect(JSON.parse(verified.stdout)).toMatchObject({ rows: expect.any(Number), head: expect.any(String) })

    const opened = rows.find(({ code }) => code === 'session.open').sequence
    for (const [name, statement, at] of [
      ['changed', `UPDATE audit SET json = replace(json, 'ops1', 'ops2') WHERE sequence = ${opened}`, opened],
      ['deleted', `DELETE FROM audit WHERE sequence = ${opened}`, opened],
      ['renamed', `UPDATE audit SET code = 'session.close' WHERE sequence = ${opened}`, opened],
      ['cut', `DELETE FROM audit WHERE sequence >= ${opened}`, opened],
    ] as const) {
      const copy = await copied(`audit-${name}`)
      const database = new DatabaseSync(join(copy.dataFolder, 'sallyport.db'))
      expect(database.prepare(statement).run().changes).toBeGreaterThan(0)
      database.close()
      const found = await sallyport(copy, ['audit', 'verify'])
      expect(found.code).toBe(1)
      expect(found.stdout).toMatch(new RegExp(`^row ${at}: .*; ${at - 1} rows before it are in order\n$`))
      const checked = await sallyport(copy, ['check', '--json'])
      expect(checked.code).toBe(1)
      expect(findings(checked)['audit']).toMatch(new RegExp(`^error: row ${at}: `))
    }
  })

  test(
    'an outside auditor verifies an export and the recordings with one file and the public key',
    SLOW,
    async () => {
      const { stdout: key } = await sallyport(bastion.broker, ['audit', 'key'])
      expect(key).toMatch(/^[A-Za-z0-9+/]{43}= [0-9a-f]{16}\n$/)
      const folder = join(bastion.home.folder, 'auditor')
      cpSync(join(dataFolder, 'recordings'), join(folder, 'recordings'), { recursive: true })
      const { stdout: log } = await sallyport(bastion.broker, ['audit', 'export'])
      writeFileSync(join(folder, 'audit.jsonl'), log)
      const verify = () =>
        run(process.execPath, [
          ...[join(import.meta.dirname, '..', '..', 'bin', 'verify.mjs'), '--key', key.split(' ')[0]!],
          ...['--audit', join(folder, 'audit.jsonl'), join(folder, 'recordings')],
        ])
      const inOrder = await verify()
      expect(inOrder).toMatchObject({ code: 0, stderr: '' })
      expect(inOrder.stdout).toMatch(/audit\.jsonl {2}ok, \d+ rows/)
      expect(inOrder.stdout).toMatch(/session\.rec {2}ok, sealed: \d+ bytes/)
      const ids = /recordings\/(\d{4}\/\d\d\/\d\d)\/(\w{26})\/session\.rec {2}ok/.exec(inOrder.stdout)
      rmSync(join(folder, 'recordings', ids![1]!, ids![2]!), { recursive: true })
      const missing = await verify()
      expect(missing).toMatchObject({ code: 1 })
      expect(missing.stdout).toContain(`${ids![2]}  missing_session: `)
    },
  )

  test('admin reset-password prints a password that works at once, and the old one does not', async () => {
    const done = await sallyport(bastion.broker, ['admin', 'reset-password', 'ops1'])
    expect(done).toMatchObject({ code: 0, stderr: '' })
    const password = /^the new password of ops1 is (\S{20,})\n$/.exec(done.stdout)?.[1]
    expect(password).toBeDefined()
    const login = bastion.login({ password: password! })
    expect(await ssh(bastion.home, login, ['echo reached'])).toMatchObject({ stdout: 'reached\n' })
    expect(await session()).toMatchObject({ code: 255, stdout: '' })
    const { stdout } = await sallyport(bastion.broker, ['audit', 'export'])
    expect(stdout).toMatch(/"code":"secret\.change".*"object":"ops1"/)
    expect(stdout).not.toContain(password)
    const unknown = await sallyport(bastion.broker, ['admin', 'reset-password', 'nobody'])
    expect(unknown).toMatchObject({ code: 1, stderr: 'sallyport: there is no user "nobody"\n' })
    await bastion.broker.must('PUT', '/users/ops1', { password: bastion.password })
    expect(await session()).toMatchObject({ code: 0 })
  })

  test('recordings of a session that there is not', async () => {
    for (const action of ['verify', 'export', 'play']) {
      const done = await sallyport(bastion.broker, ['recordings', action, '01JD0000000000000000000001'])
      expect(done).toMatchObject({ code: 1, stdout: '' })
      expect(done.stderr).toMatch(/^sallyport: there is no recording of session 01JD0000000000000000000001/)
    }
  })

  test('master-key rotate: the next start works, and the old key opens nothing', SLOW, async () => {
    const key = join(dataFolder, 'master.key')
    const old = readFileSync(key, 'utf8')
    await bastion.broker.stop()
    const fresh = await configure('rotated', { data_dir: dataFolder })
    const done = await sallyport(fresh, ['master-key', 'rotate'])
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(done.stdout).toMatch(/was replaced: keep a copy of it apart \(fingerprint [0-9a-f]{16}\)/)
    const now = readFileSync(key, 'utf8')
    expect(now).not.toBe(old)
    expect(done.stdout).not.toContain(now.trim().slice(-44))

    const again = await startBroker({ dataFolder, ports: bastion.broker.ports })
    try {
      expect(await session()).toMatchObject({ code: 0, stdout: 'reached\n', stderr: '' })
      const exported = await sallyport(again, ['audit', 'export'])
      expect(exported.stdout).toMatch(/"code":"secret\.change".*"object":"master key"/)
      // Older recordings are opened with a key that the vault seals.
      const [first] = await again.must<{ id: string }[]>('GET', '/sessions?status=closed&sort=begin&limit=1')
      const text = await sallyport(again, ['recordings', 'export', first!.id, '--format', 'txt'])
      expect(text.stdout).toContain('reached')
    } finally {
      await again.stop()
    }
    writeFileSync(key, old)
    const refused = await serve(fresh)
    expect(refused).toMatchObject({ code: 1 })
    expect(refused.stderr).toMatch(/^sallyport: .*master key/)
    writeFileSync(key, now)
  })

  test(
    'master-key rotate --data-key: new keys for all, what was sealed and signed before opens and verifies',
    SLOW,
    async () => {
      const renewed = await configure('renewed', { data_dir: dataFolder })
      const running = await startBroker({ dataFolder, ports: bastion.broker.ports })
      const early = await sallyport(renewed, ['master-key', 'rotate', '--data-key'])
      await running.stop()
      expect(early).toMatchObject({ code: 1, stdout: '' })
      expect(early.stderr).toContain('stop the broker first')

      const keys = async () => (await sallyport(renewed, ['audit', 'key'])).stdout.trim().split('\n')
      const [before] = await keys()
      const done = await sallyport(renewed, ['master-key', 'rotate', '--data-key'])
      expect(done).toMatchObject({ code: 0, stderr: '' })
      const [present, former] = await keys()
      expect(former).toBe(`${before} replaced`)
      expect(done.stdout).toContain(`new signing key ${present!.split(' ')[1]}`)

      const again = await startBroker({ dataFolder, ports: bastion.broker.ports })
      try {
        expect(await session()).toMatchObject({ code: 0, stdout: 'reached\n', stderr: '' })
        const list = await again.must<{ id: string }[]>('GET', '/sessions?status=closed&sort=begin&limit=-1')
        for (const { id } of [list[0]!, list.at(-1)!]) {
          const text = await sallyport(again, ['recordings', 'export', id, '--format', 'txt'])
          expect(text.stdout).toContain('reached')
        }
        expect(await sallyport(again, ['recordings', 'verify'])).toMatchObject({ code: 0 })
        expect(await sallyport(again, ['audit', 'verify'])).toMatchObject({ code: 0 })

        const log = join(folder, 'renewed.jsonl')
        writeFileSync(log, (await sallyport(again, ['audit', 'export'])).stdout)
        const recordings = join(dataFolder, 'recordings')
        const verifier = join(import.meta.dirname, '..', '..', 'bin', 'verify.mjs')
        const verify = (...trusted: string[]) =>
          run(process.execPath, [
            verifier,
            ...trusted.flatMap((one) => ['--key', one]),
            '--audit',
            log,
            recordings,
          ])
        expect(await verify(present!, former!)).toMatchObject({ code: 0 })
        expect(await verify(former!)).toMatchObject({ code: 1 })
      } finally {
        await again.stop()
      }
    },
  )
})

describe('the first start', () => {
  test('shows the password of admin once, when none was given', async () => {
    const fresh = await configure('first')
    const [command, args] = sallyportCommand(['serve', '--config', fresh.configFile])
    const { SALLYPORT_ADMIN_PASSWORD: _, ...env } = process.env
    const start = () => startDaemon(command, args, /^sallyport is ready$/m, { env })
    const first = await start()
    await first.stop()
    expect(first.log()).toMatch(
      /^the user admin was created with the password \S{20} \(shown only this once\)$/m,
    )
    const second = await start()
    await second.stop()
    expect(second.log()).not.toContain('password')
    for (const [name, { port }] of Object.entries(fresh.listen)) {
      expect(second.log()).toMatch(new RegExp(`^${name} .*127\\.0\\.0\\.1:${port}`, 'm'))
    }
  })
})

describeWithPeers('demo', ['sshd', 'ssh'], () => {
  test('prints a line that works, replays the session, and leaves nothing behind', async () => {
    const [command, args] = sallyportCommand(['demo'])
    const demo = await startDaemon(command, args, /Ctrl-C ends the demo/)
    const home = createHome()
    try {
      const line = /^ {2}ssh (.*)$/m.exec(demo.log())?.[1]
      const password = /^The password is: (\S+)/m.exec(demo.log())?.[1]
      const configFile = /recordings list --config (\S+)$/m.exec(demo.log())![1]!
      const words = [...line!.split(' '), 'echo from-the-demo']
      const done = await run(findProgram('ssh'), words, { env: home.env(password) })
      expect(done).toMatchObject({ code: 0, stdout: 'from-the-demo\n', stderr: '' })

      const list = await sallyport({ configFile }, ['recordings', 'list', '--json'])
      const { session } = JSON.parse(list.stdout.split('\n')[0]!)
      const played = await sallyport({ configFile }, ['recordings', 'play', session])
      expect(played).toMatchObject({ code: 0, stderr: '' })
      expect(played.stdout).toContain('from-the-demo')

      process.kill(demo.pid, 'SIGINT')
      await until('the end', () => demo.log().includes('the demo ends') || undefined)
      // npm forwards the signal, possibly after the process has ended.
      if (isAlive(demo.pid)) process.kill(demo.pid, 'SIGINT')
      // null if the signal came when the process was about to end, and Node no longer handled it.
      expect([0, null]).toContain(await demo.ended)
      expect(existsSync(dirname(configFile))).toBe(false)
    } finally {
      await demo.stop()
      home.remove()
    }
  })
})
