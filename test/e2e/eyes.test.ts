/** Suspended input, sessions that have to be watched, and commands that approvers are asked about. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ADMIN_PASSWORD, callApi, sallyportCommand } from '../peers/broker.ts'
import { type LiveWatcher, watchLive } from '../peers/live.ts'
import { sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import type { Terminal } from '../peers/terminal.ts'
import { until } from '../until.ts'
import { type Approvers, addApprovers } from './approvers.ts'
import type { Bastion, SessionRow } from './bastion.ts'
import { startTerminalPeople, TELNET_CLIENTS, type TerminalPeople } from './terminal-clients.ts'

const RIGHTS = ['SSH_SHELL', 'SSH_REMOTE_COMMAND', 'SFTP_SESSION', 'SSH_SCP_UP']
const WHY = 'the change is being checked'

describeWithPeers('another pair of eyes', ['sshd', 'ssh', 'sftp', 'python3', 'inetutils-telnet'], () => {
  let people: TerminalPeople
  let bastion: Bastion
  let approvers: Approvers
  let cookie: string
  let authorization: string
  const terminals: Terminal[] = []
  const watchers: LiveWatcher[] = []

  beforeAll(async () => {
    people = await startTerminalPeople({ subprotocols: RIGHTS })
    bastion = people.bastion
    const { must, dataFolder, ports } = bastion.broker
    approvers = await addApprovers(bastion.broker)
    const [row] = await must<{ id: string }[]>('GET', '/authorizations')
    authorization = `/authorizations/${row!.id}`
    const ca = readFileSync(join(dataFolder, 'tls', 'cert.pem'))
    const signedIn = await callApi(ports.https, ca, 'POST', '/session', {
      user: 'admin',
      password: ADMIN_PASSWORD,
    })
    cookie = [signedIn.headers['set-cookie'] ?? ''].flat()[0]!.split(';')[0]!
  })
  afterAll(() => bastion.stop())
  afterEach(async () => {
    for (const { socket } of watchers.splice(0)) socket.terminate()
    for (const terminal of terminals.splice(0)) await terminal.close()
    await people.closeTerminals()
    await until('the end of all sessions', async () => (await current()).length === 0 || undefined)
  })

  const login = () => bastion.login({ user: `ops1+${bastion.account.name}@srv1+ssh` })
  const current = () => bastion.broker.must<SessionRow[]>('GET', '/sessions?status=current')
  const running = () => until('a session', async () => (await current())[0])
  const order = (id: string, what: string, body?: object) =>
    bastion.broker.must('POST', `/sessions/${id}/${what}`, body)
  const remote = (name: string) => join(bastion.account.home, name)
  const opened = () => {
    const terminal = sshTerminal(bastion.home, login())
    terminals.push(terminal)
    return terminal
  }
  const watch = async (id: string) => {
    const watcher = await watchLive(bastion.broker, id, { headers: { cookie } })
    watchers.push(watcher)
    return watcher
  }

  test('ssh and telnet: keys of a suspended user are discarded, output goes on', async () => {
    for (const kind of ['ssh', 'telnet']) {
      const terminal = kind === 'ssh' ? opened() : people.start(TELNET_CLIENTS[0]!, login().user)
      if (kind === 'telnet') {
        await terminal.expect('Password: ')
        terminal.send(`${bastion.password}\r`)
      }
      await terminal.expect(bastion.account.prompt)
      terminal.send('(while ! test -e stop; do sleep 0.1; done; echo still-shown) & \r')
      const { id } = await running()
      await order(id, 'suspend', { reason: WHY })
      await terminal.expect(WHY)
      terminal.send('touch typed-while-suspended\r')
      expect(await bastion.broker.must('GET', `/sessions/${id}`)).toMatchObject({
        suspended: { reason: `${WHY} (admin)`, by: 'admin' },
      })
      writeFileSync(remote('stop'), '')
      await terminal.expect('still-shown')
      await order(id, 'resume')
      await terminal.expect('accepted again')
      terminal.send('rm -f stop; ls typed-while-suspended; exit\r')
      expect(await terminal.expect(/No such file|cannot access/)).not.toContain('typed-while-suspended\r\n/')
      await terminal.exit()
      const events = await bastion.broker.must<{ event: string; user?: string }[]>(
        'GET',
        `/sessions/${id}/events`,
      )
      const orders = events.filter(({ event }) => /suspend|resume/.test(event))
      expect(orders).toMatchObject([
        { event: 'session.suspend', user: 'admin', reason: WHY },
        { event: 'session.resume', user: 'admin' },
      ])
    }
    expect(existsSync(remote('typed-while-suspended'))).toBe(false)
  })

  test('sallyport sessions lists, suspends, resumes and ends a running one', async () => {
    const { must, ports, dataFolder } = bastion.broker
    const { api_key } = await must<{ api_key: string }>('POST', '/apikeys', {
      key_name: 'orders',
      profile: 'product_administrator',
    })
    const keyFile = join(bastion.home.folder, 'key')
    writeFileSync(keyFile, `${api_key}\n`, { mode: 0o600 })
    const env = {
      ...process.env,
      SALLYPORT_URL: `https://127.0.0.1:${ports.https}`,
      SALLYPORT_CA: join(dataFolder, 'tls', 'cert.pem'),
      SALLYPORT_API_KEY_FILE: keyFile,
    }
    const sessions = async (...words: string[]) => {
      const who = words[0] === 'list' ? '--as' : '--user'
      const done = await run(...sallyportCommand(['sessions', ...words, who, 'admin']), { env })
      expect(done.code, done.stderr).toBe(0)
      return done.stdout
    }
    const terminal = opened()
    await terminal.expect(bastion.account.prompt)
    const { id } = await running()
    expect(await sessions('list')).toMatch(new RegExp(`^${id} running \\S+ ops1 \\S+@srv1:ssh SSH\n$`))
    await sessions('suspend', id, '--reason', WHY)
    await terminal.expect(WHY)
    expect(await sessions('list')).toContain(`${id} suspended (${WHY} (admin)) `)
    await sessions('resume', id)
    await terminal.expect('accepted again')
    const again = await run(...sallyportCommand(['sessions', 'resume', id, '--user', 'admin']), { env })
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('not suspended')])
    await sessions('kill', id, '--reason', 'enough')
    await terminal.expect('ended by admin: enough')
    expect(await terminal.exit()).not.toBe(0)
    await until('the end', async () => ((await current()).length === 0 ? true : undefined))
    expect(await sessions('list')).toBe('')
    expect(await sessions('list', '--status', 'closed')).toContain(`${id} killed `)
  })

  test('sftp: an upload waits and is whole afterwards', async () => {
    const sent = Buffer.alloc(8_000_000, 'upload')
    const local = join(bastion.home.folder, 'large.bin')
    writeFileSync(local, sent)
    const wait = `!touch ${local}.begun; while ! test -e ${local}.go; do sleep 0.05; done`
    const done = sftp(bastion.home, login(), ['-ls', wait, `put ${local} ${remote('large.bin')}`])
    const { id } = await running()
    await until('the program', async () => existsSync(`${local}.begun`) || undefined)
    await order(id, 'suspend', { reason: WHY })
    writeFileSync(`${local}.go`, '')
    expect(existsSync(remote('large.bin'))).toBe(false)
    await order(id, 'resume')
    expect((await done).code).toBe(0)
    expect(readFileSync(remote('large.bin')).equals(sent)).toBe(true)
  })

  test('a session that has to be watched begins with its watcher, and is held when nobody watches', async () => {
    await bastion.broker.must('PUT', authorization, { four_eyes: true })
    try {
      const terminal = opened()
      await terminal.expect('begins when somebody watches it')
      const { id } = await running()
      expect(bastion.sshd.log()).not.toContain(id)
      const first = await watch(id)
      await terminal.expect(bastion.account.prompt)
      terminal.send('echo one-$((1+1))\r')
      await terminal.expect('one-2')
      first.socket.terminate()
      await terminal.expect('nobody watches this session any more')
      terminal.send('touch unwatched\r')
      await watch(id)
      await terminal.expect('accepted again')
      terminal.send('ls unwatched; exit\r')
      await terminal.expect(/No such file|cannot access/)
      await terminal.exit()
      const command = ssh(bastion.home, login(), ['echo ran'])
      const next = await until('its session', async () => (await current()).find((one) => one.id !== id))
      await watch(next.id)
      expect(await command).toMatchObject({ code: 0, stdout: 'ran\n' })
    } finally {
      await bastion.broker.must('PUT', authorization, { four_eyes: false })
    }
  })

  test('approvers are asked about a command, at a prompt and as an exec', async () => {
    const { must } = bastion.broker
    const policy = { command_rules: ['ask ^touch '], ask_timeout: 30 }
    await must('PUT', '/connectionpolicies/SSH', policy)
    await must('PUT', authorization, { approvers: ['bosses'] })
    try {
      const terminal = opened()
      await terminal.expect(bastion.account.prompt)
      terminal.send('touch asked-one\r')
      await terminal.expect('waits for an approval by')
      terminal.send('echo typed-behind\r')
      const first = await approvers.next()
      expect(first).toMatchObject({ kind: 'command' })
      expect(existsSync(remote('asked-one'))).toBe(false)
      await approvers.answer(first.id, 'accept', 'fine')
      await terminal.expect('accepted by')
      await terminal.expect(bastion.account.prompt)
      expect(existsSync(remote('asked-one'))).toBe(true)
      terminal.send('touch asked-two\r')
      await terminal.expect('waits for an approval by')
      await approvers.answer((await approvers.next()).id, 'reject', 'not today')
      await terminal.expect('did not run: rejected by')
      terminal.send('\x03')
      await terminal.expect(bastion.account.prompt)
      terminal.send('touch asked-three\r')
      await terminal.expect('waits for an approval by')
      const third = await approvers.next()
      terminal.send('\x03')
      await approvers.reaches(third.id, 'cancelled')
      await terminal.expect(bastion.account.prompt)
      terminal.send('exit\r')
      await terminal.exit()
      expect(['asked-two', 'asked-three'].map((name) => existsSync(remote(name)))).toEqual([false, false])
      const refused = ssh(bastion.home, login(), ['touch by-exec'])
      await approvers.answer((await approvers.next()).id, 'reject', 'no')
      expect(await refused).toMatchObject({ code: 255, stderr: expect.stringContaining('rejected by') })
      const accepted = ssh(bastion.home, login(), ['touch by-exec'])
      await approvers.answer((await approvers.next()).id, 'accept', '')
      expect(await accepted).toMatchObject({ code: 0 })
      expect(existsSync(remote('by-exec'))).toBe(true)
    } finally {
      await must('PUT', '/connectionpolicies/SSH', { command_rules: [] })
    }
  })
})
