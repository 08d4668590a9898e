/**
 * Clients that do not run here, by their recorded bytes: WinSCP (PuTTY's code over SFTP, and a shell that it
 * types into), and VS Code Remote-SSH, which starts OpenSSH's ssh itself.
 */
import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  buildChannelRequest,
  buildClose,
  buildData,
  buildEof,
  buildExec,
  buildShell,
  buildSubsystem,
} from '../../proxies/ssh/codec/build.ts'
import {
  dataOf,
  extendedDataOf,
  MSG,
  parseChannelOpenConfirmation,
} from '../../proxies/ssh/codec/messages.ts'
import { FXP } from '../../proxies/ssh/codec/sftp.ts'
import { type RawClient, sessionOpen, signInRaw } from '../attacks/raw.ts'
import { exchange, isListening } from '../peers/forwarding.ts'
import { sshArguments } from '../peers/openssh.ts'
import { type Daemon, freePort, startDaemon } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import {
  CREATE,
  init,
  named,
  open,
  packet,
  packetsOf,
  READ,
  read,
  TRUNCATE,
  WRITE,
} from '../proxies/ssh/sftp/support/packets.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { fieldsOf, framesOf, streamOf } from './recorded.ts'

const CONTENT = `${randomBytes(3_000).toString('base64')}\n`
const SHA256 = createHash('sha256').update(CONTENT).digest('hex')
const HOST = '127.0.0.1'

