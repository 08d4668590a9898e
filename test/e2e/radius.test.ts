/** Accounting of real sessions at FreeRADIUS, while it is away and the broker is killed too. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Broker, startBroker } from '../peers/broker.ts'
import { type FreeRadius, RADIUS_SECRET, startFreeRadius } from '../peers/freeradius.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'

describeWithPeers('a RADIUS server', ['sshd', 'ssh', 'freeradius'], () => {
  let bastion: Bastion
  let again: Broker | undefined
  let server: FreeRadius
  const dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-data-'))

  beforeAll(async () => {
    server = await startFreeRadius({ host: '127.0.0.1', signsReplies: true })
    bastion = await startBastion({ credential: 'password', broker: { dataFolder } })
  })
  afterAll(async () => {
    await again?.stop()
    await bastion.stop()
    await server.stop()
    rmSync(dataFolder, { recursive: true, force: true })
  })

  const kinds = () => server.accounted().map((record) => record['Acct-Status-Type'])

  test('a new object gets the sessions from then on', async () => {
    await bastion.broker.must('POST', '/externalauths', {
      authentication_name: 'codes',
      type: 'RADIUS',
      host: '127.0.0.1',
      port: server.port,
      shared_secret: RADIUS_SECRET,
      timeout: 2,
      radius: { accounting_port: server.accountingPort },
    })
    await bastion.events('sink.begin', 2)
    await ssh(bastion.home, bastion.login(), ['echo one'])
    await until('two records', () => (kinds().length >= 2 ? true : undefined))
    const [begun, ended] = server.accounted()
    expect(begun).toMatchObject({
      'Acct-Status-Type': 'Start',
      'User-Name': 'ops1',
      'Calling-Station-Id': '127.0.0.1',
      'NAS-Identifier': 'sallyport',
    })
    expect(ended).toMatchObject({
      'Acct-Status-Type': 'Stop',
      'Acct-Session-Id': begun?.['Acct-Session-Id'],
      'Acct-Output-Octets': expect.stringMatching(/^[1-9]\d*$/),
      'Acct-Terminate-Cause': 'User-Request',
    })
  })

  test('nothing is lost while the server is away and the broker is killed', async () => {
    const { accountingPort } = server
    await server.stop()
    await ssh(bastion.home, bastion.login(), ['echo two'])
    await bastion.events('sink.down', 1)
    await bastion.closedSessions(2)
    const { ports } = bastion.broker
    await bastion.broker.kill()
    again = await startBroker({ dataFolder, ports })
    server = await startFreeRadius({ host: '127.0.0.1', signsReplies: true, accountingPort })
    await until('three records', () => (kinds().length >= 3 ? true : undefined))
    expect(kinds()).toEqual(['Start', 'Stop', 'Accounting-On'])
    const [begun] = server.accounted()
    expect(Number(begun?.['Acct-Delay-Time'])).toBeGreaterThan(0)
  })
})
