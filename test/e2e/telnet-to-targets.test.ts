/** Telnet and rlogin clients at targets of every kind, and with a typed login there. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { COMMAND } from '../../proxies/telnet/codec/numbers.ts'
import { openUrgentData } from '../../src/sockets/urgent.ts'
import { startFalseTerminal } from '../attacks/false-terminal.ts'
import { INETD_PEERS, type Inetd, startInetd } from '../peers/inetd.ts'
import { describeWithPeers } from '../peers/program.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from '../peers/users.ts'
import { type EchoServer, startEchoServer } from '../proxies/telnet/listener.ts'
import { until } from '../until.ts'
import { bareTelnet, hangUp } from './bare-telnet.ts'
import { framesOf, streamOf } from './recorded.ts'
import { RLOGIN_CLIENTS, startClient, TELNET_CLIENTS } from './terminal-clients.ts'
import { startTerminalBastion, type TerminalBastion } from './terminals.ts'

describeWithPeers(
  'over Telnet and rlogin to Telnet and rlogin',
  [...INETD_PEERS, 'inetutils-telnet', 'rsh-redone-rlogin', 'python3'],
  () => {
    const root = test.runIf(canCreateUsers())
    let inetd: Inetd
    let user: SystemUser
    let echo: EchoServer
    let bastion: TerminalBastion

    beforeAll(async () => {
      if (!canCreateUsers()) return
      const opened = await openUrgentData()
      if (!('urgent' in opened)) throw new Error(opened.missing)
      echo = await startEchoServer(opened.urgent)
      inetd = await startInetd()
      user = await createSystemUser()
      bastion = await startTerminalBastion({ terminals: {} })
    })
    afterAll(async () => {
      await bastion?.stop()
      await inetd?.stop()
      await user?.remove()
      echo?.close()
    })
    afterEach(() => hangUp())

    const clients = [TELNET_CLIENTS[0]!, RLOGIN_CLIENTS[0]!]
    const pairs = clients.flatMap((kind) => (['TELNET', 'RLOGIN'] as const).map((to) => [kind, to] as const))

    root.each(pairs.map(([kind, to]) => [kind.name, to, kind] as const))(
      '%s reaches %s, and is recorded there',
      async (name, to, kind) => {
        const login = await bastion.add({
          device: `${kind.protocol}-${to}`.toLowerCase(),
          protocol: to,
          port: to === 'TELNET' ? inetd.telnet : inetd.rlogin,
          account: user.name,
          credentials: [{ type: 'password', password: user.password }],
        })
        const terminal = startClient(kind, bastion.broker.ports, login.user)
        try {
          await terminal.expect('Password: ')
          terminal.send(`${login.password}\r`)
          await terminal.expect(user.prompt)
          terminal.send('echo "at $(stty size)"\r')
          await terminal.expect('at 43 132\r\n')
          terminal.resize(100, 30)
          await until('the new size', async () => {
            terminal.send('stty size\r')
            return (await terminal.expect(/\r\d+ \d+\r/)).includes('30 100') || undefined
          })
          await terminal.expect(user.prompt)
          terminal.send('exit\r')
          await terminal.exit()
          expect(terminal.output(), name).not.toContain(user.password)
        } finally {
          await terminal.close()
        }
        const row = await bastion.closed()
        expect(row).toMatchObject({ protocol: to, subprotocols: [to], result: 'success' })
        expect(streamOf(await framesOf(bastion.broker, row.id), 'output').toString()).toContain('at 43 132')
      },
    )

    root('who leaves while the bastion logs in is noticed, with keys that nobody has taken', async () => {
      const silent = await startFalseTerminal((socket) => void socket.write('please wait ...'))
      const login = await bastion.add({
        device: 'silent',
        protocol: 'TELNET',
        port: silent.port,
        credentials: [{ type: 'password', password: 'not asked for' }],
      })
      const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
      telnet.type(`${login.user}\r${login.password}\rls -l\r`)
      await telnet.sees('please wait ...')
      telnet.socket.destroy()
      // Long before the login would have timed out.
      const { result, reason } = await bastion.closed()
      expect({ result, reason }).toEqual({ result: 'success', reason: null })
      await silent.stop()
    })

    root('a break, an interrupt and every byte reach a Telnet target', async () => {
      const login = await bastion.add({
        device: 'echo',
        protocol: 'TELNET',
        port: echo.port,
        by: 'interactive_logins',
      })
      const telnet = await bareTelnet({ port: bastion.broker.ports.telnet! })
      await telnet.sees('login: ')
      telnet.type(`${login.user}\r`)
      await telnet.sees('Password: ')
      telnet.type(`${login.password}\r`)
      await telnet.sees('welcome')
      telnet.raw(Uint8Array.of(COMMAND.IAC, COMMAND.BRK, COMMAND.IAC, COMMAND.IP))
      telnet.type(Buffer.from('z\xc3\xb6lf \xff\xfe\r', 'latin1'))
      await until(
        () => JSON.stringify([echo.events, echo.typed()]),
        () => echo.typed().includes('\x03z\xc3\xb6lf \xff\xfe\r') || undefined,
      )
      expect(echo.events).toContainEqual(['command', COMMAND.BRK])
      expect(echo.events).toContainEqual(['windowSize', { columns: 132, rows: 43 }])
    })
  },
)
