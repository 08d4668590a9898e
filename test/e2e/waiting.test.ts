/** Native clients with a terminal, and scripts, that wait in place for an approval, or type a reason. */
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { buildChannelRequest, buildData, buildGlobalRequest } from '../../proxies/ssh/codec/build.ts'
import { buildAddress, buildConnection } from '../../proxies/ssh/codec/forwarding.ts'
import { MSG, parseChannelOpenConfirmation } from '../../proxies/ssh/codec/messages.ts'
import { channelOpen, sessionOpen, signInRaw } from '../attacks/raw.ts'
import { writeHomeFile } from '../peers/home.ts'
import { rsync, scp, sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { freePort, run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { plink, plinkTerminal } from '../peers/putty.ts'
import type { Terminal } from '../peers/terminal.ts'
import { APPROVAL, type Approvers, addApprovers } from './approvers.ts'
import type { Bastion } from './bastion.ts'
import {
  RLOGIN_CLIENTS,
  startTerminalPeople,
  TELNET_CLIENTS,
  type TerminalPeople,
} from './terminal-clients.ts'

const PEERS = [
  'sshd',
  'ssh',
  'sftp',
  'scp',
  'rsync',
  'plink',
  'python3',
  'inetutils-telnet',
  'rsh-redone-rlogin',
] as const
const RIGHTS = ['SSH_SHELL', 'SSH_REMOTE_COMMAND', 'SSH_SCP_UP', 'SFTP_SESSION', 'SSH_DIRECT_TCPIP']
const ASKED = 'has to agree'
const NOTHING = Buffer.alloc(0)

describeWithPeers('a client that needs an approval', PEERS, () => {
  let people: TerminalPeople
  let bastion: Bastion
  let approvers: Approvers
  const terminals: Terminal[] = []

  beforeAll(async () => {
    people = await startTerminalPeople({ subprotocols: RIGHTS })
    bastion = people.bastion
    const { must } = bastion.broker
    approvers = await addApprovers(bastion.broker)
    const [authorization] = await must<{ id: string }[]>('GET', '/authorizations')
    await must('PUT', `/authorizations/${authorization!.id}`, APPROVAL)
    // The same target as another service, for which a reason is mandatory too.
    await must('POST', '/devices/srv1/services', {
      service_name: 'why',
      protocol: 'SSH',
      port: bastion.sshd.port,
    })
    await must('POST', '/targetgroups', {
      group_name: 'why',
      session: { accounts: [`${bastion.account.name}@local:srv1:why`] },
    })
    await must('POST', '/authorizations', {
      user_group: 'ops1-srv1-users',
      target_group: 'why',
      authorize_sessions: true,
      subprotocols: RIGHTS,
      ...APPROVAL,
      has_comment: true,
      mandatory_comment: true,
      has_ticket: true,
    })
  })
  afterAll(() => bastion.stop())
  afterEach(async () => {
    for (const terminal of terminals.splice(0)) await terminal.close()
    await people.closeTerminals()
  })

  const login = () => bastion.login({ user: `ops1+${bastion.account.name}@srv1+ssh` })
  const asked = () => bastion.login({ user: `ops1+${bastion.account.name}@srv1+why` })
  const keep = <T extends Terminal>(terminal: T): T => {
    terminals.push(terminal)
    return terminal
  }
  const accept = async (comment = '') => {
    const { id } = await approvers.next()
    await approvers.answer(id, 'accept', comment)
    return id
  }
  const fingerprint = async () => {
    const key = join(bastion.broker.dataFolder, 'ssh', 'ssh_host_ed25519_key.pub')
    return (await run('ssh-keygen', ['-l', '-f', key])).stdout.split(' ')[1] ?? ''
  }

  test('ssh waits in its terminal, and the session is there at once', async () => {
    const terminal = keep(sshTerminal(bastion.home, login()))
    expect(await terminal.expect('Ctrl-C withdraws')).toMatch(/waits for an approval/)
    terminal.send(`touch ${bastion.account.home}/typed-early\r`)
    const { id } = await approvers.next()
    await approvers.answer(id, 'accept', 'go ahead')
    const shown = await terminal.expect(bastion.account.prompt)
    expect(shown).toContain('go ahead')
    terminal.send('stty size; echo T=$TERM; ls typed-early; exit 3\r')
    expect(await terminal.expect(/T=xterm\S+/)).toContain('24 80')
    expect(await terminal.exit()).toBe(3)
    expect(existsSync(join(bastion.account.home, 'typed-early'))).toBe(false)
    const row = (await bastion.closedSessions(1)).at(-1)
    expect(row).toMatchObject({ approval: id, recording: { state: 'sealed' } })
  })

  test('a rejection is read with its words, and Ctrl-C withdraws the request', async () => {
    const rejected = keep(sshTerminal(bastion.home, login()))
    await rejected.expect(ASKED)
    await approvers.answer((await approvers.next()).id, 'reject', 'not today')
    await rejected.expect('not today')
    expect(await rejected.exit()).toBe(255)
    const menu = keep(sshTerminal(bastion.home, bastion.login({ user: 'ops1' })))
    await menu.expect('q to leave: ')
    menu.send('srv1:ssh\r')
    await menu.expect('q to leave: ')
    menu.send('1\r')
    await menu.expect(ASKED)
    const { id } = await approvers.next()
    menu.send('\x03')
    expect(await menu.expect('q to leave: ')).toContain('was withdrawn')
    await approvers.reaches(id, 'cancelled')
    menu.send('1\r')
    await menu.expect(ASKED)
    const again = await approvers.next()
    // A client that is gone waits no longer.
    await menu.close()
    await approvers.reaches(again.id, 'cancelled')
  })

  test('a command, sftp and scp wait, and are whole afterwards', async () => {
    const sent = randomBytes(300_000)
    const local = join(bastion.home.folder, 'sent.bin')
    writeFileSync(local, sent)
    const remote = (name: string) => join(bastion.account.home, name)
    const done = Promise.all([
      ssh(bastion.home, login(), [`cat > ${remote('by-cat')} && echo done`], {
        input: sent.toString('base64'),
      }),
      ssh(bastion.home, login(), ['true'], { flags: ['-n'] }),
      sftp(bastion.home, login(), [`put ${local} ${remote('by-sftp')}`]),
      scp(bastion.home, login(), local, { remote: remote('by-scp') }, ['-O']),
      scp(bastion.home, login(), local, { remote: remote('by-scp2') }),
      rsync(bastion.home, login(), local, { remote: remote('by-rsync') }),
    ])
    for (let n = 0; n < 6; n++) await accept()
    const results = await done
    for (const { code, stderr } of results) {
      expect(stderr).toContain(ASKED)
      expect(code).toBe(0)
    }
    expect(results[0].stdout).toBe('done\n')
    expect(readFileSync(remote('by-cat'), 'latin1')).toBe(sent.toString('base64'))
    for (const name of ['by-sftp', 'by-scp', 'by-scp2', 'by-rsync'])
      expect(readFileSync(remote(name)).equals(sent), name).toBe(true)
    const refused = ssh(bastion.home, login(), ['id'])
    await approvers.answer((await approvers.next()).id, 'reject', 'no commands')
    expect(await refused).toMatchObject({
      code: 255,
      stdout: '',
      stderr: expect.stringContaining('no commands'),
    })
  })

  test('plink waits, with a terminal and without', async () => {
    const at = { ...login(), hostFingerprint: await fingerprint() }
    const terminal = keep(await plinkTerminal(bastion.home, at))
    await terminal.expect(ASKED)
    await accept()
    await terminal.expect(bastion.account.prompt)
    terminal.send('exit\r')
    expect(await terminal.exit()).toBe(0)
    const command = plink(bastion.home, at, 'id -un')
    await accept()
    expect(await command).toMatchObject({ code: 0, stdout: `${bastion.account.name}\n` })
  })

  test('a reason that is mandatory is typed at the sign-in, whatever the client does then', async () => {
    const terminal = keep(
      sshTerminal(bastion.home, { ...asked(), options: ['LogLevel=INFO'] }, [], { typed: true }),
    )
    await terminal.expect('assword: ')
    terminal.send(`${bastion.password}\r`)
    expect(await terminal.expect('Comment: ')).toContain('asks for a comment and a ticket')
    terminal.send('\r')
    await terminal.expect('Ticket (optional): ')
    terminal.send('#1\r')
    expect(await terminal.expect('Comment: ')).toContain('a comment is needed')
    terminal.send('disk full\r')
    await terminal.expect('Ticket (optional): ')
    terminal.send('#4711\r')
    await terminal.expect(ASKED)
    const request = await approvers.next()
    expect(request).toMatchObject({ comment: 'disk full', ticket: '#4711' })
    await approvers.answer(request.id, 'reject')
    expect(await terminal.exit()).toBe(255)
    // By a key, and without a terminal at all: the program for passwords answers.
    const { env } = bastion.home
    const askpass = writeHomeFile(
      bastion.home,
      'reasons',
      '#!/bin/sh\ncase "$1" in *Comment*) echo why ;; *) echo ;; esac\n',
    )
    chmodSync(askpass, 0o700)
    const home = {
      ...bastion.home,
      env: () => ({ ...env(''), SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: 'force' }),
    }
    const { password: _password, ...keyed } = asked()
    const options = ['PreferredAuthentications=publickey,keyboard-interactive']
    const command = ssh(home, { ...keyed, identity: bastion.key.path, options }, ['id', '-un'])
    const { id, comment } = await approvers.next()
    expect(comment).toBe('why')
    await approvers.answer(id, 'accept')
    expect(await command).toMatchObject({ code: 0, stdout: `${bastion.account.name}\n` })
  })

  test('a client that cannot be asked reads how to ask beforehand', async () => {
    const { password: _password, ...keyed } = asked()
    const batch = { ...keyed, identity: bastion.key.path, options: ['BatchMode=yes', 'LogLevel=INFO'] }
    const done = await ssh(bastion.home, batch, ['id'])
    expect(done).toMatchObject({ code: 255, stdout: '' })
    expect(done.stderr).toMatch(/sallyport approvals request \S+:srv1:why --comment COMMENT/)
  })

  test('telnet types its reason and waits in the terminal', async () => {
    const telnet = people.start(TELNET_CLIENTS[0]!, asked().user)
    await telnet.expect('Password: ')
    telnet.send(`${bastion.password}\r`)
    await telnet.expect('Comment: ')
    telnet.send('\r')
    await telnet.expect('may not be empty')
    telnet.send('the disk is full\r')
    await telnet.expect('Ticket (optional): ')
    telnet.send('\r')
    await telnet.expect('For how long')
    telnet.send('30m\r')
    await telnet.expect(ASKED)
    const { id, comment } = await approvers.next()
    expect(comment).toBe('the disk is full')
    await approvers.answer(id, 'accept')
    await telnet.expect(bastion.account.prompt)
    telnet.send('exit\r')
    await telnet.exit()
  })

  test('rlogin types its reason, waits, and withdraws by Ctrl-C', async () => {
    for (const isAccepted of [true, false]) {
      const rlogin = people.start(RLOGIN_CLIENTS[0]!, asked().user)
      await rlogin.expect('Password: ')
      rlogin.send(`${bastion.password}\r`)
      await rlogin.expect('Comment: ')
      rlogin.send('the disk is full\r')
      await rlogin.expect('Ticket (optional): ')
      rlogin.send('CHG-9\r')
      await rlogin.expect('For how long')
      rlogin.send('30m\r')
      await rlogin.expect(ASKED)
      const { id, comment, ticket } = await approvers.next()
      expect([comment, ticket]).toEqual(['the disk is full', 'CHG-9'])
      if (isAccepted) {
        await approvers.answer(id, 'accept')
        await rlogin.expect(bastion.account.prompt)
        rlogin.send('exit\r')
      } else {
        rlogin.send('\x03')
        await approvers.reaches(id, 'cancelled')
      }
      await rlogin.exit()
    }
  })

  test('nothing passes while it waits (attack case 16)', async () => {
    const client = await signInRaw({
      port: bastion.broker.ports.ssh,
      user: login().user,
      password: bastion.password,
    })
    const to = { host: '127.0.0.1', port: await freePort() }
    const forward = buildConnection({ to, from: { host: '127.0.0.1', port: 1 } })
    client.send(sessionOpen(1))
    const { sender: id } = parseChannelOpenConfirmation(await client.next(MSG.channelOpenConfirmation))
    const { id: approval } = await approvers.next()
    const opens = async () => (await bastion.events('session.open')).length
    const before = await opens()
    client.send(
      buildChannelRequest(
        id,
        'x11-req',
        true,
        Buffer.from('\0\0\0\0\x12MIT-MAGIC-COOKIE-1\0\0\0\x02ab\0\0\0\0', 'latin1'),
      ),
      buildChannelRequest(id, 'auth-agent-req@openssh.com', true, NOTHING),
      buildChannelRequest(id, 'env', false, Buffer.from('\0\0\0\x04LANG\0\0\0\x01C', 'latin1')),
      channelOpen('direct-tcpip', 2, 100_000, forward),
      buildGlobalRequest({
        name: 'tcpip-forward',
        wantReply: true,
        data: buildAddress({ host: '', port: 0 }),
      }),
      sessionOpen(3),
      channelOpen('tun@openssh.com', 4),
      buildGlobalRequest({ name: 'hostkeys-prove-01@example.com', wantReply: false, data: NOTHING }),
      buildChannelRequest(id, 'exec', true, Buffer.from('\0\0\0\x02id', 'latin1')),
    )
    await client.next(MSG.channelOpenFailure)
    await client.next(MSG.channelExtendedData)
    const answered = client.received.filter(([type]) =>
      [MSG.channelOpenConfirmation, MSG.requestSuccess, MSG.requestFailure].some((one) => one === type),
    )
    expect(answered).toEqual([])
    expect(await opens()).toBe(before)
    await approvers.answer(approval, 'reject')
    await client.next(MSG.channelClose)
    // Waiting channels were refused, and the sign-in has opened nothing.
    expect(await opens()).toBe(before)
    const denied = (await bastion.events('channel.denied')).filter((event) => client.isOf(event))
    expect(denied.map((event) => event['subprotocol'])).toContain('channel tun@openssh.com')
    client.destroy()
    // Input without a window is a breach, and ends it unread.
    const pushy = await signInRaw({
      port: bastion.broker.ports.ssh,
      user: login().user,
      password: bastion.password,
    })
    pushy.send(sessionOpen(1))
    const open = parseChannelOpenConfirmation(await pushy.next(MSG.channelOpenConfirmation))
    const { id: next } = await approvers.next()
    pushy.send(buildChannelRequest(open.sender, 'exec', true, Buffer.from('\0\0\0\x03cat', 'latin1')))
    pushy.send(buildData(open.sender, 'for the target'))
    await pushy.untilClosed()
    await approvers.reaches(next, 'cancelled')
  })
})
