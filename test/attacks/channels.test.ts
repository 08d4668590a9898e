/** A person who is signed in, and whose client breaks the rules of the connection layer (RFC 4254). */
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  buildChannelOpenConfirmation,
  buildChannelRequest,
  buildChannelSuccess,
  buildClose,
  buildData,
  buildEnv,
  buildEof,
  buildExec,
  buildExtendedData,
  buildGlobalRequest,
  buildPtyRequest,
  buildRequestSuccess,
  buildShell,
  buildSubsystem,
  buildWindowAdjust,
} from '../../proxies/ssh/codec/build.ts'
import {
  MSG,
  OPEN_FAILURE,
  parseChannelOpenConfirmation,
  parseChannelOpenFailure,
  recipientOf,
} from '../../proxies/ssh/codec/messages.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { type Bastion, startBastion, until } from '../e2e/bastion.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { freePort, startDaemon } from '../peers/process.ts'
import { findProgram } from '../peers/program.ts'
import { channelOpen, type RawClient, sessionOpen, signInRaw } from './raw.ts'

const NOTHING = Buffer.alloc(0)
/** What a session's channel of this client is called here. */
const OWN = 7

let bastion: Bastion
let port: number
const clients: RawClient[] = []

beforeAll(async () => {
  bastion = await startBastion()
  port = bastion.broker.ports.ssh
})
afterAll(async () => {
  const { code } = await ssh(bastion.home, bastion.login(), ['true'])
  await bastion.stop()
  expect(code).toBe(0)
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy()
  // Whatever a test has sent: the broker is still there, and its sessions have all ended.
  await until('the end of all sessions', async () => {
    const open = await bastion.broker.must<unknown[]>('GET', '/sessions?status=current')
    return open.length === 0 || undefined
  })
})

async function arrive(user = bastion.login().user): Promise<RawClient> {
  const client = await signInRaw({ port, user, password: bastion.password })
  clients.push(client)
  return client
}

/** Opens a session's channel; answers with the bastion's number for it. */
async function openSession(client: RawClient, own = OWN, window?: number): Promise<number> {
  client.send(sessionOpen(own, window))
  return parseChannelOpenConfirmation(await client.next(MSG.channelOpenConfirmation, MSG.channelOpenFailure))
    .sender
}

/** A channel with a program that is running. */
async function begin(client: RawClient, command = 'cat', own = OWN, window?: number): Promise<number> {
  const id = await openSession(client, own, window)
  client.send(buildExec(id, true, command))
  await client.next(MSG.channelSuccess)
  return id
}

/** A request that is always refused: with its answer all that was sent before has been read. */
async function settle(client: RawClient): Promise<void> {
  client.send(buildGlobalRequest({ name: 'keepalive@openssh.com', wantReply: true, data: NOTHING }))
  await client.next(MSG.requestFailure)
}

const denials = async (): Promise<unknown[]> =>
  (await bastion.events('channel.denied')).map(({ subprotocol }) => subprotocol)

