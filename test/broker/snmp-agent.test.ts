import { createSocket } from 'node:dgram'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MetricsSink } from '../../src/audit/sinks/metrics.ts'
import type { Metrics } from '../../src/broker/metrics.ts'
import { SnmpAgent } from '../../src/broker/snmp-agent.ts'
import type { SnmpAgentConfig } from '../../src/config/config.ts'
import { Secret } from '../../src/model/secret.ts'
import { type Managers, startManagers } from '../peers/net-snmp.ts'
import { describeWithPeers } from '../peers/program.ts'
import { GET, pduOf, securedRequest } from '../snmp/manager.ts'
import { until } from '../until.ts'
import { feedOf, metricsOf } from './parts-of-metrics.ts'

const NOW = Date.parse('2031-05-30T12:00:00Z')
const USER = ['-u', 'noc', '-l', 'authPriv', '-a', 'SHA-256', '-A', 'auth-password-1']
const V3 = ['-v3', ...USER, '-x', 'AES', '-X', 'priv-password-1']
const V2C = ['-v2c', '-c', 'figures-please']
const config: SnmpAgentConfig = {
  host: '127.0.0.1',
  port: 0,
  allow: ['127.0.0.0/8'],
  community: Secret.of('figures-please'),
  v3: {
    user: 'noc',
    auth: 'sha256',
    authPassword: Secret.of('auth-password-1'),
    priv: 'aes',
    privPassword: Secret.of('priv-password-1'),
  },
}

