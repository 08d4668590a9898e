/**
 * Targets that are down, refuse, disconnect or never answer: the user reads which it was, and the session is
 * closed and logged. Also two targets that are not OpenSSH, or prompt in another way.
 */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Dropbear, startDropbear } from '../peers/dropbear.ts'
import { generateKey } from '../peers/keys.ts'
import { scp, sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { descendants, freePort, type RunResult } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { until } from '../until.ts'
import { ALL_RIGHTS, type Bastion, type SessionRow, startBastion } from './bastion.ts'

type Credentials = ({ type: 'password'; password: string } | { type: 'ssh_key'; private_key: string })[]

describeWithPeers('targets', ['sshd', 'ssh', 'scp', 'sftp', 'dropbear', 'dropbearkey'], () => {
  let bastion: Bastion
  let sessions = 0

  beforeAll(async () => {
    bastion = await startBastion({ credential: 'password' })
  })
  afterAll(() => bastion.stop())
  beforeEach(async () => {
    sessions = (await bastion.closedSessions()).length
  })

  /** Adds a device on which ops1 has every right; returns the login string. */
  async function addTarget(
    device: string,
    port: number,
    credentials: Credentials = [{ type: 'password', password: bastion.account.password }],
    host = '127.0.0.1',
  ): Promise<string> {
    const { broker, account } = bastion
    await broker.must('POST', '/devices', { device_name: device, host })
    await broker.must('POST', `/devices/${device}/services`, { service_name: 'ssh', protocol: 'SSH', port })
    await broker.must('POST', '/accounts', {
      account_name: account.name,
      device,
      domain: 'local',
      credentials,
    })
    await broker.must('POST', '/targetgroups', {
      group_name: `${device}-targets`,
      session: { accounts: [`${account.name}@local:${device}:ssh`] },
    })
    await broker.must('POST', '/authorizations', {
      user_group: 'ops1-srv1-users',
      target_group: `${device}-targets`,
      authorize_sessions: true,
      subprotocols: ALL_RIGHTS,
    })
    return `ops1+${account.name}@${device}`
  }

  const login = (user: string): Promise<RunResult> =>
    ssh(bastion.home, bastion.login({ user }), ['echo reached'], { timeout: 300_000 })

  /** Returns the session that ended last, once there is one more than before. */
  async function ended(): Promise<SessionRow> {
    const rows = await bastion.closedSessions(sessions + 1)
    expect(rows).toHaveLength(sessions + 1)
    sessions = rows.length
    return rows.at(-1)!
  }

  /** Expects the same reason on the user's screen, in the session's row and in the audit log. */
  async function expectFailure(result: RunResult, reason: RegExp): Promise<void> {
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code: 255, stdout: '' })
    expect(result.stderr).toMatch(reason)
    expect(result.stderr).toMatch(/^sallyport: [^\n]+\r?\n$/)
    const row = await ended()
    expect(row).toMatchObject({ result: 'failure', bytes_in: 0, recording: { state: 'sealed' } })
    expect(row.reason).toMatch(reason)
    expect(result.stderr).toContain(row.reason)
    const closed = await until('the event session.close', async () =>
      (await bastion.events('session.close')).find(({ session }) => session === row.id),
    )
    expect(closed).toMatchObject({ result: 'failure', reason: row.reason, severity: 'warning' })
  }

  describe('that cannot be reached', () => {
    test('nothing listens there', async () => {
      const user = await addTarget('closed', await freePort())
      await expectFailure(await login(user), /cannot connect to closed .*connection refused/)
    })

    test('its name does not resolve', async () => {
      const user = await addTarget('nameless', 22, undefined, 'no-such-host.invalid')
      await expectFailure(await login(user), /cannot connect to nameless .*does not resolve/)
    })

    test('sftp and scp say it too', async () => {
      const user = `ops1+${bastion.account.name}@closed`
      const bySftp = await sftp(bastion.home, bastion.login({ user }), ['ls'])
      expect(bySftp.code).toBe(255)
      expect(bySftp.stderr).toContain('connection refused')
      await ended()
      const file = join(bastion.home.folder, 'sshConfig.copy')
      const byScp = await scp(bastion.home, bastion.login({ user }), { remote: 'x' }, file)
      expect(byScp.code).toBe(255)
      expect(byScp.stderr).toContain('connection refused')
      expect(existsSync(file)).toBe(false)
      await ended()
    })

    test('on a terminal it stands on a line of its own', async () => {
      const user = `ops1+${bastion.account.name}@closed`
      const terminal = sshTerminal(bastion.home, bastion.login({ user }))
      expect(await terminal.exit()).toBe(255)
      expect(terminal.output()).toMatch(/^sallyport: cannot connect to closed .*\r\n/m)
      await ended()
    })
  })

  describe('that refuse the credential', () => {
    let dropbear: Dropbear
    let wrongKey: string
    const refused = (device: string) =>
      new RegExp(`${device} \\(127\\.0\\.0\\.1:\\d+\\) refused the credential of ${bastion.account.name}`)

    beforeAll(async () => {
      dropbear = await startDropbear()
      wrongKey = (await generateKey(bastion.home.folder, { type: 'ed25519' })).privateKey
    })
    afterAll(() => dropbear.stop())

    test.each([
      ['sshd', 'password'],
      ['sshd', 'key'],
      ['dropbear', 'password'],
      ['dropbear', 'key'],
    ])('%s, wrong %s', async (program, kind) => {
      const device = `${program}-${kind}`
      const port = program === 'sshd' ? bastion.sshd.port : dropbear.port
      const user = await addTarget(device, port, [
        kind === 'key'
          ? { type: 'ssh_key', private_key: wrongKey }
          : { type: 'password', password: 'canary-wrong-password' },
      ])
      const result = await login(user)
      expect(result.stderr).not.toContain('canary')
      await expectFailure(result, refused(device))
    })

    test('a second credential that fits is tried after one that does not', async () => {
      const user = await addTarget('two', bastion.sshd.port, [
        { type: 'ssh_key', private_key: wrongKey },
        { type: 'password', password: bastion.account.password },
      ])
      expect(await login(user)).toMatchObject({ code: 0, stdout: 'reached\n', stderr: '' })
      expect(await ended()).toMatchObject({ result: 'success' })
    })
  })

  describe('that break off, or never answer', () => {
    const servers: Server[] = []
    const sockets: Socket[] = []
    async function impostor(onSocket: (socket: Socket) => void): Promise<number> {
      const server = createServer((socket) => {
        sockets.push(socket)
        socket.on('error', () => undefined)
        onSocket(socket)
      })
      servers.push(server)
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      return (server.address() as { port: number }).port
    }
    afterAll(() => {
      for (const socket of sockets) socket.destroy()
      for (const server of servers) server.close()
    })
    const brokeOff = (device: string) => new RegExp(`${device} \\(\\S+\\) broke off the SSH handshake`)

    test('closed as soon as it was accepted', async () => {
      const user = await addTarget('closer', await impostor((socket) => socket.end()))
      await expectFailure(await login(user), brokeOff('closer'))
    })

    test('reset as soon as it was accepted', async () => {
      const user = await addTarget('resetter', await impostor((socket) => socket.resetAndDestroy()))
      // The kernel reports the reset to the broker either while it connects or after.
      const reason = /resetter \(\S+\)( broke off the SSH handshake|: the connection was reset)/
      await expectFailure(await login(user), reason)
    })

    test('closed after its banner', async () => {
      const user = await addTarget('greeter', await impostor((socket) => socket.end('SSH-2.0-greeter\r\n')))
      await expectFailure(await login(user), brokeOff('greeter'))
    })

    test('closed in the middle of the key exchange', async () => {
      const port = await impostor((socket) => {
        // A KEXINIT that announces more bytes than it has.
        socket.write('SSH-2.0-halfway\r\n')
        socket.write(Buffer.from([0, 0, 4, 0, 10, 20]))
        socket.once('data', () => setTimeout(() => socket.end(), 200))
      })
      await expectFailure(await login(await addTarget('halfway', port)), brokeOff('halfway'))
    })

    test('speaks another protocol', async () => {
      const port = await impostor((socket) => socket.end('220 smtp.example.com ESMTP\r\n'))
      await expectFailure(await login(await addTarget('mailer', port)), brokeOff('mailer'))
    })

    test('closed during sign-in', async () => {
      // MaxAuthTries 1 with a wrong key first: sshd disconnects before the password can be tried.
      const sshd = await startSshd({
        users: [{ name: bastion.account.name }],
        extraConfig: ['MaxAuthTries 1'],
      })
      try {
        const key = (await generateKey(bastion.home.folder, { type: 'ed25519' })).privateKey
        const credentials: Credentials = [
          { type: 'ssh_key', private_key: key },
          { type: 'password', password: bastion.account.password },
        ]
        const result = await login(await addTarget('impatient', sshd.port, credentials))
        await expectFailure(result, /impatient \(\S+\) (closed the connection during sign-in|refused)/)
      } finally {
        await sshd.stop()
      }
    })

    test('accepts and never answers', { timeout: 300_000 }, async () => {
      const user = await addTarget('silent', await impostor(() => undefined))
      await expectFailure(await login(user), /silent \(\S+\) did not finish the SSH handshake in time/)
    })

    test('never answers, and the client gives up: the connection to it is closed at once', async () => {
      let open: Socket | undefined
      const port = await impostor((socket) => {
        open = socket
      })
      const user = await addTarget('silent2', port)
      const terminal = sshTerminal(bastion.home, bastion.login({ user }))
      const socket = await until('a connection to the target', () => open)
      const closed = new Promise((resolve) => socket.once('close', resolve))
      terminal.signal(9)
      await terminal.exit()
      socket.resume()
      await closed
      expect(await ended()).toMatchObject({ result: 'failure', reason: 'the client has gone' })
    })

    test('never answers, and an administrator ends the session: the user reads why', async () => {
      const user = await addTarget('silent3', await impostor(() => undefined))
      const running = login(user)
      const [row] = await until('a running session', async () => {
        const rows = await bastion.broker.must<SessionRow[]>('GET', '/sessions?status=current')
        return rows.length > 0 ? rows : undefined
      })
      await bastion.broker.must('POST', `/sessions/${row!.id}/kill`, { reason: 'not now' })
      const { code, stderr } = await running
      expect({ code, stderr }).toEqual({ code: 255, stderr: 'sallyport: ended by admin: not now\r\n' })
      expect(await ended()).toMatchObject({ result: 'killed', reason: 'ended by admin: not now' })
    })
  })

  describe('dropbear', () => {
    let dropbear: Dropbear
    let user: string
    beforeAll(async () => {
      const key = await generateKey(bastion.home.folder, { type: 'ed25519' })
      dropbear = await startDropbear({ user: bastion.account, authorizedKeys: [key.publicKey] })
      user = await addTarget('dropbear', dropbear.port, [{ type: 'ssh_key', private_key: key.privateKey }])
    })
    afterAll(() => dropbear.stop())

    test('runs a command', async () => {
      const command = ['cat; echo err >&2; exit 42']
      const { code, stdout, stderr } = await ssh(bastion.home, bastion.login({ user }), command, {
        input: 'in',
      })
      expect({ code, stdout, stderr }).toEqual({ code: 42, stdout: 'in', stderr: 'err\n' })
      expect(await ended()).toMatchObject({ result: 'success', subprotocols: ['SSH_REMOTE_COMMAND'] })
    })

    test('has a shell', async () => {
      const terminal = sshTerminal(bastion.home, bastion.login({ user }), [], { columns: 101, lines: 41 })
      await terminal.expect('$ ')
      terminal.send('stty size; id -un\r')
      expect(await terminal.expect(`${bastion.account.name}\r\n`)).toContain('41 101')
      terminal.send('exit 3\r')
      expect(await terminal.exit()).toBe(3)
      expect(await ended()).toMatchObject({ result: 'success', subprotocols: ['SSH_SHELL'] })
    })

    test('takes and gives files with scp -O', async () => {
      const bytes = randomBytes(300_001)
      const digest = createHash('sha256').update(bytes).digest('hex')
      const file = join(bastion.home.folder, 'dropbear.bin')
      writeFileSync(file, bytes)
      const remote = join(bastion.account.home, 'dropbear.bin')
      const up = await scp(bastion.home, bastion.login({ user }), file, { remote }, ['-O'])
      expect({ code: up.code, stderr: up.stderr }).toEqual({ code: 0, stderr: '' })
      expect(readFileSync(remote).equals(bytes)).toBe(true)
      await ended()
      const down = await scp(bastion.home, bastion.login({ user }), { remote }, `${file}.back`, ['-O'])
      expect(down.code).toBe(0)
      expect(readFileSync(`${file}.back`).equals(bytes)).toBe(true)
      await ended()
      const transfers = (await bastion.events('file.transfer', 2)).map((event) => event)
      expect(transfers).toMatchObject([
        { direction: 'up', size: bytes.length, sha256: digest },
        { direction: 'down', size: bytes.length, sha256: digest },
      ])
    })
  })

  test('a target that takes keyboard-interactive only', async () => {
    const sshd = await startSshd({
      users: [{ name: bastion.account.name }],
      passwordAuthentication: false,
      publicKey: false,
    })
    try {
      const user = await addTarget('interactive', sshd.port)
      expect(await login(user)).toMatchObject({ code: 0, stdout: 'reached\n', stderr: '' })
      expect(sshd.log()).toContain('Accepted keyboard-interactive')
      await ended()
    } finally {
      await sshd.stop()
    }
  })

  describe('a running session', () => {
    test('whose client vanishes is closed on the target too', async () => {
      const terminal = sshTerminal(bastion.home, bastion.login())
      await terminal.expect('$ ')
      terminal.send('echo pid $$\r')
      const shell = Number(/pid (\d+)/.exec(await terminal.expect(/pid \d+\r\n/))?.[1])
      expect(existsSync(`/proc/${shell}`)).toBe(true)
      terminal.signal(9)
      await terminal.exit()
      await until('the end of the shell', () => (existsSync(`/proc/${shell}`) ? undefined : true))
      expect(await ended()).toMatchObject({ subprotocols: ['SSH_SHELL'], recording: { state: 'sealed' } })
    })

    test('whose target vanishes ends with the reason', async () => {
      const sshd: Sshd = await startSshd({ users: [{ name: bastion.account.name }] })
      const user = await addTarget('mortal', sshd.port)
      const terminal = sshTerminal(bastion.home, bastion.login({ user }))
      await terminal.expect('$ ')
      await sshd.stop()
      expect(await terminal.exit()).toBe(255)
      expect(terminal.output()).toContain('sallyport: the target closed the connection')
      expect(await ended()).toMatchObject({
        result: 'failure',
        reason: 'the target closed the connection',
        recording: { state: 'sealed' },
      })
    })

    test('has its time: a terminal is warned and told, a transfer is no idleness', async () => {
      const { must } = bastion.broker
      await must('POST', '/connectionpolicies', { policy_name: 'brief', idle_timeout: 4 })
      const user = await addTarget('brief', bastion.sshd.port)
      await must('PUT', '/devices/brief/services/ssh', { connection_policy: 'brief' })
      const terminal = sshTerminal(bastion.home, bastion.login({ user }))
      await terminal.expect('$ ')
      for (let n = 0; n < 3; n++) {
        await sleep(2000)
        terminal.send('\r')
        await terminal.expect('$ ')
      }
      await terminal.expect('sallyport: this session ends in 1 second: type something to go on')
      expect(await terminal.exit()).toBe(255)
      expect(terminal.output()).toContain('sallyport: nothing was done for 4 seconds')
      expect(await ended()).toMatchObject({ result: 'failure', reason: 'nothing was done for 4 seconds' })
      const slowly = await ssh(bastion.home, bastion.login({ user }), [
        'for n in 1 2 3 4 5 6; do echo $n; sleep 1; done',
      ])
      expect(slowly).toMatchObject({ code: 0, stdout: '1\n2\n3\n4\n5\n6\n' })
      await ended()
    })

    test('is ended by an administrator: the user reads the reason on the terminal', async () => {
      const terminal = sshTerminal(bastion.home, bastion.login())
      await terminal.expect('$ ')
      terminal.send('echo pid $$; sleep 1000\r')
      const shell = Number(/pid (\d+)/.exec(await terminal.expect(/pid \d+\r\n/))?.[1])
      const [row] = await bastion.broker.must<SessionRow[]>('GET', '/sessions?status=current')
      const reason = 'maintenance of srv1'
      const answer = await bastion.broker.api('POST', `/sessions/${row!.id}/kill`, { reason })
      expect(answer.status).toBe(204)
      expect(await terminal.exit()).toBe(255)
      expect(terminal.output()).toMatch(/\r\nsallyport: ended by admin: maintenance of srv1\r\n/)
      await until('the end of the shell', () => (existsSync(`/proc/${shell}`) ? undefined : true))

      const closed = await ended()
      expect(closed).toMatchObject({ id: row!.id, result: 'killed', killed: true })
      expect(closed.reason).toContain(reason)
      const [kill] = await bastion.events('session.kill', 1)
      const killed = (await bastion.events('session.kill')).find(({ session }) => session === row!.id)
      expect(killed ?? kill).toMatchObject({ session: row!.id, user: 'admin', reason })
      const again = await bastion.broker.api('POST', `/sessions/${row!.id}/kill`, { reason })
      expect(again.status).toBe(409)
    })
  })

  test('the broker holds no connection to a target afterwards', async () => {
    await sleep(200)
    expect(await bastion.broker.must('GET', '/sessions?status=current')).toEqual([])
    expect(descendants(bastion.sshd.pid)).toEqual([])
  })
})