const residentKib = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${bastion.broker.pid}/status`, 'utf8'))?.[1])

const forward = (host: string, to: number): Buffer =>
  new Writer().string(host).uint32(to).string('127.0.0.1').uint32(1).finish()

describe('channels and requests that no right opens', () => {
  const channels: [string, Buffer][] = [
    ['direct-tcpip', forward('127.0.0.1', 22)],
    ['direct-streamlocal@openssh.com', new Writer().string('/run/x.sock').string('').uint32(0).finish()],
    ['tun@openssh.com', new Writer().uint32(1).uint32(0).finish()],
    ['forwarded-tcpip', forward('127.0.0.1', 22)],
    ['x11', new Writer().string('127.0.0.1').uint32(6000).finish()],
    ['auth-agent@openssh.com', NOTHING],
    ['no-such-channel', NOTHING],
  ]

  test.each(channels)('the channel %s', async (type, data) => {
    const before = (await denials()).length
    const client = await arrive()
    await begin(client)
    client.send(channelOpen(type, 9, 1000, data))
    const failure = parseChannelOpenFailure(
      await client.next(MSG.channelOpenFailure, MSG.channelOpenConfirmation),
    )
    expect(failure.recipient).toBe(9)
    expect(failure.reason).toBe(OPEN_FAILURE.administrativelyProhibited)
    await bastion.events('channel.denied', before + 1)
    expect((await denials()).slice(before)).toEqual([`channel ${type}`])
  })

  test.each([
    ['tcpip-forward', new Writer().string('0.0.0.0').uint32(8080).finish()],
    ['cancel-tcpip-forward', new Writer().string('0.0.0.0').uint32(8080).finish()],
    ['streamlocal-forward@openssh.com', new Writer().string('/tmp/x').finish()],
    ['hostkeys-prove-00@openssh.com', NOTHING],
  ])('the global request %s', async (name, data) => {
    const before = (await denials()).length
    const client = await arrive()
    await begin(client)
    client.send(buildGlobalRequest({ name, wantReply: true, data }))
    await client.next(MSG.requestFailure)
    await bastion.events('channel.denied', before + 1)
    expect((await denials()).slice(before)).toEqual([name])
  })

  test.each([
    ['x11-req', new Writer().boolean(false).string('MIT-MAGIC-COOKIE-1').string('00').uint32(0).finish()],
    ['auth-agent-req@openssh.com', NOTHING],
  ])('the channel request %s', async (type, data) => {
    const before = (await denials()).length
    const client = await arrive()
    const id = await openSession(client)
    client.send(buildChannelRequest(id, type, true, data))
    expect((await client.next(MSG.channelSuccess, MSG.channelFailure))[0]).toBe(MSG.channelFailure)
    await bastion.events('channel.denied', before + 1)
    expect((await denials()).slice(before)).toEqual([type])
    // The channel itself goes on.
    client.send(buildExec(id, true, 'echo still here'))
    expect((await client.next(MSG.channelSuccess, MSG.channelFailure))[0]).toBe(MSG.channelSuccess)
  })

  test('a subsystem other than sftp, or one with a path', async () => {
    for (const name of ['netconf', 'sftp\0', 'SFTP', '/usr/lib/openssh/sftp-server', 'sftp ', '']) {
      const client = await arrive()
      const id = await openSession(client)
      client.send(buildSubsystem(id, true, name))
      const seen = await client.next(MSG.channelExtendedData, MSG.channelData)
      expect(seen.toString('latin1')).toMatch(/sallyport: .*not allowed/)
      client.destroy()
    }
  })
})

describe('the real client asks for', () => {
  let target: string
  let listener: Awaited<ReturnType<typeof startDaemon>>
  beforeAll(async () => {
    const open = await freePort()
    target = `127.0.0.1:${open}`
    const script = `import socket; s=socket.create_server(("127.0.0.1",${open}))
print("up", flush=True)
while True: c,_=s.accept(); c.sendall(b"reached"); c.close()`
    listener = await startDaemon(findProgram('python3'), ['-c', script], /up/)
  })
  afterAll(() => listener.stop())

  test('-W', async () => {
    const before = (await denials()).length
    const { code, stdout } = await ssh(bastion.home, bastion.login(), [], { flags: ['-W', target] })
    expect([code, stdout]).toEqual([255, ''])
    // There is no session's channel, so no session is opened that it could be accounted to.
    await bastion.events('channel.denied', before + 1)
    expect((await denials()).slice(before)).toEqual(['channel direct-tcpip'])
  })

  test('-L and -D: what is connected through them is closed without a byte', async () => {
    const before = (await denials()).length
    const [local, dynamic] = [await freePort(), await freePort()]
    const flags = ['-L', `${local}:${target}`, '-D', String(dynamic)]
    const running = ssh(bastion.home, bastion.login(), ['sleep 4'], { flags })
    const script = `import socket,sys
s=socket.create_connection(("127.0.0.1",${local})); sys.stdout.write(repr(s.recv(100))); s.close()
s=socket.create_connection(("127.0.0.1",${dynamic})); s.sendall(b"\\x05\\x01\\x00"); s.recv(2)
s.sendall(b"\\x05\\x01\\x00\\x01\\x7f\\x00\\x00\\x01"+(${target.split(':')[1]}).to_bytes(2,"big")); sys.stdout.write(repr(s.recv(100)))`
    const python = findProgram('python3')
    await until('the forwarding', async () => {
      const open = await startDaemon(
        python,
        [
          '-c',
          `import socket; socket.create_connection(("127.0.0.1",${dynamic}))
