/** An SSH client at a Telnet or rlogin target: logged in by the bastion, recorded, and ended like any other session. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Login } from '../peers/home.ts'
import { INETD_PEERS, type Inetd, startInetd } from '../peers/inetd.ts'
import { watchAsAdmin } from '../peers/live.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import type { Terminal } from '../peers/terminal.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from '../peers/users.ts'
import { until } from '../until.ts'
import { filesWith, framesOf, streamOf } from './recorded.ts'
import { startTerminalBastion, type TerminalBastion } from './terminals.ts'

describeWithPeers('a Unix system', canCreateUsers() ? [...INETD_PEERS, 'ssh'] : [], () => {
  const root = test.runIf(canCreateUsers())
  let inetd: Inetd
  let user: SystemUser
  let bastion: TerminalBastion
  const terminals: Terminal[] = []

  beforeAll(async () => {
    if (!canCreateUsers()) return
    inetd = await startInetd()
    user = await createSystemUser()
    bastion = await startTerminalBastion()
  })
  afterAll(async () => {
    await bastion?.stop()
    await inetd?.stop()
    await user?.remove()
  })
  afterEach(async () => {
    for (const terminal of terminals.splice(0)) await terminal.close()
  })

  const open = (login: Login): Terminal => {
    const terminal = sshTerminal(bastion.home, login, [], { columns: 133, lines: 41 })
    terminals.push(terminal)
    return terminal
  }

  describe.each(['TELNET', 'RLOGIN'] as const)('%s', (protocol) => {
    let login: Login
    beforeAll(async () => {
      if (!canCreateUsers()) return
      login = await bastion.add({
        device: `unix-${protocol.toLowerCase()}`,
        protocol,
        port: protocol === 'TELNET' ? inetd.telnet : inetd.rlogin,
        account: user.name,
        credentials: [{ type: 'password', password: user.password }],
      })
    })

    root('is logged in to, sized, recorded and told of', async () => {
      const terminal = open(login)
      await terminal.expect(user.prompt)
      terminal.send('echo "at $(stty size) $TERM"\r')
      await terminal.expect('at 41 133 xterm-256color\r\n')
      terminal.resize(100, 30)
      await until('the new size', async () => {
        terminal.send('stty size\r')
        const shown = await terminal.expect(/\r\d+ \d+\r\n/)
        return shown.includes('30 100') || undefined
      })
      await terminal.expect(user.prompt)
      terminal.send('exit\r')
      expect(await terminal.exit()).toBe(0)
      expect(terminal.output()).not.toContain(user.password)

      const row = await bastion.closed()
      expect(row).toMatchObject({ protocol, subprotocols: [protocol], result: 'success' })
      const frames = await framesOf(bastion.broker, row.id)
      const output = streamOf(frames, 'output').toString()
      expect(output).toContain('at 41 133 xterm-256color')
      expect(output).toContain(user.prompt)
      expect(JSON.stringify(frames)).not.toContain(user.password)
      expect(streamOf(frames, 'input').toString()).toContain('stty size')
      expect(filesWith(bastion.broker.dataFolder, [user.password])).toEqual([])
      expect(bastion.events('command')).toContainEqual(
        expect.objectContaining({ session: row.id, subprotocol: protocol, object: 'stty size' }),
      )
    })

    root('is interrupted', async () => {
      const terminal = open(login)
      await terminal.expect(user.prompt)
      // The program prints when it runs: before that the shell would get the signal.
      terminal.send("sh -c 'echo it run''s; exec cat'\r")
      await terminal.expect('it runs\r\n')
      terminal.send('\x03')
      await terminal.expect(user.prompt)
      terminal.send('exit\r')
      await terminal.exit()
      await bastion.closed()
      expect(terminal.bytes().includes(0xf2)).toBe(false)
    })

    root('is ended from the API', async () => {
      const terminal = open(login)
      await terminal.expect(user.prompt)
      const [running] = await bastion.broker.must<{ id: string }[]>('GET', '/sessions?status=current')
      await bastion.broker.must('POST', `/sessions/${running!.id}/kill`, { reason: 'enough' })
      await terminal.expect('ended by admin: enough')
      expect(await terminal.exit()).toBe(255)
      expect(await bastion.closed()).toMatchObject({ result: 'killed' })
    })

    root('is watched, held to the rules for commands, and ended when nothing is done', async () => {
      const policy = `/connectionpolicies/${protocol}`
      await bastion.broker.must('PUT', policy, { command_rules: ['kill forbidden'] })
      const terminal = open(login)
      await terminal.expect(user.prompt)
      const [running] = await bastion.broker.must<{ id: string }[]>('GET', '/sessions?status=current')
      const watcher = await watchAsAdmin(bastion.broker, running!.id)
      await terminal.expect('admin watches this session')
      terminal.send("echo wat''ched\r")
      await until('the output', async () => (await watcher.screen()).includes('watched') || undefined)
      terminal.send('echo forbidden\r')
      expect(await terminal.exit()).toBe(255)
      await watcher.closed
      expect(await bastion.closed()).toMatchObject({ result: 'killed' })
      expect(terminal.output()).not.toContain('\r\nforbidden')

      await bastion.broker.must('PUT', policy, { idle_timeout: 2 })
      const idle = open(login)
      await idle.expect('sallyport: nothing was done for 2 seconds')
      expect(await idle.exit()).toBe(255)
      expect(await bastion.closed()).toMatchObject({ result: 'failure' })
      await bastion.broker.must('PUT', policy, { command_rules: [], idle_timeout: 0 })
    })

    root('takes no command', async () => {
      const done = await ssh(bastion.home, login, ['id'])
      expect(done.code).toBe(255)
      expect(done.stderr).toMatch(/the target speaks \w+: it shows a terminal, and takes no commands/)
      await bastion.closed()
    })

    root('has refused the password', async () => {
      const wrong = await bastion.add({
        device: `wrong-${protocol.toLowerCase()}`,
        protocol,
        port: protocol === 'TELNET' ? inetd.telnet : inetd.rlogin,
        account: user.name,
        credentials: [{ type: 'password', password: 'not this one' }],
      })
      const terminal = open(wrong)
      await terminal.expect(/refused the password of \S+: it said "/)
      expect(await terminal.exit()).toBe(255)
      const row = await bastion.closed()
      expect(row.result).toBe('failure')
      expect(row.reason).toContain('refused the password')
    })

    root('is flooded by nobody for longer than Ctrl-C takes', async () => {
      const terminal = open(login)
      await terminal.expect(user.prompt)
      terminal.send('yes flood\r')
      await terminal.expect('flood\r\nflood\r\n')
      terminal.send('\x03')
      await terminal.expect(/\^C[\s\S]*peer\$ /)
      terminal.send('exit\r')
      expect(await terminal.exit()).toBe(0)
      expect(await bastion.closed()).toMatchObject({ result: 'success' })
    })

    root('is chosen in the menu', async () => {
      const terminal = open({ ...login, user: 'ops1' })
      await terminal.expect('q to leave: ')
      terminal.send(`unix-${protocol.toLowerCase()}\r`)
      await terminal.expect('q to leave: ')
      terminal.send('1\r')
      await terminal.expect(user.prompt)
      terminal.send('stty size\r')
      await terminal.expect('\r41 133\r\n')
      terminal.send('exit\r')
      expect(await terminal.exit()).toBe(0)
    })

    root('shows a person only what is recorded, where that is asked for', async () => {
      const [{ id } = { id: '' }] = await bastion.broker.must<{ id: string }[]>(
        'GET',
        `/authorizations?q=target_group=unix-${protocol.toLowerCase()}`,
      )
      await bastion.broker.must('PUT', `/authorizations/${id}`, { recording_mode: 'strict' })
      const terminal = open(login)
      await terminal.expect(user.prompt)
      terminal.send('echo "strict $((40 + 2))"\r')
      await terminal.expect('strict 42\r\n')
      terminal.send('exit\r')
      expect(await terminal.exit()).toBe(0)
      expect(
        streamOf(await framesOf(bastion.broker, (await bastion.closed()).id), 'output').toString(),
      ).toContain('strict 42\r\n')
      await bastion.broker.must('PUT', `/authorizations/${id}`, { recording_mode: 'standard' })
    })

    root('asks a person for the password, which is in no recording', async () => {
      const personal = await bastion.add({
        device: `personal-${protocol.toLowerCase()}`,
        protocol,
        port: protocol === 'TELNET' ? inetd.telnet : inetd.rlogin,
        by: 'interactive_logins',
      })
      const [who = '', device = ''] = personal.user.split('+')
      const terminal = open({ ...personal, user: `${who}+${user.name}@${device}` })
      await terminal.expect('Password: ')
      terminal.send(`${user.password}\r`)
      await terminal.expect(user.prompt)
      terminal.send('exit\r')
      expect(await terminal.exit()).toBe(0)
      const row = await bastion.closed()
      expect(row).toMatchObject({ account: user.name, result: 'success' })
      const frames = JSON.stringify(await framesOf(bastion.broker, row.id))
      expect(terminal.output() + frames).not.toContain(user.password)
      expect(JSON.stringify(bastion.events('command'))).not.toContain(user.password)
    })
  })
})
