/** Sign-ins by a TACACS+ server, and accounting of real sessions at it, while it is away and the broker is killed too. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Broker, startBroker } from '../peers/broker.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { TacacsPeer } from '../peers/tacacs.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'

const [START, STOP] = [2, 4]

describeWithPeers('a TACACS+ server', ['sshd', 'ssh'], () => {
  let bastion: Bastion
  let again: Broker | undefined
  let peer: TacacsPeer
  const dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-data-'))

  beforeAll(async () => {
    peer = await TacacsPeer.start({
      singleConnect: true,
      users: { alice: 'Lab-Pass1', bob: 'Lab-Pass2' },
      args: { alice: ['priv-lvl=15', 'groups=netops'] },
    })
    bastion = await startBastion({ credential: 'password', broker: { dataFolder } })
  })
  afterAll(async () => {
    await again?.stop()
    await bastion.stop()
    await peer.close()
    rmSync(dataFolder, { recursive: true, force: true })
  })

  /** Returns records without those of a line that is not in them. */
  const records = (line: string) => {
    const task = peer.accounted
      .find(({ args }) => args.includes(`cmd=${line}`))
      ?.args.find((arg) => arg.startsWith('task_id='))
    return peer.accounted.filter(({ args }) => task !== undefined && args.includes(task))
  }
  const kinds = (line: string) =>
    records(line).map(
      ({ kind, args }) => `${kind}${args.some((arg) => arg.startsWith('cmd=')) ? ' cmd' : ''}`,
    )

  test('a new object gets the sessions and commands from then on', async () => {
    await bastion.broker.must('POST', '/externalauths', {
      authentication_name: 'netops',
      type: 'TACACS',
      host: '127.0.0.1',
      port: peer.port,
      shared_secret: 'lab-tackey',
      timeout: 2,
      tacacs: { single_connect: true, accounting: true, command_accounting: true },
    })
    await bastion.events('sink.begin', 2)
    const line = 'echo one'
    await ssh(bastion.home, bastion.login(), [line])
    await until('three records', () => (records(line).length >= 3 ? true : undefined))
    expect(kinds(line)).toEqual([`${START}`, `${STOP} cmd`, `${STOP}`])
    const [begun, command, ended] = records(line)
    expect(begun).toMatchObject({ user: 'ops1', source: '127.0.0.1' })
    expect(begun?.args).toEqual(
      expect.arrayContaining([
        'timezone=UTC',
        'service=connection',
        expect.stringMatching(/^start_time=\d{10}$/),
      ]),
    )
    expect(command?.args).toContain('service=shell')
    expect(ended?.args).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^elapsed_time=\d+$/),
        expect.stringMatching(/^bytes_out=[1-9]\d*$/),
        'result=success',
      ]),
    )
  })

  test('nothing is lost while the server is away and the broker is killed', async () => {
    peer.isAway = true
    peer.drop()
    const line = 'echo two'
    await ssh(bastion.home, bastion.login(), [line])
    await bastion.events('sink.down', 1)
    await bastion.closedSessions(2)
    const { ports } = bastion.broker
    await bastion.broker.kill()
    expect(kinds(line)).toEqual([])
    again = await startBroker({ dataFolder, ports })
    peer.isAway = false
    await until('three records', () => (records(line).length >= 3 ? true : undefined))
    expect(kinds(line)).toEqual([`${START}`, `${STOP} cmd`, `${STOP}`])
  })

  const login = (user: string, password: string) =>
    bastion.login({ user: `${user}+${bastion.account.name}@srv1`, password })

  test('signs persons in who are in a mapped group, and says their sessions under NAME@DOMAIN', async () => {
    await again!.must('POST', '/authdomains', {
      domain_name: 'corp',
      type: 'TACACS',
      external_auths: ['netops'],
    })
    await again!.must('POST', '/authdomains/corp/mappings', {
      user_group: 'ops1-srv1-users',
      external_group: 'netops',
    })
    const line = 'echo by tacacs'
    const run = await ssh(bastion.home, login('alice@corp', 'Lab-Pass1'), [line])
    expect([run.code, run.stdout], run.stderr).toEqual([0, 'by tacacs\n'])
    for (const [name, password] of [
      ['alice@corp', 'wrong'],
      ['bob@corp', 'Lab-Pass2'],
      ['nobody@corp', 'Lab-Pass1'],
    ] as const)
      expect((await ssh(bastion.home, login(name, password), ['true'])).code).toBe(255)
    await until('three records', () => (records(line).length >= 3 ? true : undefined))
    expect(new Set(records(line).map(({ user }) => user))).toEqual(new Set(['alice@corp']))
  })

  test('asks on after the password, and hears the answer', async () => {
    peer.options.code = '424242'
    for (const [code, result] of [
      ['424242', bastion.account.prompt],
      ['1', /denied/i],
    ] as const) {
      const terminal = sshTerminal(bastion.home, login('alice@corp', 'Lab-Pass1'), [], { typed: true })
      await terminal.expect('assword: ')
      terminal.send('Lab-Pass1\r')
      await terminal.expect('Code of your token: ')
      terminal.send(`${code}\r`)
      await terminal.expect(result)
      await terminal.close()
    }
  })

  test('an object without accounting gets nothing more, and that is an event', async () => {
    await again!.must('PUT', '/externalauths/netops', {
      tacacs: { accounting: false, command_accounting: false },
    })
    await until('the end of the receiver', () => again!.log().includes('"sink.end"') || undefined)
    await ssh(bastion.home, bastion.login(), ['echo three'])
    await until('no session that runs', async () =>
      (await again!.must<unknown[]>('GET', '/sessions?status=current')).length === 0 ? true : undefined,
    )
    expect(kinds('echo three')).toEqual([])
  })
})
