/**
 * Forwarded connections with OpenSSH's client and server: each needs its right, is recorded as counts, and is
 * logged.
 */
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync } from 'node:fs'
import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { exchange, isListening, type Listener, startEcho, startForwarding } from '../peers/forwarding.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { type Daemon, freePort, run, startDaemon } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { fieldsOf, framesOf, streamOf } from './recorded.ts'

const MEBIBYTE = 1024 * 1024
const HOST = '127.0.0.1'

describeWithPeers('forwarding', ['sshd', 'ssh'], () => {
  let bastion: Bastion
  let authorization: string
  let echo: Listener
  const running: Daemon[] = []
  let sessions = 0

  beforeAll(async () => {
    bastion = await startBastion({ sshd: {} })
    const [row] = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
    authorization = row!.id
    echo = await startEcho()
    // The users of both sides have sockets there.
    chmodSync(bastion.home.folder, 0o777)
  })
  afterAll(async () => {
    echo.stop()
    await bastion.stop()
  })
  beforeEach(async () => {
    sessions = (await bastion.closedSessions()).length
  })
  afterEach(async () => {
    for (const daemon of running.splice(0)) await daemon.stop()
    await until('no running session', async () => {
      const rows = await bastion.broker.must<unknown[]>('GET', '/sessions?status=current')
      return rows.length === 0 || undefined
    })
  })

  const grant = (...subprotocols: string[]) =>
    bastion.broker.must('PUT', `/authorizations/${authorization}`, { subprotocols })
  const policy = (options: object) => bastion.broker.must('PUT', '/connectionpolicies/SSH', options)
  const forward = async (flags: string[], ready: RegExp | NetConnectOpts): Promise<Daemon> => {
    const isReady = ready instanceof RegExp ? ready : () => isListening(ready)
    const daemon = await startForwarding(bastion.home, bastion.login(), flags, isReady)
    running.push(daemon)
    return daemon
  }
  /** Returns the records of a test's only session, after its client has disconnected. */
  const left = async () => {
    for (const daemon of running.splice(0)) await daemon.stop()
    const rows = (await bastion.closedSessions(sessions + 1)).slice(sessions)
    expect(rows).toHaveLength(1)
    const [row] = rows
    const opened = (await bastion.events('channel.open')).filter(({ session }) => session === row!.id)
    return { row: row!, opened, frames: await framesOf(bastion.broker, row!.id) }
  }
  /** Chooses the target in the menu, and returns the output of the command there. */
  const fromMenu = async (flags: string[], env: NodeJS.ProcessEnv, command: string): Promise<string> => {
    const terminal = sshTerminal(bastion.home, bastion.login({ user: 'ops1' }), [], { flags, env })
    await terminal.expect('q to leave: ')
    terminal.send('1\r')
    await terminal.expect('$ ')
    terminal.send(`${command}; exit\r`)
    await terminal.exit()
    return terminal.output()
  }
  const refusedFor = async (flags: string[], right: string, destination?: string) => {
    const before = (await bastion.events('channel.denied')).length
    const probe = await ssh(
      bastion.home,
      bastion.login({ options: ['ExitOnForwardFailure=yes', 'LogLevel=VERBOSE'] }),
      [],
      { flags: ['-T', ...flags], timeout: 300_000 },
    )
    expect(probe.code).toBe(255)
    const [denied] = (await bastion.events('channel.denied', before + 1)).slice(before)
    expect(denied).toMatchObject({ subprotocol: right, ...(destination !== undefined && { destination }) })
    return probe
  }

  describe('to what the target dials (SSH_DIRECT_TCPIP)', () => {
    beforeAll(() => grant('SSH_DIRECT_TCPIP'))

    test('-L: a mebibyte each way, an end each way, counts on record', async () => {
      const local = await freePort()
      await forward(['-L', `${local}:${HOST}:${echo.port}`], { port: local, host: HOST })
      const data = randomBytes(MEBIBYTE)
      expect((await exchange({ port: local, host: HOST }, data)).equals(data)).toBe(true)
      const { row, opened, frames } = await left()
      const destination = `${HOST}:${echo.port}`
      // The probe of the port opened its own channel.
      expect(opened).toMatchObject([
        { subprotocol: 'SSH_DIRECT_TCPIP', destination },
        { subprotocol: 'SSH_DIRECT_TCPIP', destination },
      ])
      expect(row).toMatchObject({ result: 'success', bytes_in: MEBIBYTE, bytes_out: MEBIBYTE })
      const [, open] = fieldsOf(frames, 'channel_open')
      expect(open).toEqual({ kind: 'direct-tcpip', subprotocol: 'SSH_DIRECT_TCPIP', destination })
      expect(fieldsOf(frames, 'unrecorded').slice(-2)).toEqual([
        { direction: 'in', reason: 'forwarded', bytes: MEBIBYTE },
        { direction: 'out', reason: 'forwarded', bytes: MEBIBYTE },
      ])
      expect(frames.filter(({ type }) => type === 'output' || type === 'input')).toEqual([])
    })

    test('-D: by a SOCKS client', async () => {
      const local = await freePort()
      await forward(['-D', String(local)], { port: local, host: HOST })
      const greeting = Buffer.from([5, 1, 0])
      const request = Buffer.from([5, 1, 0, 1, 127, 0, 0, 1, echo.port >> 8, echo.port & 0xff])
      // one after the other: ssh gives up on a client that has closed before the answer
      const came = await exchange({ port: local, host: HOST }, [greeting, request, Buffer.from('hello')])
      expect(came.subarray(0, 2)).toEqual(Buffer.from([5, 0]))
      expect(came.subarray(-5).toString()).toBe('hello')
    })

    test('as many at a time as a browser opens', async () => {
      const local = await freePort()
      await forward(['-L', `${local}:${HOST}:${echo.port}`], { port: local, host: HOST })
      const answered = Array.from(
        { length: 200 },
        () =>
          new Promise<Socket>((resolve, reject) => {
            const socket = connect({ port: local, host: HOST })
            socket.once('data', () => resolve(socket))
            socket.once('close', () => reject(new Error('closed before it was answered')))
            socket.write('hello')
          }),
      )
      for (const socket of await Promise.all(answered)) socket.destroy()
    })

    test('-W: standard input and output are the connection', async () => {
      const { code, stdout } = await ssh(bastion.home, bastion.login(), [], {
        flags: ['-W', `${HOST}:${echo.port}`],
        input: 'through and back',
      })
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'through and back' })
    })

    test('where nobody listens the target says so', async () => {
      const port = await freePort()
      const login = bastion.login({ options: ['LogLevel=INFO'] })
      const { code, stderr } = await ssh(bastion.home, login, [], { flags: ['-W', `${HOST}:${port}`] })
      expect(code).toBe(255)
      expect(stderr).toMatch(/[Cc]onnect failed/)
    })

    test('only to where the connection policy lets it', async () => {
      await policy({ forward_to: ['127.0.0.0/8:1-1023', '*.example.com:*', `localhost:${echo.port}`] })
      try {
        for (const destination of [`${HOST}:${echo.port}`, '169.254.169.254:80', `[::1]:${echo.port}`]) {
          const { stderr } = await refusedFor(['-W', destination], 'SSH_DIRECT_TCPIP', destination)
          expect(stderr).toContain(`the connection policy forwards nothing to ${destination}`)
        }
        const { stdout } = await ssh(bastion.home, bastion.login(), [], {
          flags: ['-W', `localhost:${echo.port}`],
          input: 'by name',
        })
        expect(stdout).toBe('by name')
      } finally {
        await policy({ forward_to: [] })
      }
    })

    test('opens no other kind', async () => {
      const port = await freePort()
      await refusedFor(['-N', '-R', `${port}:${HOST}:${echo.port}`], 'SSH_REVERSE_TCPIP', `localhost:${port}`)
      await refusedFor(['-N', '-R', '/tmp/never.sock:localhost:1'], 'SSH_REVERSE_UNIXSOCK', '/tmp/never.sock')
      const shell = await ssh(bastion.home, bastion.login(), ['true'])
      expect(shell.code).toBe(255)
      expect(shell.stderr).toContain('the right SSH_REMOTE_COMMAND is missing')
    })
  })

  test('-L to a Unix socket (SSH_DIRECT_UNIXSOCK)', async () => {
    await grant('SSH_DIRECT_UNIXSOCK')
    const path = join(bastion.home.folder, 'target.sock')
    const listener = await startEcho(path)
    chmodSync(path, 0o777)
    const local = await freePort()
    await forward(['-L', `${local}:${path}`], { port: local, host: HOST })
    expect((await exchange({ port: local, host: HOST }, 'to a socket')).toString()).toBe('to a socket')
    const { opened, frames } = await left()
    listener.stop()
    expect(opened.at(-1)).toMatchObject({ subprotocol: 'SSH_DIRECT_UNIXSOCK', destination: path })
    expect(fieldsOf(frames, 'channel_open').at(-1)).toMatchObject({ kind: 'direct-streamlocal' })
    await refusedFor(['-W', `${HOST}:${echo.port}`], 'SSH_DIRECT_TCPIP')
  })

  describe('to a listener of the client (SSH_REVERSE_TCPIP)', () => {
    beforeAll(() => grant('SSH_REVERSE_TCPIP'))

    test('-R: both ways, an end each way', async () => {
      const remote = await freePort()
      const at = { port: remote, host: HOST }
      await forward(['-R', `${remote}:${HOST}:${echo.port}`], at)
      const data = randomBytes(MEBIBYTE)
      expect((await exchange(at, data)).equals(data)).toBe(true)
      const { row, opened, frames } = await left()
      const destination = `localhost:${remote}`
      // The listener, the probe, the exchange.
      expect(opened.map(({ subprotocol, destination: where }) => [subprotocol, where])).toEqual(
        Array.from({ length: 3 }, () => ['SSH_REVERSE_TCPIP', destination]),
      )
      expect(row).toMatchObject({ result: 'success', bytes_in: MEBIBYTE, bytes_out: MEBIBYTE })
      expect(fieldsOf(frames, 'channel_open').at(-1)).toEqual({
        kind: 'forwarded-tcpip',
        subprotocol: 'SSH_REVERSE_TCPIP',
        destination,
      })
      expect(await isListening(at)).toBe(false)
    })

    test('-R 0: the target chooses the port, and the client learns it', async () => {
      const daemon = await forward(['-R', `0:${HOST}:${echo.port}`], /Allocated port \d+/)
      const port = Number(/Allocated port (\d+)/.exec(daemon.log())?.[1])
      expect((await exchange({ port, host: HOST }, 'any port')).toString()).toBe('any port')
    })

    test('several, in their order', async () => {
      const ports = [await freePort(), await freePort(), await freePort()]
      const flags = ports.flatMap((port) => ['-R', `${port}:${HOST}:${echo.port}`])
      await forward(flags, { port: ports.at(-1)!, host: HOST })
      for (const port of ports) {
        expect((await exchange({ port, host: HOST }, String(port))).toString()).toBe(String(port))
      }
    })

    test('only where the connection policy lets it listen: at first on loopback', async () => {
      const port = await freePort()
      await refusedFor(
        ['-N', '-R', `0.0.0.0:${port}:${HOST}:${echo.port}`],
        'SSH_REVERSE_TCPIP',
        `0.0.0.0:${port}`,
      )
      await refusedFor(['-N', '-R', `*:${port}:${HOST}:${echo.port}`], 'SSH_REVERSE_TCPIP', `:${port}`)
      await policy({ listen_on: [`127.0.0.1:${port}`] })
      try {
        await refusedFor(
          ['-N', '-R', `${port}:${HOST}:${echo.port}`],
          'SSH_REVERSE_TCPIP',
          `localhost:${port}`,
        )
        await forward(['-R', `${HOST}:${port}:${HOST}:${echo.port}`], { port, host: HOST })
      } finally {
        await policy({ listen_on: ['localhost:*', '127.0.0.1:*', '[::1]:*'] })
      }
    })

    test('what the target cannot bind is refused, and what is there goes on', async () => {
      await refusedFor(['-W', `${HOST}:${echo.port}`], 'SSH_DIRECT_TCPIP')
      const { code, stderr } = await ssh(
        bastion.home,
        bastion.login({ options: ['ExitOnForwardFailure=yes'] }),
        [],
        { flags: ['-N', '-R', `${HOST}:${bastion.sshd.port}:${HOST}:${echo.port}`] },
      )
      expect(code).toBe(255)
      expect(stderr).toMatch(/remote port forwarding failed/)
    })
  })

  test('-R of a Unix socket (SSH_REVERSE_UNIXSOCK)', async () => {
    await grant('SSH_REVERSE_UNIXSOCK')
    const path = join(bastion.account.home, 'reverse.sock')
    await forward(['-R', `${path}:${HOST}:${echo.port}`], { path })
    expect((await exchange({ path }, 'from a socket')).toString()).toBe('from a socket')
    const { opened, frames } = await left()
    expect(opened.at(-1)).toMatchObject({ subprotocol: 'SSH_REVERSE_UNIXSOCK', destination: path })
    expect(fieldsOf(frames, 'channel_open').at(-1)).toMatchObject({ kind: 'forwarded-streamlocal' })
  })

  describeWithPeers('an agent (SSH_AUTH_AGENT)', ['ssh-agent', 'ssh-add'], () => {
    let agent: Daemon
    let env: NodeJS.ProcessEnv

    beforeAll(async () => {
      const socket = join(bastion.home.folder, 'agent.sock')
      agent = await startDaemon(findProgram('ssh-agent'), ['-D', '-a', socket], () => existsSync(socket))
      env = { ...bastion.home.env(), SSH_AUTH_SOCK: socket }
      expect((await run(findProgram('ssh-add'), [bastion.key.path], { env })).code).toBe(0)
    })
    afterAll(() => agent.stop())
    const listKeys = () =>
      ssh(bastion.home, bastion.login(), ['ssh-add -l'], {
        flags: ['-A'],
        env: { SSH_AUTH_SOCK: env['SSH_AUTH_SOCK'] },
      })

    test('-A: the target asks it', async () => {
      await grant('SSH_REMOTE_COMMAND', 'SSH_AUTH_AGENT')
      expect((await listKeys()).stdout).toContain(bastion.key.fingerprint)
      const { opened, frames } = await left()
      expect(opened.map(({ subprotocol }) => subprotocol)).toEqual(['SSH_REMOTE_COMMAND', 'SSH_AUTH_AGENT'])
      expect(fieldsOf(frames, 'channel_open').at(-1)).toEqual({
        kind: 'auth-agent',
        subprotocol: 'SSH_AUTH_AGENT',
      })
    })

    test('-A through the menu: the target asks it, under its right', async () => {
      const ask = () => fromMenu(['-A', '-t'], { SSH_AUTH_SOCK: env['SSH_AUTH_SOCK'] }, 'ssh-add -l')
      await grant('SSH_SHELL', 'SSH_AUTH_AGENT')
      expect(await ask()).toContain(bastion.key.fingerprint)
      expect((await left()).opened.map(({ subprotocol }) => subprotocol)).toContain('SSH_AUTH_AGENT')
      await grant('SSH_SHELL')
      expect(await ask()).not.toContain(bastion.key.fingerprint)
    })

    test('without the right there is none', async () => {
      await grant('SSH_REMOTE_COMMAND')
      const before = (await bastion.events('channel.denied')).length
      const { stdout, stderr } = await listKeys()
      expect(stdout + stderr).not.toContain(bastion.key.fingerprint)
      const [denied] = (await bastion.events('channel.denied', before + 1)).slice(before)
      expect(denied).toMatchObject({ subprotocol: 'SSH_AUTH_AGENT' })
    })
  })

  describeWithPeers('X11 (SSH_X11)', ['Xvfb', 'xauth', 'xdpyinfo'], () => {
    let display: Daemon
    let env: NodeJS.ProcessEnv

    beforeAll(async () => {
      const cookie = randomBytes(16).toString('hex')
      const file = join(bastion.home.folder, 'Xauthority')
      const put = (name: string) => run(findProgram('xauth'), ['-f', file, 'add', name, '.', cookie])
      await put(':0')
      const args = ['-displayfd', '1', '-auth', file, '-screen', '0', '640x480x24']
      display = await startDaemon(findProgram('Xvfb'), args, /^\d+$/m)
      const name = `:${/^\d+$/m.exec(display.log())?.[0]}`
      await put(name)
      env = { DISPLAY: name, XAUTHORITY: file }
    })
    afterAll(() => display.stop())
    const onDisplay = (flag: string) =>
      ssh(bastion.home, bastion.login(), ['echo "on $DISPLAY"; xdpyinfo | grep dimensions'], {
        flags: [flag],
        env,
      })

    test.each(['-X', '-Y'])(
      '%s: a program on the target draws on the display of the client',
      async (flag) => {
        await grant('SSH_REMOTE_COMMAND', 'SSH_X11')
        const { code, stdout } = await onDisplay(flag)
        expect(stdout).toMatch(/on (localhost|127\.0\.0\.1):\d+\.0\n.*640x480 pixels/)
        expect(code).toBe(0)
        const { opened, frames } = await left()
        expect(opened.map(({ subprotocol }) => subprotocol)).toEqual(['SSH_REMOTE_COMMAND', 'SSH_X11'])
        expect(fieldsOf(frames, 'channel_open').at(-1)).toEqual({ kind: 'x11', subprotocol: 'SSH_X11' })
      },
    )

    test('-Y through the menu: likewise', async () => {
      await grant('SSH_SHELL', 'SSH_X11')
      const shown = await fromMenu(['-Y', '-t'], env, 'echo "on $DISPLAY"; xdpyinfo | grep dimensions')
      expect(shown).toMatch(/on (localhost|127\.0\.0\.1):\d+\.0\r?\n.*640x480 pixels/)
      expect((await left()).opened.map(({ subprotocol }) => subprotocol)).toEqual(['SSH_SHELL', 'SSH_X11'])
    })

    test('without the right there is no display', async () => {
      await grant('SSH_REMOTE_COMMAND')
      const before = (await bastion.events('channel.denied')).length
      expect((await onDisplay('-Y')).stdout).toBe('on \n')
      const [denied] = (await bastion.events('channel.denied', before + 1)).slice(before)
      expect(denied).toMatchObject({ subprotocol: 'SSH_X11' })
    })
  })

  test('one connection for ten sessions (ControlMaster): each is checked, and on record by itself', async () => {
    await grant('SSH_REMOTE_COMMAND')
    const path = join(bastion.home.folder, 'master.sock')
    const login = bastion.login({ options: [`ControlPath=${path}`] })
    const master = await startForwarding(bastion.home, login, ['-M'], () => existsSync(path))
    running.push(master)
    const numbers = Array.from({ length: 10 }, (_, n) => n)
    const results = await Promise.all(
      numbers.map((n) => ssh(bastion.home, login, [`cat; echo session ${n}`], { input: `input ${n}\n` })),
    )
    expect(results.map(({ stdout }) => stdout)).toEqual(numbers.map((n) => `input ${n}\nsession ${n}\n`))
    const refused = await ssh(bastion.home, login, ['sftp'], { flags: ['-s'] })
    expect(refused.code).not.toBe(0)
    const { row, opened, frames } = await left()
    expect(row.result).toBe('success')
    expect(opened).toHaveLength(10)
    const opens = frames.filter(({ type }) => type === 'channel_open')
    expect(opens.map(({ data }) => data?.['command']).sort()).toEqual(
      numbers.map((n) => `cat; echo session ${n}`),
    )
    for (const { channel, data } of opens) {
      const own = frames.filter((frame) => frame.channel === channel)
      const n = String(data?.['command']).slice(-1)
      expect(streamOf(own, 'input').toString()).toBe(`input ${n}\n`)
      expect(streamOf(own, 'output').toString()).toBe(`input ${n}\nsession ${n}\n`)
    }
  })
})
