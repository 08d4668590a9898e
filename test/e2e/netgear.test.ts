/** Logins at network gear: a password alone, a user name, and the second password of the privileged mode. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { FRR, LIBCLI, NETGEAR_PEERS, type Netgear, startFrr, startLibcli } from '../peers/netgear.ts'
import { sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import type { Terminal } from '../peers/terminal.ts'
import { canCreateUsers } from '../peers/users.ts'
import { framesOf } from './recorded.ts'
import { startTerminalBastion, type TerminalBastion, type TerminalService } from './terminals.ts'

describeWithPeers('network gear', canCreateUsers() ? [...NETGEAR_PEERS, 'ssh'] : [], () => {
  const root = test.runIf(canCreateUsers())
  let bastion: TerminalBastion
  const gear: Record<string, Netgear> = {}
  const terminals: Terminal[] = []
  let devices = 0

  beforeAll(async () => {
    if (!canCreateUsers()) return
    gear['frr'] = await startFrr()
    gear['libcli'] = await startLibcli()
    bastion = await startTerminalBastion()
  })
  afterAll(async () => {
    await bastion?.stop()
    for (const { stop } of Object.values(gear)) await stop()
  })
  afterEach(async () => {
    for (const terminal of terminals.splice(0)) await terminal.close()
  })

  async function open(kind: string, secrets: Record<string, string>, more: Partial<TerminalService> = {}) {
    const credentials = Object.entries(secrets)
      .filter(([type]) => type === 'password' || type === 'enable')
      .map(([type, password]) => ({ type: type as 'password' | 'enable', password }))
    const login = await bastion.add({
      device: `${kind}-${++devices}`,
      protocol: 'TELNET',
      port: gear[kind]!.port,
      credentials,
      // Some devices prompt for a password only.
      policy: { password_prompt: '(?i)password:\\s*$' },
      ...more,
    })
    const terminal = sshTerminal(bastion.home, login)
    terminals.push(terminal)
    return terminal
  }
  const leave = async (terminal: Terminal, secrets: readonly string[]) => {
    expect(await terminal.exit()).toBe(0)
    const row = await bastion.closed()
    const shown = terminal.output() + JSON.stringify(await framesOf(bastion.broker, row.id))
    for (const secret of secrets) expect(shown).not.toContain(secret)
    return row
  }

  describe('FRR', () => {
    root('asks for a password alone', async () => {
      const terminal = await open('frr', { password: FRR.password })
      await terminal.expect('*** Authorised access only ***')
      await terminal.expect('core-sw1> ')
      terminal.send('exit\r')
      await leave(terminal, [FRR.password])
    })

    root('is brought into its privileged mode', async () => {
      const terminal = await open('frr', FRR)
      await terminal.expect('core-sw1# ')
      terminal.send('show version\r')
      await terminal.expect('FRRouting')
      await terminal.expect('core-sw1# ')
      terminal.send('exit\r')
      const row = await leave(terminal, [FRR.password, FRR.enable])
      expect(bastion.events('command')).toContainEqual(
        expect.objectContaining({ session: row.id, subprotocol: 'TELNET', object: 'show version' }),
      )
    })

    root.each([
      [{ ...FRR, password: 'wrong' }, /refused the password of admin/],
      [{ ...FRR, enable: 'wrong' }, /refused the secret for enable/],
    ])('refuses a wrong secret: %j', async (secrets, message) => {
      const terminal = await open('frr', secrets)
      await terminal.expect(message)
      expect(await terminal.exit()).toBe(255)
      expect((await bastion.closed()).reason).toMatch(message)
    })

    root('asks for what is not stored', async () => {
      const terminal = await open('frr', {})
      await terminal.expect('asks for a password, and none is stored for the account')
      expect(await terminal.exit()).toBe(255)
    })

    root('is logged in to by a person who types', async () => {
      const terminal = await open('frr', {}, { by: 'interactive_logins' })
      await terminal.expect('Password: ')
      terminal.send(`${FRR.password}\r`)
      await terminal.expect('core-sw1> ')
      terminal.send('exit\r')
      await leave(terminal, [FRR.password])
    })
  })

  describe('libcli', () => {
    root('asks for user name, password and enable', async () => {
      const terminal = await open('libcli', LIBCLI)
      await terminal.expect('sw1# ')
      terminal.send('show version\r')
      await terminal.expect('Lab switch OS 1.0')
      await terminal.expect('sw1# ')
      terminal.send('quit\r')
      terminal.send('quit\r')
      await leave(terminal, [LIBCLI.password, LIBCLI.enable])
    })

    root('refuses a wrong password', async () => {
      const terminal = await open('libcli', { password: 'wrong' })
      await terminal.expect(/refused the password of admin/)
      expect(await terminal.exit()).toBe(255)
    })
  })
})