describeWithPeers('replayed', ['sshd', 'ssh', 'python3'], () => {
  let bastion: Bastion
  let authorization: string
  let sessions = 0
  const clients: RawClient[] = []
  const running: Daemon[] = []

  beforeAll(async () => {
    bastion = await startBastion()
    const [row] = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
    authorization = row!.id
    chmodSync(bastion.home.folder, 0o777)
  })
  afterAll(() => bastion.stop())
  afterEach(async () => {
    for (const daemon of running.splice(0)) await daemon.stop()
    for (const client of clients.splice(0)) client.destroy()
    await until('no running session', async () => {
      const rows = await bastion.broker.must<unknown[]>('GET', '/sessions?status=current')
      return rows.length === 0 || undefined
    })
  })

  const remote = (name: string) => join(bastion.account.home, name)
  const grant = async (...subprotocols: string[]) => {
    await bastion.broker.must('PUT', `/authorizations/${authorization}`, { subprotocols })
    sessions = (await bastion.closedSessions()).length
  }
  /** Returns the events of that code of a test's session, and its frames. */
  const left = async () => {
    for (const client of clients.splice(0)) client.destroy()
    for (const daemon of running.splice(0)) await daemon.stop()
    const row = (await bastion.closedSessions(sessions + 1)).at(-1)!
    const of = async (code: string) =>
      (await bastion.events(code)).filter(({ session }) => session === row.id)
    return { row, of, frames: await framesOf(bastion.broker, row.id) }
  }

  describe('WinSCP', () => {
    const OWN = 256
    const ADJUST = 0x4000
    /** PuTTY's fallback for servers without the subsystem, as in WinSCP. */
    const FALLBACK = [
      'test -x /usr/lib/sftp-server && exec /usr/lib/sftp-server',
      'test -x /usr/local/lib/sftp-server && exec /usr/local/lib/sftp-server',
      'exec sftp-server',
    ].join('\n')

    interface Channel {
      client: RawClient
      id: number
      /** Returns the data since the last call. */
      take(): Buffer
      /** Waits for data until `isEnough`, and returns it. */
      until(isEnough: (all: Buffer) => boolean): Promise<Buffer>
    }

    /** Opens one session channel, announced as the only one. */
    async function connect(): Promise<Channel> {
      const { port, user } = bastion.login()
      const client = await signInRaw({ port, user, password: bastion.password })
      clients.push(client)
      client.send(sessionOpen(OWN, 0x7fffffff - ADJUST))
      const id = parseChannelOpenConfirmation(await client.next(MSG.channelOpenConfirmation)).sender
      client.send(buildChannelRequest(id, 'simple@putty.projects.tartarus.org', false))
      const take = (): Buffer => {
        const data = client.received.splice(0).flatMap((payload) => {
          if (payload[0] === MSG.channelData) return [dataOf(payload)]
          return payload[0] === MSG.channelExtendedData ? [extendedDataOf(payload)] : []
        })
        return Buffer.concat(data)
      }
      return {
        client,
        id,
        take,
        until: async (isEnough) => {
          let all = Buffer.alloc(0)
          return await until('an answer', () => {
            all = Buffer.concat([all, take()])
            return isEnough(all) ? all : undefined
          })
        },
      }
    }

    const answer = async ({ client }: Channel) =>
      (await client.next(MSG.channelSuccess, MSG.channelFailure))[0]

    describe('over SFTP', () => {
      /** WinSCP requests version 6, and writes and reads in one handle each. */
      async function transfer(channel: Channel): Promise<Buffer> {
        const ask = async (request: Buffer) => {
          channel.client.send(buildData(channel.id, request))
          const all = await channel.until((bytes) => packetsOf(bytes).length > 0)
          return packetsOf(all)[0]!
        }
        const handleOf = (body: Buffer): string => body.subarray(8).toString('latin1')
        const version = await ask(init(6))
        expect([version.type, version.body.readUInt32BE(0)]).toEqual([FXP.version, 3])
        await ask(named(FXP.realpath, 3, '.'))
        const made = await ask(open(4, remote('up.txt'), WRITE | CREATE | TRUNCATE))
        expect(made.type).toBe(FXP.handle)
        const writing = handleOf(made.body)
        await ask(
          packet(FXP.write, (w) =>
            w.uint32(5).string(Buffer.from(writing, 'latin1')).uint64(0n).string(CONTENT),
          ),
        )
        await ask(named(FXP.close, 6, writing))
        const opened = await ask(open(7, remote('up.txt'), READ))
        const got = await ask(read(8, handleOf(opened.body), 0, 32_768))
        await ask(read(9, handleOf(opened.body), CONTENT.length, 32_768))
        await ask(named(FXP.close, 10, handleOf(opened.body)))
        return got.body.subarray(8)
      }

      test('the subsystem: both ways, with SFTP_SESSION', async () => {
        await grant('SFTP_SESSION')
        const channel = await connect()
        channel.client.send(buildSubsystem(channel.id, true, 'sftp'))
        expect(await answer(channel)).toBe(MSG.channelSuccess)
        expect((await transfer(channel)).toString()).toBe(CONTENT)
        expect(readFileSync(remote('up.txt'), 'utf8')).toBe(CONTENT)
        channel.client.send(buildEof(channel.id), buildClose(channel.id))
        const { of, row } = await left()
        expect(row).toMatchObject({ result: 'success', recording: { state: 'sealed' } })
        expect((await of('file.transfer')).map(({ direction, sha256 }) => [direction, sha256])).toEqual([
          ['up', SHA256],
          ['down', SHA256],
        ])
      })

      test.each([
        ['commands', ['SSH_REMOTE_COMMAND']],
        ['nothing of it', ['SSH_SHELL']],
      ])(
        'with %s granted: neither by the subsystem, nor by the command that it tries then',
        async (_, rights) => {
          await grant(...rights)
          const channel = await connect()
          channel.client.send(buildSubsystem(channel.id, true, 'sftp'))
          channel.client.send(buildExec(channel.id, true, FALLBACK), buildData(channel.id, init(6)))
          const isClose = ([type]: Buffer): boolean => type === MSG.channelClose
          await until('its end', () => channel.client.received.some(isClose) || undefined)
          expect(channel.take().toString('latin1')).not.toMatch(/^\0\0\0.\x02/s)

          // If the subsystem's refusal closes the channel, WinSCP may try the command on another.
          const again = await connect()
          again.client.send(buildExec(again.id, true, FALLBACK))
          const hasWindow = ([type]: Buffer): boolean => type === MSG.channelWindowAdjust
          await until(
            'room',
            () => again.client.received.some((one) => hasWindow(one) || isClose(one)) || undefined,
          )
          again.client.send(buildData(again.id, init(6)))
          await until('its end', () => again.client.received.some(isClose) || undefined)
          const seen = again.take().toString('latin1')
          expect(seen).toMatch(/sallyport: .*(SSH_REMOTE_COMMAND|SFTP_SESSION)/)
          expect(seen).not.toMatch(/^\0\0\0.\x02/s)
        },
      )
    })

    describe('in its SCP mode', () => {
      const END = 'WinSCP: this is end-of-file:'

      /** Starts a shell without a terminal, into which every command is typed with a mark behind it. */
      async function begin() {
        const channel = await connect()
        channel.client.send(buildShell(channel.id, true))
        expect(await answer(channel)).toBe(MSG.channelSuccess)
        const say = (text: string) => channel.client.send(buildData(channel.id, text))
        const mark = () => channel.until((all) => new RegExp(`${END}\\d+\\n`).test(all.toString('latin1')))
        const type = async (command: string) => {
          say(`${command} ; echo "${END}$?"\n`)
          return (await mark()).toString('latin1')
        }
        say(`echo "${END}0"\n`)
        await mark()
        return { channel, say, mark, type }
      }

      test('a folder, a file there and a file back, through the shell, with SSH_SHELL', async () => {
        await grant('SSH_SHELL')
        const { channel, say, mark, type } = await begin()
        expect(await type('pwd')).toBe(`${bastion.account.home}\n${END}0\n`)
        await type('unset LANG')
        await type(`mkdir "${remote('w')}"`)
        expect(await type(`ls -la "${bastion.account.home}"`)).toMatch(/ w\n/)

        say(`scp -r -p -d -t "${remote('w')}" ; echo "${END}$?"\n`)
        const ok = () => channel.until((all) => all.includes(0))
        await ok()
        for (const step of [
          'T1700000000 0 1700000000 0\n',
          `C0644 ${CONTENT.length} up.txt\n`,
          `${CONTENT}\0`,
        ]) {
          say(step)
          await ok()
        }
        channel.client.send(buildData(channel.id, 'E\n'))
        await mark()
        expect(readFileSync(join(remote('w'), 'up.txt'), 'utf8')).toBe(CONTENT)

        say(`scp -r -p -f "${remote('w')}/up.txt" ; echo "${END}$?"\n\0\0`)
        await channel.until((all) => all.includes('up.txt\n'))
        say('\0')
        await channel.until((all) => all.includes(CONTENT))
        say('\0')
        await mark()
        say('exit\n')

        const { row, of, frames } = await left()
        expect(row).toMatchObject({ subprotocols: ['SSH_SHELL'], recording: { state: 'sealed' } })
        // No file event: it is a shell, and its input and output are recorded, files included.
        expect(await of('file.transfer')).toEqual([])
        expect(streamOf(frames, 'input').toString('latin1')).toContain(`scp -r -p -d -t "${remote('w')}"`)
        expect(streamOf(frames, 'input').toString('latin1')).toContain(CONTENT)
        expect(streamOf(frames, 'output').toString('latin1')).toContain(CONTENT)
      })

      test('not with the rights of scp', async () => {
        await grant('SSH_SCP_UP', 'SSH_SCP_DOWN')
        const channel = await connect()
        channel.client.send(buildShell(channel.id, true))
        const seen = await channel.until((all) => all.includes('sallyport'))
        expect(seen.toString()).toMatch(/the right SSH_SHELL is missing/)
      })
    })
  })

  describe('VS Code Remote-SSH', () => {
    const MARK = 'listeningOn=='
    /** Stands in for VS Code's server: it prints where it listens, and runs as long as the script. */
    const SCRIPT = `exec python3 -u -c '
import os, socket, sys, threading
def serve(s):
    while True:
        c, _ = s.accept()
        c.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\n\\r\\n" + c.recv(100))
        c.close()
t = socket.create_server(("127.0.0.1", 0))
u = socket.socket(socket.AF_UNIX); u.bind(os.environ["SOCK"]); os.chmod(os.environ["SOCK"], 0o666); u.listen()
for s in (t, u): threading.Thread(target=serve, args=(s,), daemon=True).start()
print("${MARK}%d==" % t.getsockname()[1])
sys.stdin.read()
'
`

    /** Runs `ssh -T -D PORT HOST bash` with a script on its input, which stays open after it. */
    async function start(
      shell: string,
    ): Promise<{ local: number; port: number; socket: string; viaSocket: string }> {
      const local = await freePort()
      const name = randomBytes(6).toString('hex')
      const [socket, viaSocket] = [`/tmp/vscode-${name}.sock`, join(bastion.home.folder, `${name}.sock`)]
      const script = join(bastion.home.folder, `${name}.sh`)
      writeFileSync(script, `export SOCK=${socket}\n${SCRIPT}`)
      const args = [
        '-v',
        '-T',
        '-D',
        String(local),
        '-L',
        `${viaSocket}:${socket}`,
        '-o',
        'ConnectTimeout=15',
      ]
      const words = [...args, ...sshArguments(bastion.home, bastion.login()), shell]
      const pipe = '(cat "$0"; exec sleep 1000) | exec "$@"'
      const daemon = await startDaemon(
        'bash',
        ['-c', pipe, script, findProgram('ssh'), ...words],
        new RegExp(`${MARK}\\d+==`),
        { env: bastion.home.env(bastion.password) },
      )
      running.push(daemon)
      await until('the forwarding', async () => (await isListening({ port: local, host: HOST })) || undefined)
      return { local, port: Number(new RegExp(`${MARK}(\\d+)`).exec(daemon.log())![1]), socket, viaSocket }
    }

    /** Returns the response of a port of the target's loopback through SOCKS. */
    function throughSocks(local: number, port: number): Promise<Buffer> {
      const request = Buffer.from([5, 1, 0, 1, 127, 0, 0, 1, port >> 8, port & 0xff])
      return exchange({ port: local, host: HOST }, [
        Buffer.from([5, 1, 0]),
        request,
        Buffer.from('GET / HTTP/1.1'),
      ])
    }

    test.each(['bash', 'sh'])(
      'by %s: the script runs, and its server is reached through the connection',
      async (shell) => {
        await grant('SSH_REMOTE_COMMAND', 'SSH_DIRECT_TCPIP', 'SSH_DIRECT_UNIXSOCK')
        const { local, port, socket, viaSocket } = await start(shell)
        expect((await throughSocks(local, port)).toString('latin1')).toMatch(/101 Switching.*GET \/ HTTP/s)
        expect((await exchange({ path: viaSocket }, 'GET /x')).toString()).toMatch(/101 Switching.*GET \/x/s)
        const { of, frames } = await left()
        expect((await of('command')).map(({ object }) => object)).toEqual([shell])
        expect(
          (await of('channel.open')).map(({ subprotocol, destination }) => [subprotocol, destination]),
        ).toEqual(
          expect.arrayContaining([
            ['SSH_DIRECT_TCPIP', `${HOST}:${port}`],
            ['SSH_DIRECT_UNIXSOCK', socket],
          ]),
        )
        expect(streamOf(frames, 'input').toString()).toContain('create_server')
        expect(streamOf(frames, 'output').toString()).toContain(`${MARK}${port}==`)
        expect(fieldsOf(frames, 'unrecorded').map(({ reason }) => reason)).toContain('forwarded')
      },
    )

    test('without SSH_DIRECT_TCPIP the script runs, and its server is not reached', async () => {
      await grant('SSH_REMOTE_COMMAND')
      const { local, port } = await start('bash')
      const came = await throughSocks(local, port).catch(() => Buffer.alloc(0))
      expect(came.toString('latin1')).not.toContain('101')
      const { of } = await left()
      expect((await of('channel.denied')).map(({ subprotocol }) => subprotocol)).toContain('SSH_DIRECT_TCPIP')
    })
  })
})
