/** Forwarded connections with clients other than OpenSSH, and another target. */
import { randomBytes } from 'node:crypto'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startDropbear } from '../peers/dropbear.ts'
import { exchange, isListening, type Listener, startEcho, startForwarding } from '../peers/forwarding.ts'
import { generateKey } from '../peers/keys.ts'
import { type Daemon, freePort, run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { dbclientForwarding, plinkForwarding } from '../peers/putty.ts'
import { type Bastion, startBastion } from './bastion.ts'

const MEBIBYTE = 1024 * 1024
const HOST = '127.0.0.1'
const PEERS = ['sshd', 'ssh', 'plink', 'dbclient', 'dropbear', 'dropbearkey', 'python3-asyncssh'] as const

describeWithPeers('forwarding with other clients', PEERS, () => {
  let bastion: Bastion
  let echo: Listener
  const running: Daemon[] = []

  beforeAll(async () => {
    const subprotocols = [
      'SSH_DIRECT_TCPIP',
      'SSH_REVERSE_TCPIP',
      'SSH_DIRECT_UNIXSOCK',
      'SSH_REVERSE_UNIXSOCK',
    ]
    bastion = await startBastion({ subprotocols })
    echo = await startEcho()
    // The users of both sides have sockets there.
    chmodSync(bastion.home.folder, 0o777)
  })
  afterAll(async () => {
    echo.stop()
    await bastion.stop()
  })
  afterEach(async () => {
    for (const daemon of running.splice(0)) await daemon.stop()
  })

  const bothWays = async (start: (flags: string[], ready: () => Promise<boolean>) => Promise<Daemon>) => {
    const [local, remote] = [await freePort(), await freePort()]
    const flags = ['-L', `${local}:${HOST}:${echo.port}`, '-R', `${remote}:${HOST}:${echo.port}`]
    const ready = async () =>
      (await isListening({ port: local, host: HOST })) && (await isListening({ port: remote, host: HOST }))
    running.push(await start(flags, ready))
    for (const port of [local, remote]) {
      const data = randomBytes(MEBIBYTE)
      expect((await exchange({ port, host: HOST }, data)).equals(data)).toBe(true)
    }
  }

  test('plink -L and -R', async () => {
    const key = join(bastion.broker.dataFolder, 'ssh', 'ssh_host_ed25519_key.pub')
    const { stdout } = await run(findProgram('ssh-keygen'), ['-l', '-f', key])
    const login = bastion.login({ hostFingerprint: stdout.split(' ')[1] ?? '' })
    await bothWays((flags, ready) => plinkForwarding(bastion.home, login, flags, ready))
  })

  test('dbclient -L and -R', async () => {
    await bothWays((flags, ready) => dbclientForwarding(bastion.home, bastion.login(), flags, ready))
  })

  test('asyncssh, all four ways', async () => {
    const path = join(bastion.home.folder, 'asyncssh.sock')
    const listener = await startEcho(path)
    chmodSync(path, 0o777)
    const script = `
import asyncio, asyncssh
async def echoed(reader, writer):
    writer.write(b'hello'); writer.write_eof()
    assert await reader.read() == b'hello'
    writer.close()
async def main():
    connection = await asyncssh.connect('127.0.0.1', ${bastion.login().port}, username='${bastion.login().user}',
        password='${bastion.password}', known_hosts=None, config=None, client_keys=None)
    async with connection:
        await echoed(*await connection.open_connection('127.0.0.1', ${echo.port}))
        await echoed(*await connection.open_unix_connection('${path}'))
        tcp = await connection.forward_remote_port('127.0.0.1', 0, '127.0.0.1', ${echo.port})
        await echoed(*await asyncio.open_connection('127.0.0.1', tcp.get_port()))
        socket = await connection.forward_remote_path('${bastion.account.home}/asyncssh.sock', '${path}')
        await echoed(*await asyncio.open_unix_connection('${bastion.account.home}/asyncssh.sock'))
        tcp.close(); await tcp.wait_closed()
asyncio.run(main()); print('done')
`
    const { stdout, stderr } = await run(findProgram('python3'), ['-W', 'ignore', '-c', script], {
      env: bastion.home.env(),
    })
    listener.stop()
    expect({ stdout, stderr }).toEqual({ stdout: 'done\n', stderr: '' })
  })

  test('through dropbear as the target', async () => {
    const key = await generateKey(bastion.home.folder)
    const dropbear = await startDropbear({ user: bastion.account, authorizedKeys: [key.publicKey] })
    const { must } = bastion.broker
    await must('POST', '/devices', { device_name: 'small', host: HOST })
    await must('POST', '/devices/small/services', {
      service_name: 'ssh',
      protocol: 'SSH',
      port: dropbear.port,
    })
    await must('POST', '/accounts', {
      account_name: bastion.account.name,
      device: 'small',
      domain: 'local',
      credentials: [{ type: 'ssh_key', private_key: key.privateKey }],
    })
    const account = `${bastion.account.name}@local:small:ssh`
    await must('POST', '/targetgroups', { group_name: 'small', session: { accounts: [account] } })
    await must('POST', '/authorizations', {
      user_group: 'ops1-srv1-users',
      target_group: 'small',
      authorize_sessions: true,
      subprotocols: ['SSH_DIRECT_TCPIP', 'SSH_REVERSE_TCPIP'],
    })
    const login = bastion.login({ user: `ops1+${bastion.account.name}@small` })
    await bothWays((flags, ready) => startForwarding(bastion.home, login, flags, ready))
    for (const daemon of running.splice(0)) await daemon.stop()
    await dropbear.stop()
  })
})
