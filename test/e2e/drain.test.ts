/** `sallyport drain`, and what users read when the bastion stops. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { probe } from '../peers/broker.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import type { Terminal } from '../peers/terminal.ts'
import { until } from '../until.ts'
import { type Bastion, type SessionRow, startBastion } from './bastion.ts'
import { sallyport } from './recorded.ts'
import { RLOGIN_CLIENTS, startClient, TELNET_CLIENTS } from './terminal-clients.ts'

const SLOW = { timeout: 300_000 }
const LOOP = 'while read -r a; do echo "<$a>"; done'

const PEERS = ['sshd', 'ssh', 'curl', 'inetutils-telnet', 'rsh-redone-rlogin', 'python3'] as const

describeWithPeers('a broker that is drained', PEERS, () => {
  let bastion: Bastion
  beforeEach(async () => {
    bastion = await startBastion({ credential: 'password' })
  })
  afterEach(() => bastion.stop())

  test('tells its users, refuses new ones, counts down, and ends when told to hurry', SLOW, async () => {
    const { broker, home } = bastion
    const terminal = sshTerminal(home, bastion.login(), [LOOP])
    terminal.send('a\r')
    await terminal.expect('<a>')
    const { promise: begun, resolve: onOutput } = Promise.withResolvers<Buffer>()
    const command = ssh(home, bastion.login(), ['echo begun; sleep 1000'], { onOutput, timeout: 80_000 })
    expect(String(await begun)).toBe('begun\n')
    expect(await probe(broker, '/readyz')).toBe('{"status":"ready"}200')
    const draining = sallyport(broker, ['drain', '--grace', '1h'])
    await terminal.expect(
      'the bastion is stopping (drain): this session ends in 60 min at the latest',
      30_000,
    )
    // It goes on meanwhile.
    terminal.send('b\r')
    await terminal.expect('<b>')
    const late = await ssh(home, bastion.login(), ['echo late'])
    expect({ code: late.code, stdout: late.stdout }).toEqual({ code: 255, stdout: '' })
    expect(await broker.must<SessionRow[]>('GET', '/sessions?status=current')).toHaveLength(2)

    expect(await probe(broker, '/readyz')).toBe('{"status":"not_ready","obstacles":["stopping"]}503')
    const hurried = await sallyport(broker, ['drain', '--grace', '0', '--no-wait'])
    expect(hurried).toMatchObject({ code: 0, stdout: 'no new sessions from now on\n', stderr: '' })
    const drained = await draining
    expect(drained).toMatchObject({ code: 0, stderr: '' })
    expect(drained.stdout).toMatch(/^2 sessions left\n(.*left\n)*the broker has ended\n$/)
    expect(await broker.ended).toBe(0)
    expect(await terminal.exit()).toBe(255)
    const ended = await command
    // The line for terminals is no part of a program's output.
    expect(ended).toMatchObject({ code: 255, stdout: 'begun\n' })
    expect(ended.stderr).toContain('sallyport: the bastion is stopping (drain)')
    expect(ended.stderr).not.toContain('at the latest')
    expect(existsSync(join(broker.dataFolder, 'control.sock'))).toBe(false)
    const verified = await sallyport(broker, ['recordings', 'verify'])
    expect(verified.stdout).toMatch(/^(\S+ {2}ok, sealed.*\n){2}$/)
  })

  test('lets a session through whose target is only being signed in to', SLOW, async () => {
    const { broker, home, sshd } = bastion
    process.kill(sshd.pid, 'SIGSTOP')
    const command = ssh(home, bastion.login(), ['echo through'], { timeout: 300_000 })
    await until('the session', async () => {
      const rows = await broker.must<SessionRow[]>('GET', '/sessions?status=current')
      return rows.length === 1 ? rows : undefined
    })
    const draining = await sallyport(broker, ['drain', '--grace', '1m', '--no-wait'])
    expect(draining).toMatchObject({ code: 0, stderr: '' })
    process.kill(sshd.pid, 'SIGCONT')
    expect(await command).toMatchObject({ code: 0, stdout: 'through\n' })
    expect(await broker.ended).toBe(0)
  })

  test(
    'users read of the first SIGTERM over SSH, Telnet and rlogin; a second one ends in order',
    SLOW,
    async () => {
      const other = await startBastion({
        credential: 'password',
        broker: { terminals: {}, config: { shutdown_grace: '1h' } },
      })
      const others: Terminal[] = []
      try {
        const { broker } = other
        const terminal = sshTerminal(other.home, other.login(), [LOOP])
        terminal.send('a\r')
        await terminal.expect('<a>')
        for (const kind of [TELNET_CLIENTS[0]!, RLOGIN_CLIENTS[0]!]) {
          const client = startClient(kind, broker.ports, other.login().user)
          others.push(client)
          await client.expect('Password: ')
          client.send(`${other.password}\r`)
          await client.expect(other.account.prompt)
        }
        process.kill(broker.pid, 'SIGTERM')
        for (const one of [terminal, ...others])
          await one.expect('the bastion is stopping (SIGTERM): this session ends in 60 min at the latest')
        process.kill(broker.pid, 'SIGTERM')
        expect(await terminal.exit()).toBe(255)
        expect(await broker.ended).toBe(0)
        const verified = await sallyport(broker, ['recordings', 'verify'])
        expect(verified.stdout).toMatch(/^(\S+ {2}ok, sealed.*\n){3}$/)
      } finally {
        for (const one of others) await one.close()
        await other.stop()
      }
    },
  )

  test('no broker there to drain is an error', async () => {
    process.kill(bastion.broker.pid, 'SIGTERM')
    await bastion.broker.ended
    const done = await sallyport(bastion.broker, ['drain'])
    expect(done).toMatchObject({ code: 1, stdout: '' })
    expect(done.stderr).toBe(`sallyport: no broker runs on the data folder ${bastion.broker.dataFolder}\n`)
  })

  test('a grace that is none is wrong usage', async () => {
    for (const grace of ['25h', '1', 'soon']) {
      const done = await sallyport(bastion.broker, ['drain', '--grace', grace])
      expect(done.code, grace).toBe(2)
      expect(done.stderr, grace).toMatch(/--grace/)
    }
  })
})