print("up", flush=True)`,
        ],
        /up/,
      ).catch(() => undefined)
      await open?.stop()
      return open
    })
    const probe = await startDaemon(python, ['-c', script], () => true)
    await probe.ended
    expect(probe.log()).toBe("b''b''")
    await running
    const found = (await bastion.events('channel.denied', before + 2)).slice(before)
    expect(found.map(({ subprotocol }) => subprotocol)).toEqual([
      'channel direct-tcpip',
      'channel direct-tcpip',
    ])
  })

  test('-R', async () => {
    const before = (await denials()).length
    const remote = await freePort()
    const { code, stderr } = await ssh(
      bastion.home,
      bastion.login({ options: ['ExitOnForwardFailure=yes'] }),
      ['true'],
      {
        flags: ['-R', `${remote}:${target}`],
      },
    )
    expect(code).toBe(255)
    expect(stderr).toMatch(/remote port forwarding failed/)
    await bastion.events('channel.denied', before + 1)
    expect((await denials()).slice(before)).toEqual(['tcpip-forward'])
  })

  test('-X and -A: the session runs without them', async () => {
    const before = (await denials()).length
    const env = { DISPLAY: '127.0.0.1:9', SSH_AUTH_SOCK: `${bastion.home.folder}/no-agent` }
    const x = await ssh(bastion.home, bastion.login(), ['echo "[$DISPLAY]"'], { flags: ['-Y'], env })
    expect(x.stdout).toBe('[]\n')
    const a = await ssh(bastion.home, bastion.login(), ['echo "[$SSH_AUTH_SOCK]"'], { flags: ['-A'], env })
    expect(a.stdout).toBe('[]\n')
    expect((await denials()).slice(before)).not.toContain(undefined)
  })

  test('a tunnel (-w)', async () => {
    const { stdout } = await ssh(
      bastion.home,
      bastion.login({ options: ['Tunnel=point-to-point'] }),
      ['echo ran'],
      {
        flags: ['-w', 'any'],
      },
    )
    expect(['', 'ran\n']).toContain(stdout)
  })
})

describe('windows', () => {
  test('more data than the window allows ends the session, and is no memory', async () => {
    const client = await arrive()
    const id = await begin(client, 'sleep 100')
    const before = residentKib()
    const data = buildData(id, Buffer.alloc(32_000))
    for (let n = 0; n < 2_000 && !client.closed; n++) {
      client.send(data)
      if (n % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await client.untilClosed()
    expect(residentKib() - before).toBeLessThan(100_000)
    const rows = await bastion.closedSessions()
    expect(rows.at(-1)).toMatchObject({ result: 'failure', reason: expect.stringMatching(/window/) })
  })

  test('a window that is widened over 2^32 ends the session', async () => {
    const client = await arrive()
    const id = await begin(client, 'cat', OWN, 0xffff0000)
    client.send(buildWindowAdjust(id, 0xffffffff))
    await client.untilClosed()
    const rows = await bastion.closedSessions()
    expect(rows.at(-1)).toMatchObject({ result: 'failure', reason: expect.stringMatching(/window/) })
  })

  test('extended data from a client ends the session', async () => {
    const client = await arrive()
    const id = await begin(client)
    client.send(buildExtendedData(id, 'x'))
    await client.untilClosed()
  })

  test('a client that takes nothing gets nothing', async () => {
    const client = await arrive()
    await begin(client, 'yes', OWN, 0)
    await settle(client)
    expect(client.received.filter(([type]) => type === MSG.channelData)).toEqual([])
  })
})

describe('channels of nobody', () => {
  const messages: [string, (id: number) => Buffer][] = [
    ['data', (id) => buildData(id, 'x')],
    ['EOF', (id) => buildEof(id)],
    ['close', (id) => buildClose(id)],
    ['a command', (id) => buildExec(id, true, 'touch /tmp/owned')],
    ['window', (id) => buildWindowAdjust(id, 1)],
    ['an answer', (id) => buildChannelSuccess(id)],
  ]

  test.each(messages)('%s for a channel that does not exist reaches none', async (_, message) => {
    const client = await arrive()
    const id = await begin(client)
    for (const other of [id + 1, 0xffffffff, 0x80000000]) client.send(message(other))
    if (!client.closed) {
      await settle(client)
      client.send(buildData(id, 'still'), buildEof(id))
      expect((await client.next(MSG.channelData)).subarray(9).toString()).toBe('still')
    }
  })

  test.each([
    ['confirmation', buildChannelOpenConfirmation({ recipient: 0, sender: 0, window: 1, maxPacket: 1 })],
    ['failure', new Writer().byte(MSG.channelOpenFailure).uint32(0).uint32(1).string('').string('').finish()],
  ])('the %s of a channel that nobody opened ends the session', async (_, message) => {
    const client = await arrive()
    await begin(client)
    client.send(message)
    await client.untilClosed()
  })

  test('answers to global requests that nobody made change nothing', async () => {
    const client = await arrive()
    const id = await begin(client)
    client.send(buildRequestSuccess(), buildRequestSuccess(Buffer.alloc(1000)))
    client.send(buildData(id, 'on'), buildEof(id))
    expect((await client.next(MSG.channelData)).subarray(9).toString()).toBe('on')
  })
})

describe('one channel', () => {
  test('has one main request: a second command, shell or subsystem is refused and does not run', async () => {
    const client = await arrive()
    const id = await begin(client)
    const mark = `${bastion.home.folder}/second`
    for (const second of [
      buildExec(id, true, `touch ${mark}`),
      buildShell(id, true),
      buildSubsystem(id, true, 'sftp'),
      buildPtyRequest(id, true, {
        terminal: 'x',
        columns: 1,
        rows: 1,
        widthPixels: 0,
        heightPixels: 0,
        modes: NOTHING,
      }),
    ]) {
      client.send(second)
      expect((await client.next(MSG.channelSuccess, MSG.channelFailure))[0]).toBe(MSG.channelFailure)
    }
    client.send(buildData(id, 'x'), buildEof(id))
    await client.next(MSG.channelData)
  })

  test('two main requests in one breath: the first counts', async () => {
    const client = await arrive()
    const before = (await bastion.events('command')).length
    const id = await openSession(client)
    client.send(buildExec(id, true, 'echo first'), buildExec(id, true, 'echo second'), buildShell(id, true))
    await client.next(MSG.channelClose)
    const commands = (await bastion.events('command')).slice(before).map(({ object }) => object)
    expect(commands).toEqual(['echo first'])
  })

  test('takes nothing after it was closed, in whatever order', async () => {
    const client = await arrive()
    const id = await begin(client)
    client.send(buildClose(id), buildExec(id, true, 'id'), buildData(id, 'x'), buildClose(id), buildEof(id))
    client.send(buildWindowAdjust(id, 1), buildEnv(id, true, 'LANG', 'C'))
    await client.next(MSG.channelClose)
    await settle(client)
    // The number may be used again, and is a new channel.
    const again = await begin(client, 'echo again')
    expect((await client.next(MSG.channelData)).subarray(9).toString()).toBe('again\n')
    expect(again).toBeGreaterThanOrEqual(0)
  })

  test('takes data before its main request only as far as its window, and does not lose it', async () => {
    const client = await arrive()
    const id = await openSession(client)
    client.send(buildData(id, 'early '), buildExec(id, true, 'cat'), buildData(id, 'late'), buildEof(id))
    const seen: Buffer[] = []
    for (
      let message = await client.next(MSG.channelData, MSG.channelClose);
      message[0] === MSG.channelData;
    ) {
      seen.push(message.subarray(9))
      message = await client.next(MSG.channelData, MSG.channelClose)
    }
    expect(['early late', '']).toContain(Buffer.concat(seen).toString())
  })

  test('with thousands of requests before its main one ends, or the session does, without memory', async () => {
    const client = await arrive()
    const id = await openSession(client)
    const before = residentKib()
    for (let n = 0; n < 20_000; n++) {
      client.send(buildEnv(id, true, 'LC_X', 'x'.repeat(1000)))
      if (n % 200 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await until('an end of it', () => client.closed || client.received.length >= 19_999 || undefined)
    expect(residentKib() - before).toBeLessThan(100_000)
  })

  test('an exec with the longest command that a packet holds is answered', async () => {
    const client = await arrive()
    const id = await openSession(client)
    client.send(buildExec(id, true, `: ${'x'.repeat(30_000)}`))
    expect((await client.next(MSG.channelSuccess, MSG.channelFailure))[0]).toBe(MSG.channelSuccess)
  })
})

describe('floods', () => {
  test('10,000 channels: some dozens are opened, the rest is refused', async () => {
    const client = await arrive()
    const before = residentKib()
    for (let n = 0; n < 10_000; n++) client.send(sessionOpen(n))
    await until('all answers', () => client.received.length >= 10_000 || undefined)
    const opened = client.received.filter(([type]) => type === MSG.channelOpenConfirmation)
    const refused = client.received.filter(([type]) => type === MSG.channelOpenFailure)
    expect([opened.length > 0 && opened.length <= 64, opened.length + refused.length]).toEqual([true, 10_000])
    expect(residentKib() - before).toBeLessThan(100_000)
  })

  const requests: [string, () => Buffer][] = [
    [
      'keepalives',
      () => buildGlobalRequest({ name: 'keepalive@openssh.com', wantReply: true, data: NOTHING }),
    ],
    [
      'forwardings',
      () => buildGlobalRequest({ name: 'tcpip-forward', wantReply: true, data: forward('', 1) }),
    ],
    ['channels of another kind', () => channelOpen('direct-tcpip', 1, 1, forward('127.0.0.1', 22))],
    ['channels over the limit', () => sessionOpen(1)],
  ]

  /** Sends without reading an answer, until all is sent or the connection ends; returns the broker's growth in KiB. */
  async function flood(client: RawClient, message: Buffer): Promise<number> {
    const before = residentKib()
    let peak = 0
    client.socket.pause()
    for (let n = 0; n < 300_000 && !client.closed; n++) {
      client.send(message)
      if (n % 1_000 !== 0) continue
      await new Promise((resolve) => setImmediate(resolve))
      peak = Math.max(peak, residentKib())
    }
    // The broker reads on until it has enough of it; others are served meanwhile.
    expect((await ssh(bastion.home, bastion.login(), ['echo fine'])).stdout).toBe('fine\n')
    return Math.max(peak, residentKib()) - before
  }

  test.each(requests)(
    '300,000 %s whose answers nobody reads: memory is bounded, others go on',
    async (_, make) => {
      const client = await arrive()
      await begin(client)
      expect(await flood(client, make())).toBeLessThan(100_000)
    },
  )

  test.each(requests)('the same in the menu, where there is no target yet: %s', async (_, make) => {
    const client = await arrive('ops1')
    expect(await flood(client, make())).toBeLessThan(100_000)
  })
})

describe('in the menu', () => {
  async function openMenu(client: RawClient, own = OWN): Promise<number> {
    const id = await openSession(client, own)
    const pty = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: NOTHING }
    client.send(buildPtyRequest(id, true, pty), buildShell(id, true))
    await client.next(MSG.channelData)
    return id
  }

  test('a forwarding is refused and connects nothing', async () => {
    const client = await arrive('ops1')
    const before = (await bastion.events('session.open')).length
    const refused = (await denials()).length
    await openMenu(client)
    client.send(channelOpen('direct-tcpip', 9, 1000, forward('127.0.0.1', bastion.sshd.port)))
    expect(recipientOf(await client.next(MSG.channelOpenFailure))).toBe(9)
    client.send(buildGlobalRequest({ name: 'tcpip-forward', wantReply: true, data: forward('', 0) }))
    await client.next(MSG.requestFailure)
    await bastion.events('channel.denied', refused + 2)
    expect((await denials()).slice(refused)).toEqual(['channel direct-tcpip', 'tcpip-forward'])
    expect((await bastion.events('session.open')).length).toBe(before)
  })

  test('a second channel with a command runs nothing', async () => {
    const client = await arrive('ops1')
    const before = (await bastion.events('session.open')).length
    await openMenu(client)
    const id = await openSession(client, 8)
    client.send(buildExec(id, true, 'id'))
    expect((await client.next(MSG.channelExtendedData)).toString()).toMatch(/no target in the login/)
    expect((await bastion.events('session.open')).length).toBe(before)
  })

  test('two menus, and a choice in each: one session, and it ends', async () => {
    const client = await arrive('ops1')
    const before = (await bastion.events('session.open')).length
    const [one, two] = [await openMenu(client, 1), await openMenu(client, 2)]
    client.send(buildData(one, '1\r'), buildData(two, '1\r'))
    await bastion.events('session.open', before + 1)
    await settle(client)
    client.destroy()
    await until('the end of all sessions', async () => {
      const open = await bastion.broker.must<unknown[]>('GET', '/sessions?status=current')
      return open.length === 0 || undefined
    })
    expect((await bastion.events('session.open')).length - before).toBe(1)
  })

  test('data beyond the window ends the connection, a window over 2^32 too', async () => {
    const flooding = await arrive('ops1')
    const id = await openMenu(flooding)
    flooding.send(buildData(id, Buffer.alloc(30_000, 0x7f)))
    await flooding.untilClosed()
    const widening = await arrive('ops1')
    const other = await openMenu(widening)
    for (let n = 0; n < 4; n++) widening.send(buildWindowAdjust(other, 0xffffffff))
    await widening.untilClosed()
  })

  test('messages for channels that do not exist, and for one that is closed, change nothing', async () => {
    const client = await arrive('ops1')
    const id = await openMenu(client)
    client.send(buildData(99, 'x'), buildClose(99), buildExec(99, true, 'id'))
    client.send(buildClose(id), buildData(id, '1\r'), buildShell(id, true), buildClose(id))
    await settle(client)
  })

  test('a person in the menu who never chooses has no session', async () => {
    const before = (await bastion.events('session.open')).length
    const terminal = sshTerminal(bastion.home, bastion.login({ user: 'ops1' }))
    await terminal.expect('srv1')
    await terminal.close()
    expect((await bastion.events('session.open')).length).toBe(before)
  })
})
