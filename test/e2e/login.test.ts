/** `sallyport login` writes a certificate, and OpenSSH's clients sign in by it without a question until it is withdrawn. */
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ADMIN_PASSWORD, sallyportCommand } from '../peers/broker.ts'
import { generateKey, type SshKey } from '../peers/keys.ts'
import { scp, ssh, sshTerminal } from '../peers/openssh.ts'
import { type RunResult, run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { openTerminal } from '../peers/terminal.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { type Enrolled, enrol } from './enrolment.ts'
import { sallyport } from './recorded.ts'

const OBJECT_TYPE = 'user certificate'

describeWithPeers('sallyport login', ['ssh', 'sshd', 'ssh-keygen', 'scp', 'oathtool'], () => {
  let bastion: Bastion
  let factor: Enrolled
  let key: SshKey

  beforeAll(async () => {
    bastion = await startBastion()
    // It is not among the user's keys.
    key = await generateKey(bastion.home.folder, { type: 'ecdsa' })
    factor = await enrol(bastion.broker, 'ops1', bastion.password)
  })
  afterAll(() => bastion.stop())

  const environment = (): NodeJS.ProcessEnv => ({
    ...process.env,
    SALLYPORT_URL: `https://127.0.0.1:${bastion.broker.ports.https}`,
    SALLYPORT_CA: join(bastion.broker.dataFolder, 'tls', 'cert.pem'),
    SALLYPORT_USER: 'ops1',
  })
  const login = (input: string, ...more: string[]): Promise<RunResult> => {
    const [program, args] = sallyportCommand(['login', '--key', key.path, ...more])
    return run(program, args, { env: environment(), input })
  }
  const certified = () => {
    const { port, user } = bastion.login()
    return { port, user, identity: key.path, options: ['BatchMode=yes'] }
  }
  const exit7 = async () => (await ssh(bastion.home, certified(), ['exit 7'])).code
  const own = async () =>
    (await bastion.broker.must<{ id: string }[]>('GET', '/users/ops1/certificates')).map(({ id }) => id)

  test('asks at a terminal, and echoes no secret; ssh and scp then ask nothing', async () => {
    expect(await exit7()).toBe(255)
    const [program, args] = sallyportCommand(['login', '--key', key.path, '--duration', '2h'])
    const terminal = openTerminal(program, args, { env: environment() })
    await terminal.expect('Password: ')
    terminal.send(`${bastion.password}\r`)
    await terminal.expect('One-time code (or a recovery code): ')
    const code = await factor.newCode()
    terminal.send(`${code}\r`)
    await terminal.expect('-cert.pub: valid until ')
    expect(await terminal.exit()).toBe(0)
    expect(terminal.output()).not.toContain(bastion.password)
    expect(terminal.output()).not.toContain(code)
    expect(await exit7()).toBe(7)
    const file = join(bastion.home.folder, 'copied')
    writeFileSync(file, 'over a certificate')
    const copied = await scp(bastion.home, certified(), file, { remote: '/tmp/sallyport-certified' })
    rmSync('/tmp/sallyport-certified', { force: true })
    expect(copied.code).toBe(0)
    expect(await bastion.events('object.create')).toContainEqual(
      expect.objectContaining({ object_type: OBJECT_TYPE, user: 'ops1' }),
    )
    const [success] = (await bastion.events('auth.success')).filter(
      ({ object_type: type }) => type === 'certificate',
    )
    expect(success).toMatchObject({
      user: 'ops1',
      protocol: 'SSH',
      object: expect.stringContaining('sallyport user=ops1'),
    })
  })

  test('refuses a wrong password and a wrong code, and leaves the certificate that is there', async () => {
    const before = readFileSync(`${key.path}-cert.pub`, 'utf8')
    const wrong = await login('wrong\n')
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('invalid_credentials')])
    const code = await login(`${bastion.password}\n000000\n`)
    expect([code.code, code.stderr]).toEqual([1, expect.stringContaining('invalid_credentials')])
    const cut = await login(`${bastion.password}\n`)
    expect([cut.code, cut.stderr]).toEqual([1, expect.stringContaining('the input has ended')])
    expect(readFileSync(`${key.path}-cert.pub`, 'utf8')).toBe(before)
  })

  test('is of one key and one user only', async () => {
    const { port } = bastion.login()
    await bastion.broker.must('POST', '/users', {
      user_name: 'ops2',
      profile: 'user',
      user_auths: ['local_sshkey'],
    })
    const user = bastion.login().user.replace('ops1', 'ops2')
    const options = ['BatchMode=yes']
    expect((await ssh(bastion.home, { port, user, identity: key.path, options }, ['true'])).code).toBe(255)
    const other = await generateKey(bastion.home.folder, { type: 'ecdsa' })
    writeFileSync(`${other.path}-cert.pub`, readFileSync(`${key.path}-cert.pub`))
    expect((await ssh(bastion.home, { ...certified(), identity: other.path }, ['true'])).code).toBe(255)
  })

  test('ends with the certificate, which the user or an administrator withdraws: the running session too', async () => {
    const terminal = sshTerminal(bastion.home, certified())
    await terminal.expect(bastion.account.prompt)
    for (const id of await own()) await bastion.broker.must('DELETE', `/users/ops1/certificates/${id}`)
    await terminal.expect('the certificate of the sign-in was withdrawn')
    await terminal.exit()
    expect(await exit7()).toBe(255)
  })

  test('ends with another password', async () => {
    const again = await login(`${bastion.password}\n${await factor.newCode()}\n`)
    expect(again.code).toBe(0)
    expect(await exit7()).toBe(7)
    await bastion.broker.must('PUT', '/users/ops1', { password: 'quite another one 9' })
    expect(await exit7()).toBe(255)
  })

  describe('questions in one line', () => {
    const state = () => join(bastion.home.folder, 'state')
    const asked = async (words: string[], more: NodeJS.ProcessEnv = {}) => {
      const env = { ...environment(), SALLYPORT_USER: 'admin', XDG_STATE_HOME: state(), ...more }
      return await run(...sallyportCommand(words), { env })
    }
    const EVENTS = ['events', 'list', '--event', 'session.open', '--user', 'OPS1', '--from', '2h', '--json']
    let local: RunResult

    // Of the sessions above.
    beforeAll(async () => {
      const { configFile } = bastion.broker
      local = await sallyport({ configFile }, [...EVENTS, '--target', `${bastion.account.name}@srv1`])
    })

    test('are answered here, beside the broker', async () => {
      expect([local.code, local.stderr]).toEqual([0, ''])
      const rows = local.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
      expect(rows[0]).toMatchObject({
        event: 'session.open',
        user: 'ops1',
        device: 'srv1',
        severity: 'notice',
      })
      const { configFile } = bastion.broker
      const none = await sallyport({ configFile }, [...EVENTS, '--to', 'yesterday'])
      expect([none.code, none.stdout]).toEqual([0, ''])
      const listed = await sallyport({ configFile }, ['recordings', 'list', '--user', 'ops1', '--limit', '1'])
      expect(listed.stdout).toMatch(/^01[0-9A-Z]{24} \S+ \d+ \S+ ops1 \S+@srv1:ssh\n$/)
    })

    test('are answered elsewhere by the sign-in that login has kept, until its end', async () => {
      const [program, args] = sallyportCommand(['login', '--keep'])
      const env = { ...environment(), SALLYPORT_USER: 'admin', XDG_STATE_HOME: state() }
      const done = await run(program, args, { env, input: `${ADMIN_PASSWORD}\n` })
      expect([done.code, done.stderr]).toEqual([0, expect.not.stringContaining(ADMIN_PASSWORD)])
      const file = join(state(), 'sallyport', 'sign-in.json')
      expect(statSync(file).mode & 0o777).toBe(0o600)
      const { cookie } = JSON.parse(readFileSync(file, 'utf8'))
      expect(done.stdout).not.toContain(cookie.split('=')[1])
      const target = ['--target', `${bastion.account.name}@srv1`]
      expect(await asked([...EVENTS, ...target])).toMatchObject({ code: 0, stdout: local.stdout, stderr: '' })
      const all = await asked([
        'sessions',
        'list',
        '--status',
        'all',
        '--user',
        'ops1',
        '--target',
        'srv1:ssh',
      ])
      expect(all.stdout).toMatch(/ ops1 \S+@srv1:ssh SSH$/m)
      const recorded = await asked(['recordings', 'list', '--from', 'yesterday', '--limit', '1', '--json'])
      expect(JSON.parse(recorded.stdout).recording).toMatchObject({ size: expect.any(Number) })
      expect((await asked(['login', '--end'])).code).toBe(0)
      expect(existsSync(file)).toBe(false)
      const after = await asked(EVENTS)
      expect([after.code, after.stdout]).toEqual([2, ''])
      expect(after.stderr).toContain('sallyport login --keep')
    })

    test('are answered by a key alone, which is in no output, and refused as the API refuses', async () => {
      const made = async (name: string, profile: string) => {
        const body = { key_name: name, profile }
        const { api_key } = await bastion.broker.must<{ api_key: string }>('POST', '/apikeys', body)
        writeFileSync(join(bastion.home.folder, name), api_key, { mode: 0o600 })
        return { SALLYPORT_API_KEY_FILE: join(bastion.home.folder, name), SALLYPORT_USER: undefined }
      }
      const audit = await asked(EVENTS, await made('asking', 'auditor'))
      expect([audit.code, audit.stderr]).toEqual([0, ''])
      expect(audit.stdout).toContain('session.open')
      const user = await asked(EVENTS, await made('nobody', 'user'))
      expect([user.code, user.stdout]).toEqual([1, ''])
      expect(user.stderr).toContain('forbidden')
      const wrong = await asked([...EVENTS, '--from', 'whenever'], { SALLYPORT_API_KEY: 'x' })
      expect(wrong.code).toBe(2)
    })
  })
})
