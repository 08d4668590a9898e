/** Telnet and rlogin clients at the bastion, on their way to an SSH server: real clients, a real target. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import { framesOf, streamOf } from './recorded.ts'
import {
  RLOGIN_CLIENTS,
  startTerminalPeople,
  TELNET_CLIENTS,
  type TerminalPeople,
} from './terminal-clients.ts'

const MENU = 'q to leave: '

for (const kind of [...TELNET_CLIENTS, ...RLOGIN_CLIENTS]) {
  describeWithPeers(kind.name, ['sshd', 'python3', kind.program], () => {
    let people: TerminalPeople

    beforeAll(async () => {
      people = await startTerminalPeople()
    })
    afterAll(() => people.bastion.stop())
    afterEach(() => people.closeTerminals())

    test('has a shell at the target, of its window’s size, that is recorded', async () => {
      const { bastion } = people
      const terminal = await people.signIn(kind)
      expect(terminal.output()).toContain('this connection is not encrypted')
      terminal.send('echo "at $(stty size) $TERM"\r')
      await terminal.expect(`at 43 132 ${kind.type}`)
      await terminal.expect(bastion.account.prompt)
      if (kind.resizes) {
        terminal.resize(100, 30)
        await until('the new size', async () => {
          terminal.send('stty size\r')
          return (await terminal.expect(/\r\d+ \d+\r/)).includes('30 100') || undefined
        })
        await terminal.expect(bastion.account.prompt)
      }
      terminal.send('printf "z\\303\\266lf %s\\n" ö\r')
      await terminal.expect(/zölf ö\r+\n/)
      terminal.send('exit\r')
      await terminal.exit()

      const [row] = await bastion.closedSessions(1)
      expect(row).toMatchObject({ user: 'ops1', result: 'success', subprotocols: ['SSH_SHELL'] })
      const frames = await framesOf(bastion.broker, row!.id)
      expect(streamOf(frames, 'output').toString()).toContain(`at 43 132 ${kind.type}`)
      expect(streamOf(frames, 'input').toString()).toContain('stty size')
      const events = await bastion.events('command', 1)
      expect(events.map(({ object }) => object)).toContain('echo "at $(stty size) $TERM"')
      const successes = await bastion.events('auth.success', 1)
      expect(successes.find(({ user }) => user === 'ops1')).toMatchObject({
        protocol: kind.protocol,
        method: 'password',
      })
      expect(bastion.broker.log()).not.toContain(bastion.password)
      if (!kind.keepsLines) expect(terminal.output()).not.toContain(bastion.password)
    })

    test.skipIf(kind.keepsLines)('interrupts what runs by Ctrl-C', async () => {
      const terminal = await people.signIn(kind)
      terminal.send("sh -c 'echo sta\\rted; exec sleep 1000'\r")
      await terminal.expect('started')
      terminal.send('\x03')
      await terminal.expect(people.bastion.account.prompt)
    })

    test('asks again after a wrong password, with the same words for somebody unknown', async () => {
      const terminal = people.start(kind, 'nobody-here')
      if ((await terminal.expect(/login: (\S*)/)).endsWith('login: ')) terminal.send('nobody-here\r')
      await terminal.expect('Password: ')
      terminal.send('wrong\r')
      const unknown = await terminal.expect(/login: $/)
      terminal.send('ops1\r')
      await terminal.expect('Password: ')
      terminal.send('wrong\r')
      expect(await terminal.expect(/login: $/)).toBe(unknown)
      expect(unknown).toContain('Login incorrect')
      const failures = await people.bastion.events('auth.failure', 2)
      expect(failures.slice(-2)).toMatchObject([
        { user: 'nobody-here', reason: 'unknown_user', protocol: kind.protocol },
        { user: 'ops1', reason: 'wrong_password', protocol: kind.protocol },
      ])
    })

    test('chooses its target in the menu', async () => {
      const { bastion } = people
      const terminal = people.start(kind, 'ops1')
      if ((await terminal.expect(/login: (\S*)/)).endsWith('login: ')) terminal.send('ops1\r')
      await terminal.expect('Password: ')
      terminal.send(`${bastion.password}\r`)
      await terminal.expect(MENU)
      terminal.send('1\r')
      await terminal.expect(bastion.account.prompt)
      terminal.send('exit\r')
      await terminal.exit()
    })
  })
}