describeWithPeers('the SNMP agent', ['snmpbulkget', 'snmpget', 'snmpset', 'snmptable', 'snmpwalk'], () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sallyport-snmp-'))
  const clock = { ahead: 0 }
  const errors: Error[] = []
  let reads = 0
  let hanging: PromiseWithResolvers<void> | undefined
  let metrics: Metrics
  let agent: SnmpAgent
  let managers: Managers
  const open = () =>
    SnmpAgent.open({
      config,
      ...{ dataDir, metrics, enterprise: 32473, version: '0.1.0', hostname: 'b1.example.com' },
      now: () => NOW,
      monotonic: () => performance.now() + clock.ahead,
      onError: (error) => void errors.push(error),
    })
  beforeAll(async () => {
    managers = startManagers()
    metrics = metricsOf({
      feeds: () => [feedOf('log', 0, 0), feedOf('syslog', 7, 3)],
      brokers: () => [
        { place: 1, state: 'serving', sessions: 7 },
        { place: 3, state: 'replaced', sessions: 4 },
      ],
      workers: () => [
        { isUp: true, sessions: 5, connections: 9, residentBytes: 150 * 2 ** 20, losses: 0 },
        { isUp: false, sessions: 0, connections: 0, residentBytes: Number.NaN, losses: 2 },
      ],
      certificateEnds: () => new Map([['https', NOW / 1000 + 20.5 * 86_400]]),
      pendingApprovals: async () => {
        reads += 1
        await hanging?.promise
        return 3
      },
    })
    const sink = new MetricsSink(metrics)
    const tell = (code: Parameters<MetricsSink['count']>[0]['code'], fields: object) =>
      sink.count({ sequence: 1, time: 0, code, fields })
    tell('auth.failure', { method: 'password', count: 41 })
    tell('auth.success', { method: 'publickey' })
    tell('auth.locked', { user: 'ops1' })
    tell('session.open', { session: 'a', protocol: 'SSH' })
    tell('session.open', { session: 'b', protocol: 'RDP' })
    tell('session.close', { session: 'c', protocol: 'SSH', result: 'killed' })
    tell('session.denied', { protocol: 'VNC' })
    tell('recording.sealed', { size: 6_000_000_000 })
    tell('checkout.out', {})
    tell('approval.request', {})
    tell('approval.answer', { result: 'rejected' })
    tell('approval.answer', { result: 'failure' })
    agent = await open()
  })
  afterAll(async () => {
    await agent.close()
    managers.remove()
    rmSync(dataDir, { recursive: true })
    expect(errors).toEqual([])
  })
  const reload = (changed: SnmpAgentConfig) =>
    agent.prepareReload({ config: changed, enterprise: 32473, hostname: 'b1.example.com' })()
  const place = () => `127.0.0.1:${agent.address.port}`
  const own = (...names: string[]) => names.map((name) => `SALLYPORT-MIB::sallyport${name}`)
  const messages = async (result: string) =>
    (await metrics.snmpMessages.get()).values.find(({ labels }) => labels.result === result)?.value ?? 0

  test.each([
    ['2c', V2C],
    ['3', V3],
  ])('answers a walk of version %s with every figure', async (_, who) => {
    const { stdout, code } = await managers.ask('snmpwalk', ...who, '-OQ', place(), ...own(''))
    expect(code).toBe(0)
    const found = new Map(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(' = ') as [string, string]),
    )
    const figure = (name: string) => found.get(`SALLYPORT-MIB::sallyport${name}`)
    expect(figure('Version.0')).toBe('0.1.0')
    expect(figure('Node.0')).toBe('b1.example.com')
    expect(figure('Ready.0')).toBe('true')
    expect(figure('SessionsCurrent.0')).toBe('2')
    expect(figure('SessionCurrent.ssh')).toBe('1')
    expect(figure('SessionKilled.ssh')).toBe('1')
    expect(figure('SessionRefused.vnc')).toBe('1')
    expect(figure('SignInsFailed.0')).toBe('41')
    expect(figure('SignInSucceeded.publickey')).toBe('1')
    expect(figure('Lockouts.0')).toBe('1')
    expect(figure('CheckoutsOut.0')).toBe('1')
    expect(figure('ApprovalsPending.0')).toBe('3')
    expect(figure('ApprovalsRequested.0')).toBe('1')
    expect(figure('ApprovalsRejected.0')).toBe('1')
    expect(figure('RecordingBytes.0')).toBe('6000000000 bytes')
    expect(figure('RecordingsFree.0')).toBe('4768 mebibytes')
    expect(figure('SecretsOverdue.0')).toBe('2')
    expect(found.has('SALLYPORT-MIB::sallyportUploadsWaiting.0')).toBe(false)
  })

  test('is a table to snmptable', async () => {
    const sinks = await managers.ask('snmptable', ...V3, '-Cb', '-Cf', ';', place(), ...own('SinkTable'))
    expect(sinks.stdout).toContain('log;udp://log:514;0;0')
    expect(sinks.stdout).toContain('syslog;udp://syslog:514;7;3')
    const ends = await managers.ask(
      'snmptable',
      ...V3,
      '-Ci',
      '-Cf',
      ';',
      place(),
      ...own('CertificateTable'),
    )
    const nodes = await managers.ask('snmptable', ...V3, '-Ci', '-Cf', ';', place(), ...own('NodeTable'))
    expect(nodes.stdout).toContain('1;serving;7\n3;replaced;4\n')
    const workers = await managers.ask('snmptable', ...V3, '-Ci', '-Cf', ';', place(), ...own('WorkerTable'))
    expect(workers.stdout).toContain('1;true;5;9;150 mebibytes;0\n2;false;0;0;?;2\n')
    expect(ends.stdout).toMatch(/^https;.?2031-6-20,0:0:0\.0,\+0:0.?;20 days$/m)
  })

  test('answers snmpbulkget, with few rows however many are asked for', async () => {
    const few = await managers.ask(
      'snmpbulkget',
      ...V3,
      '-Cn1',
      '-Cr3',
      place(),
      'SNMPv2-MIB::sysName',
      ...own('Checkouts'),
    )
    expect(few.stdout.trim().split('\n')).toHaveLength(4)
    expect(few.stdout).toContain('sysName.0 = STRING: b1.example.com')
    const many = await managers.ask('snmpbulkget', ...V2C, '-Cr2000000000', place(), ...own(''))
    expect(many.stdout.trim().split('\n').length).toBeLessThanOrEqual(64)
    const workers = await managers.ask('snmpbulkget', ...V2C, '-OQ', '-Cr2', place(), ...own('WorkerUp'))
    expect(workers.stdout).toBe(
      'SALLYPORT-MIB::sallyportWorkerUp.1 = true\nSALLYPORT-MIB::sallyportWorkerUp.2 = false\n',
    )
    const end = await managers.ask('snmpbulkget', ...V3, '-Cr20', place(), '.1.3.6.1.6.3.10.2.1.4')
    expect(end.stdout.trim().split('\n').at(-1)).toContain('No more variables left in this MIB View')
  })

  test('reads the figures once a second at most', async () => {
    clock.ahead += 1001
    await managers.ask('snmpget', ...V2C, place(), ...own('Version.0'))
    const before = reads
    await managers.ask('snmpwalk', ...V2C, place(), ...own('Approvals'))
    expect(reads).toBeLessThanOrEqual(before + 1)
    clock.ahead += 1001
    await managers.ask('snmpget', ...V2C, place(), ...own('Version.0'))
    expect(reads).toBeGreaterThan(before)
  })

  test('answers with the last figures while a database does not answer', async () => {
    const pending = () => managers.ask('snmpget', ...V2C, '-Oqv', place(), ...own('ApprovalsPending.0'))
    clock.ahead += 1001
    hanging = Promise.withResolvers()
    expect((await pending()).stdout).toBe('3\n')
    hanging.resolve()
    hanging = undefined
  })

  test('takes SHA-512 with AES-256, too', async () => {
    const v3 = { ...config.v3!, auth: 'sha512', priv: 'aes256' } as const
    reload({ ...config, v3 })
    const strong = V3.map((arg) => ({ 'SHA-256': 'SHA-512', AES: 'AES-256' })[arg] ?? arg)
    const { stdout } = await managers.ask('snmpget', ...strong, place(), ...own('Node.0'))
    expect(stdout).toContain('b1.example.com')
    expect((await managers.ask('snmpget', ...V3, place(), ...own('Node.0'))).code).toBe(1)
    reload(config)
  })

  test.each([
    [
      'a wrong password',
      ['-t', '0.2', '-v3', ...USER, '-x', 'AES', '-X', 'priv-password-2'],
      /Timeout/,
      'malformed',
    ],
    [
      'a wrong authentication password',
      V3.map((arg) => (arg === 'auth-password-1' ? 'auth-password-2' : arg)),
      /Authentication failure/,
      'digest',
    ],
    ['an unknown user', V3.map((arg) => (arg === 'noc' ? 'root' : arg)), /Unknown user name/, 'user'],
    ['no encryption', ['-v3', ...USER.with(3, 'authNoPriv')], /Unsupported security level/, 'level'],
    ['nothing proved', ['-v3', '-u', 'noc', '-l', 'noAuthNoPriv'], /Unsupported security level/, 'level'],
    ['SHA-1', V3.map((arg) => (arg === 'SHA-256' ? 'SHA' : arg)), /Authentication failure/, 'digest'],
    ['another context', [...V3, '-n', 'other'], /Bad context/, 'context'],
  ])('refuses %s', async (_, who, said, result) => {
    const before = await messages(result)
    const { stdout, stderr, code } = await managers.ask('snmpget', ...who, place(), ...own('Node.0'))
    expect(stdout + stderr).toMatch(said)
    expect(stdout).not.toContain('b1.example.com')
    expect(code).not.toBe(0)
    expect(await messages(result)).toBeGreaterThan(before)
  })

  test.each([
    ['a wrong community', ['-v2c', '-c', 'figures-pleased'], 'community'],
    ['version 1', ['-v1', '-c', 'figures-please'], 'version'],
  ])('does not answer %s', async (_, who, result) => {
    const before = await messages(result)
    const { stderr } = await managers.ask('snmpget', '-t', '0.2', ...who, place(), ...own('Node.0'))
    expect(stderr).toContain('Timeout')
    expect(await messages(result)).toBe(before + 1)
  })

  test('changes nothing', async () => {
    for (const who of [V2C, V3]) {
      const { stderr } = await managers.ask('snmpset', ...who, place(), 'SNMPv2-MIB::sysName.0', 's', 'mine')
      expect(stderr).toContain('noAccess')
    }
  })

  test('does not answer networks that are not its managers', async () => {
    reload({ ...config, allow: ['192.0.2.0/24'] })
    const before = await messages('source')
    expect((await managers.ask('snmpget', '-t', '0.2', ...V2C, place(), ...own('Node.0'))).code).toBe(1)
    expect(await messages('source')).toBe(before + 1)
    reload(config)
  })

  test('counts its starts, so that a manager learns its new time', async () => {
    const boots = async () =>
      Number((await managers.ask('snmpget', ...V3, '-Oqv', place(), '.1.3.6.1.6.3.10.2.1.2.0')).stdout)
    const id = async () =>
      (await managers.ask('snmpget', ...V3, '-Oqv', place(), '.1.3.6.1.6.3.10.2.1.1.0')).stdout
    const before = { boots: await boots(), id: await id() }
    await agent.close()
    agent = await open()
    expect({ boots: await boots(), id: await id() }).toEqual({ ...before, boots: before.boots + 1 })
  })

  test('sends few reports to senders that prove nothing', async () => {
    const socket = createSocket('udp4')
    let reports = 0
    socket.on('message', () => {
      reports += 1
    })
    const unknown = { engineId: new Uint8Array(), boots: 0, time: 0, user: '' }
    const before = await messages('rate')
    for (let i = 0; i < 200; i++) {
      socket.send(securedRequest(pduOf(GET, []), unknown), agent.address.port, '127.0.0.1')
    }
    await until('refused reports', async () => (await messages('rate')) - before > 100)
    expect(reports).toBeLessThan(100)
    socket.close()
    // From another network, a manager is answered as before.
    expect((await managers.ask('snmpget', ...V2C, place(), ...own('Node.0'))).code).toBe(0)
  })
})
