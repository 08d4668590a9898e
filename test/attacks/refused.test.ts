import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  buildChannelRequest,
  buildExec,
  buildGlobalRequest,
  buildSubsystem,
} from '../../proxies/ssh/codec/build.ts'
import { MSG, OPEN_FAILURE, parseChannelOpenFailure } from '../../proxies/ssh/codec/messages.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import type { Bastion } from '../e2e/bastion.ts'
import { ssh } from '../peers/openssh.ts'
import { freePort, startDaemon } from '../peers/process.ts'
import { findProgram } from '../peers/program.ts'
import { until } from '../until.ts'
import { channelOpen } from './raw.ts'

import { begin, describeAttacks, forward, openSession } from './setting.ts'

const NOTHING = Buffer.alloc(0)

describeAttacks('never allowed', (setting) => {
  const { arrive, denials } = setting
  let bastion: Bastion
  beforeAll(() => {
    bastion = setting.bastion
  })

  describe('channels and requests that no right opens, or one that is missing', () => {
    const socket = new Writer().string('/run/x.sock').string('').uint32(0).finish()
    const channels: [string, Buffer, denied?: string][] = [
      ['direct-tcpip', forward('127.0.0.1', 22), 'SSH_DIRECT_TCPIP'],
      ['direct-streamlocal@openssh.com', socket, 'SSH_DIRECT_UNIXSOCK'],
      ['tun@openssh.com', new Writer().uint32(1).uint32(0).finish()],
      ['forwarded-tcpip', forward('127.0.0.1', 22)],
      ['x11', new Writer().string('127.0.0.1').uint32(6000).finish()],
      ['auth-agent@openssh.com', NOTHING],
      ['no-such-channel', NOTHING],
    ]

    test.each(channels)('the channel %s', async (type, data, denied) => {
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
      expect((await denials()).slice(before)).toEqual([denied ?? `channel ${type}`])
    })

    test.each([
      ['tcpip-forward', new Writer().string('0.0.0.0').uint32(8080).finish(), 'SSH_REVERSE_TCPIP'],
      ['cancel-tcpip-forward', new Writer().string('0.0.0.0').uint32(8080).finish(), 'SSH_REVERSE_TCPIP'],
      ['streamlocal-forward@openssh.com', new Writer().string('/tmp/x').finish(), 'SSH_REVERSE_UNIXSOCK'],
      ['hostkeys-00@openssh.com', NOTHING, 'hostkeys-00@openssh.com'],
    ])('the global request %s', async (name, data, denied) => {
      const before = (await denials()).length
      const client = await arrive()
      await begin(client)
      client.send(buildGlobalRequest({ name, wantReply: true, data }))
      await client.next(MSG.requestFailure)
      await bastion.events('channel.denied', before + 1)
      expect((await denials()).slice(before)).toEqual([denied])
    })

    test.each([
      [
        'x11-req',
        new Writer().boolean(false).string('MIT-MAGIC-COOKIE-1').string('00').uint32(0).finish(),
        'SSH_X11',
      ],
      ['auth-agent-req@openssh.com', NOTHING, 'SSH_AUTH_AGENT'],
    ])('the channel request %s', async (type, data, denied) => {
      const before = (await denials()).length
      const client = await arrive()
      const id = await openSession(client)
      client.send(buildChannelRequest(id, type, true, data))
      expect((await client.next(MSG.channelSuccess, MSG.channelFailure))[0]).toBe(MSG.channelFailure)
      await bastion.events('channel.denied', before + 1)
      expect((await denials()).slice(before)).toEqual([denied])
      // The channel itself stays open.
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
      await bastion.events('channel.denied', before + 1)
      expect((await denials()).slice(before)).toEqual(['SSH_DIRECT_TCPIP'])
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
      expect(found.map(({ subprotocol }) => subprotocol)).toEqual(['SSH_DIRECT_TCPIP', 'SSH_DIRECT_TCPIP'])
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
      expect((await denials()).slice(before)).toEqual(['SSH_REVERSE_TCPIP'])
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
})
