/**
 * The broker's events as its receivers get them: a real rsyslogd over UDP and TCP, a real snmptrapd, and a
 * scraper of the metrics. A real client causes each event.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { EVENTS, type EventCode, TRAP_CODES } from '../../src/audit/events/catalogue.ts'
import { traceIdOf } from '../../src/tracing/otlp.ts'
import { startReceivers } from '../notifications/receivers.ts'
import { type ApiAnswer, callApi, metricsOf, startBroker } from '../peers/broker.ts'
import { type Managers, startManagers } from '../peers/net-snmp.ts'
import { scp, ssh, sshTerminal } from '../peers/openssh.ts'
import { descendants, freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Rsyslog, type SyslogMessage, startRsyslog } from '../peers/rsyslog.ts'
import { type Notification, type Snmptrapd, startSnmptrapd } from '../peers/snmptrapd.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { type Collector, startCollector } from '../tracing/collector.ts'
import { until } from '../until.ts'
import { type Bastion, type SessionRow, startBastion } from './bastion.ts'

const RIGHTS = ['SSH_SHELL', 'SSH_REMOTE_COMMAND', 'SSH_SCP_UP']
/** As in src/identity/lockout.ts: failures of one name from one address. */
const FAILURES_TO_LOCK = 10

const PEERS = ['sshd', 'ssh', 'scp', 'rsyslogd', 'snmpget', 'snmptrapd', 'python3-aiosmtpd'] as const

describeWithPeers('events', PEERS, () => {
  let bastion: Bastion
  let rsyslog: Rsyslog
  let trapd: Snmptrapd
  let sshd: Sshd
  let dataFolder: string
  let deadPort: number
  let agentPort: number
  let collector: Collector
  let managers: Managers
  /** The session of the first test. */
  let session: string

  const sinks = () => ({
    syslog: ['udp', 'tcp'].map((transport) => ({ host: '127.0.0.1', port: rsyslog.port, transport })),
    traces: { endpoint: collector.endpoint },
    snmp: {
      agent: { port: agentPort, v2c: { community: 'figures-please' } },
      traps: [{ host: '127.0.0.1', port: trapd.port, version: '2c', community: trapd.community }],
    },
  })
  beforeAll(async () => {
    ;[rsyslog, trapd, deadPort, agentPort] = await Promise.all([
      startRsyslog(),
      startSnmptrapd(),
      freePort(),
      freePort(),
    ])
    collector = await startCollector()
    managers = startManagers()
    dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-data-'))
    bastion = await startBastion({
      credential: 'password',
      subprotocols: RIGHTS,
      broker: { dataFolder, config: sinks() },
    })
    sshd = bastion.sshd
  })
  afterAll(async () => {
    await sshd.stop()
    await bastion.stop()
    await rsyslog.stop()
    await trapd.stop()
    await collector.stop()
    managers.remove()
    rmSync(dataFolder, { recursive: true, force: true })
  })

  /** Returns the fields of a message, by its code and some fields; equal over both transports. */
  async function received(
    code: EventCode,
    fields: Record<string, string>,
    from = rsyslog,
  ): Promise<Record<string, string>> {
    const data = (one: SyslogMessage) => one['rfc5424-sd']?.['sallyport@32473'] ?? {}
    const fits = (one: SyslogMessage) =>
      one.msgid === code && Object.entries(fields).every(([name, value]) => data(one)[name] === value)
    const [udp, tcp] = await until(`${code} ${JSON.stringify(fields)}`, () => {
      const found = from.messages().filter(fits)
      const both = ['udp', 'tcp'].map((via) => found.find((one) => one.via === via))
      return both[0] && both[1] ? (both as [SyslogMessage, SyslogMessage]) : undefined
    })
    expect(data(tcp)).toEqual(data(udp))
    expect(tcp).toMatchObject({
      app: 'sallyport',
      facility: 'authpriv',
      procid: String(bastion.broker.pid),
      text: udp.text,
    })
    const known: readonly string[] = ['sequence', ...EVENTS[code].fields]
    expect(Object.keys(data(tcp)).filter((name) => !known.includes(name))).toEqual([])
    return { ...data(tcp), severity: tcp.severity }
  }

  const trapName = (code: EventCode) =>
    `sallyport${code.replace(/(^|\.)([a-z])/g, (_, _dot, letter: string) => letter.toUpperCase())}`
  /** Returns the objects of the last trap of that code, about that object if one is named. */
  async function trapped(code: EventCode, about = ''): Promise<Record<string, string>> {
    const fits = ({ objects }: Notification) => {
      const values = Object.values(objects)
      return (
        values.some((value) => value === `OID: SALLYPORT-MIB::${trapName(code)}`) &&
        values.some((value) => value.includes(about))
      )
    }
    const found = await until(`a trap of ${code}`, () => trapd.notifications().findLast(fits))
    return Object.fromEntries(
      Object.entries(found.objects).map(([name, value]) => [
        name.replace(/^SALLYPORT-MIB::sallyport(.*)\.0$/, '$1'),
        value.replace(/^(STRING|Gauge32|Counter64): /, ''),
      ]),
    )
  }

  /** Returns a figure as the agent has it. */
  const figureOf = async (name: string, port = agentPort) => {
    const who = ['-v2c', '-c', 'figures-please', '-OqvU', `127.0.0.1:${port}`]
    return (await managers.ask('snmpget', ...who, `SALLYPORT-MIB::sallyport${name}`)).stdout.trim()
  }

  const as = <T>(user: string, password: string) => {
    const certificate = readFileSync(join(bastion.broker.dataFolder, 'tls', 'cert.pem'))
    const { https } = bastion.broker.ports
    return {
      signIn: () => callApi<T>(https, certificate, 'POST', '/session', { user, password }),
      call: async (method: string, path: string, body?: unknown): Promise<ApiAnswer<T>> => {
        const answer = await callApi(https, certificate, 'POST', '/session', { user, password })
        const cookie = [answer.headers['set-cookie'] ?? []].flat()[0]!.split(';')[0]!
        return callApi<T>(https, certificate, method, path, body, { cookie })
      },
    }
  }

  test('a start', async () => {
    expect(await received('service.start', {})).toMatchObject({ object_type: 'service', severity: 'notice' })
    expect(await received('object.create', { object_type: 'device' })).toMatchObject({
      user: 'admin',
      profile: 'product_administrator',
      client_ip: '127.0.0.1',
      object: 'srv1',
    })
  })

  test('a command: sign-in, host key, session, channel, command, recording, end', async () => {
    const done = await ssh(bastion.home, bastion.login(), ['echo "quoted] text"'])
    expect(done.stdout).toBe('quoted] text\n')
    const [row] = await bastion.closedSessions(1)
    session = row!.id
    const target = {
      session,
      user: 'ops1',
      client_ip: '127.0.0.1',
      client_port: expect.stringMatching(/^\d+$/),
      protocol: 'SSH',
      account: bastion.account.name,
      domain: 'local',
      device: 'srv1',
      service: 'ssh',
      target_host: '127.0.0.1',
    }
    expect(await received('auth.success', { user: 'ops1' })).toMatchObject({
      method: 'password',
      protocol: 'SSH',
      profile: 'user',
      severity: 'notice',
    })
    expect(await received('session.open', { session })).toMatchObject({
      ...target,
      authorization: expect.stringMatching(/./),
    })
    expect(await received('hostkey.new', { session })).toMatchObject({ ...target, result: 'pinned' })
    expect(await received('channel.open', { session })).toMatchObject({
      ...target,
      subprotocol: 'SSH_REMOTE_COMMAND',
    })
    expect(await received('command', { session })).toMatchObject({ ...target, object: 'echo "quoted] text"' })
    expect(await received('recording.sealed', { session })).toMatchObject({
      ...target,
      size: String(row?.recording?.size),
      digest: row?.recording?.digest,
    })
    expect(await received('session.close', { session })).toMatchObject({
      ...target,
      result: 'success',
      bytes_in: '0',
      bytes_out: '13',
      duration: expect.stringMatching(/^\d+$/),
      severity: 'notice',
    })
    expect(await trapped('session.open')).toMatchObject({ Session: session, User: 'ops1', Device: 'srv1' })
    expect(await trapped('session.close')).toMatchObject({
      Session: session,
      Result: 'success',
      BytesOut: '13',
    })
  })

  test('a file, and a right that is missing', async () => {
    const file = join(bastion.home.folder, 'six')
    writeFileSync(file, 'bytes\n')
    const remote = join(bastion.account.home, 'six')
    expect((await scp(bastion.home, bastion.login(), file, { remote }, ['-O'])).code).toBe(0)
    expect(await received('file.transfer', { path: remote })).toMatchObject({
      direction: 'up',
      size: '6',
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      result: 'success',
    })
    expect((await scp(bastion.home, bastion.login(), { remote }, file, ['-O'])).code).not.toBe(0)
    expect(await received('channel.denied', { subprotocol: 'SSH_SCP_DOWN' })).toMatchObject({
      user: 'ops1',
      device: 'srv1',
      reason: 'you may not copy files from it with scp on srv1: the right SSH_SCP_DOWN is missing',
      severity: 'warning',
    })
  })

  test('a wrong password, and many of them', async () => {
    const wrong = bastion.login({ password: 'canary-wrong-password', method: 'password' })
    expect((await ssh(bastion.home, wrong, ['true'])).code).toBe(255)
    expect(await received('auth.failure', { user: 'ops1' })).toMatchObject({
      method: 'password',
      protocol: 'SSH',
      client_ip: '127.0.0.1',
      reason: expect.stringMatching(/./),
      severity: 'warning',
    })
    expect(await trapped('auth.failure')).toMatchObject({ User: 'ops1', Method: 'password' })

    for (let i = 0; i <= FAILURES_TO_LOCK; i++) {
      expect((await as('ghost', 'canary-wrong-password').signIn()).status).toBe(401)
    }
    expect(await received('auth.locked', { user: 'ghost' })).toMatchObject({
      duration: expect.stringMatching(/^\d+$/),
      severity: 'warning',
    })
    expect(await trapped('auth.locked')).toMatchObject({ User: 'ghost' })
    const everything = JSON.stringify([rsyslog.messages(), trapd.raw(), bastion.broker.log()])
    expect(everything).toContain('ghost')
    expect(everything).not.toContain('canary')
  })

  test('a notification gets what it chose by mail, from its making on, and a webhook is not this machine', async () => {
    const receivers = await startReceivers('a signing secret')
    const { broker } = bastion
    const heard = (what: string) =>
      until(what, () => receivers.lines().find(({ mail }) => String(mail).includes(what)))
    try {
      await broker.must('POST', '/notifications', {
        notification_name: 'on-call',
        type: 'MAIL',
        events: ['object.*'],
        severity: 'notice',
        mail: {
          host: 'localhost',
          port: receivers.mailPort,
          ca_certificates: receivers.ca,
          user_name: 'bastion',
          from: 'bastion@lab.test',
          to: ['soc@lab.test'],
        },
        password: 'mail-password',
      })
      expect(await broker.must('POST', '/notifications/on-call/test')).toMatchObject({ ok: true })
      expect(await heard('notification.test')).toMatchObject({ login: 'bastion', tls: true })
      await until('the receiver is there', () =>
        rsyslog
          .messages()
          .find(
            (one) =>
              one.msgid === 'sink.begin' && one['rfc5424-sd']?.['sallyport@32473']?.object === 'on-call',
          ),
      )
      await broker.must('POST', '/notifications', {
        notification_name: 'own',
        type: 'WEBHOOK',
        is_disabled: true,
        webhook: { url: `https://localhost:${receivers.port}/200`, ca_certificates: receivers.ca },
        signing_secret: 'a signing secret',
      })
      await heard('created notification own')
      expect(await broker.must('POST', '/notifications/own/test')).toEqual({
        ok: false,
        detail: 'expected an address that may be connected to',
      })
      for (const name of ['own', 'on-call']) await broker.must('DELETE', `/notifications/${name}`)
      await received('sink.end', { object: 'on-call' })
    } finally {
      await receivers.stop()
    }
  })

  test('a target that does not exist', async () => {
    const done = await ssh(bastion.home, bastion.login({ user: 'ops1+root@nowhere' }), ['true'])
    expect(done.code).toBe(255)
    expect(await received('session.denied', { device: 'nowhere' })).toMatchObject({
      user: 'ops1',
      account: 'root',
      reason: expect.stringMatching(/./),
      severity: 'warning',
    })
    expect(await trapped('session.denied')).toMatchObject({ User: 'ops1', Device: 'nowhere' })
  })

  test('a session that an administrator ends', async () => {
    const terminal = sshTerminal(bastion.home, bastion.login())
    await terminal.expect('$ ')
    const [row] = await bastion.broker.must<SessionRow[]>('GET', '/sessions?status=current')
    await bastion.broker.must('POST', `/sessions/${row!.id}/kill`, { reason: 'enough' })
    await terminal.exit()
    expect(await received('session.kill', { session: row!.id })).toMatchObject({
      user: 'admin',
      device: 'srv1',
      reason: 'enough',
      severity: 'warning',
    })
    expect(await received('session.kill', { session: row!.id })).not.toHaveProperty('client_ip')
    expect(await received('session.close', { session: row!.id })).toMatchObject({
      result: 'killed',
      user: 'ops1',
    })
    expect(await trapped('session.kill')).toMatchObject({ User: 'admin', Reason: 'enough', Session: row!.id })
  })

  test('a secret that is checked out and in, and one that is refused', async () => {
    const ops1 = as<{ password: string; checkout_id: string }>('ops1', bastion.password)
    const account = `${bastion.account.name}@local@srv1`
    expect((await ops1.call('POST', `/accounts/${account}/checkout`)).status).toBe(404)
    expect(await received('checkout.denied', { user: 'ops1' })).toMatchObject({
      account: bastion.account.name,
      reason: 'no authorization',
      severity: 'warning',
    })
    expect(await trapped('checkout.denied')).toMatchObject({ User: 'ops1', Reason: 'no authorization' })

    const [authorization] = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
    await bastion.broker.must('PUT', '/targetgroups/ops1-srv1-targets', {
      password_retrieval: { accounts: [account] },
    })
    await bastion.broker.must('PUT', `/authorizations/${authorization!.id}`, {
      authorize_password_retrieval: true,
    })
    const out = await ops1.call('POST', `/accounts/${account}/checkout`)
    expect(out).toMatchObject({ status: 200, body: { password: bastion.account.password } })
    const id = out.body.checkout_id
    const back = await ops1.call('POST', `/accounts/${account}/checkin`, { checkout_id: id })
    expect(back.status).toBe(204)
    for (const code of ['checkout.out', 'checkout.in'] as const) {
      expect(await received(code, { object: id })).toMatchObject({
        user: 'ops1',
        account: bastion.account.name,
        domain: 'local',
        device: 'srv1',
        severity: 'notice',
      })
    }
    expect(JSON.stringify([rsyslog.messages(), trapd.raw()])).not.toContain(bastion.account.password)
  })

  test('a host key that has changed is an alert', async () => {
    const { port } = sshd
    await sshd.stop()
    sshd = await startSshd({ users: [{ name: bastion.account.name }], port })
    expect((await ssh(bastion.home, bastion.login(), ['true'])).code).toBe(255)
    const digest = sshd.hostKeys[0]!.fingerprint
    expect(await received('hostkey.changed', { digest })).toMatchObject({ device: 'srv1', severity: 'alert' })
    expect(await trapped('hostkey.changed')).toMatchObject({ Digest: digest, Device: 'srv1' })
  })

  test('the metrics count what the events tell', async () => {
    const text = await metricsOf(bastion.broker)
    const value = (series: string) => {
      const line = text.split('\n').find((one) => one.startsWith(`${series} `))
      return line === undefined ? undefined : Number(line.split(' ').at(-1))
    }
    const count = async (code: EventCode, fields: Record<string, string> = {}) =>
      (await bastion.events(code)).filter((event) =>
        Object.entries(fields).every(([name, wanted]) => event[name] === wanted),
      ).length
    expect(value('sallyport_sessions_current{protocol="SSH"}')).toBe(0)
    for (const result of ['success', 'failure', 'killed']) {
      const expected = await count('session.close', { result })
      expect(expected).toBeGreaterThan(0)
      expect(value(`sallyport_sessions_total{protocol="SSH",result="${result}"}`)).toBe(expected)
    }
    expect(value('sallyport_sessions_total{protocol="SSH",result="denied"}')).toBe(1)
    expect(value('sallyport_authentications_total{method="password",result="failure"}')).toBe(
      await count('auth.failure', { method: 'password' }),
    )
    expect(value('sallyport_channels_total{subprotocol="SSH_SCP_DOWN",result="denied"}')).toBe(1)
    expect(value('sallyport_checkouts_total{result="denied"}')).toBe(1)
    const sizes = (await bastion.events('recording.sealed')).map(({ size }) => Number(size))
    expect(value('sallyport_recording_bytes_total')).toBe(sizes.reduce((sum, size) => sum + size, 0))
    expect(
      value('sallyport_sign_in_duration_seconds_count{protocol="SSH",result="accepted"}'),
    ).toBeGreaterThan(0)
    const opened = '{protocol="SSH",result="opened"}'
    expect(value(`sallyport_session_authorization_duration_seconds_count${opened}`)).toBe(
      await count('session.open'),
    )
    const connected = 'sallyport_target_connect_duration_seconds_count{protocol="SSH",result="connected"}'
    expect(value(connected)).toBeGreaterThan(0)
    expect(value('sallyport_recording_lag_seconds_count{result="appended"}')).toBeGreaterThan(0)
    expect(value('sallyport_eventloop_delay_seconds_count{process="broker"}')).toBeGreaterThan(0)
    expect(value('sallyport_eventloop_delay_seconds_count{process="worker"}')).toBeGreaterThan(0)
    // No series has a user, a target or a session.
    for (const name of ['ops1', 'srv1', 'ghost', session]) expect(text).not.toContain(name)
  })

  test('a manager gets the same figures from the agent', async () => {
    const denied = await bastion.events('session.denied')
    expect(await figureOf('SessionRefused.ssh')).toBe(String(denied.length))
    expect(await figureOf('CheckoutsRefused.0')).toBe('1')
    expect(await figureOf('SinkType.4')).toBe('snmp')
    expect(await figureOf('NodeState.1')).toBe('serving')
    expect(await figureOf('WorkerUp.1')).toBe('true')
    expect(Number(await figureOf('CertificateDays.https'))).toBeGreaterThan(30)
  })

  test('a collector gets a trace of each opening, which has the id of its session', async () => {
    const connected = await until('a trace of the first session', () =>
      collector
        .spans()
        .find((span) => span.traceId === traceIdOf(session) && span.name === 'session opening'),
    )
    expect(connected.status.code).toBe(1)
    const steps = collector.spans().filter(({ traceId }) => traceId === traceIdOf(session))
    expect(steps.map(({ name }) => name).sort()).toEqual([
      ...['accept', 'authorization', 'credential', 'recording_open', 'session opening', 'sign_in'],
      'target_connect',
    ])
    for (const { startTimeUnixNano, endTimeUnixNano, parentSpanId } of steps) {
      expect(BigInt(startTimeUnixNano) <= BigInt(endTimeUnixNano)).toBe(true)
      expect(BigInt(startTimeUnixNano) >= BigInt(connected.startTimeUnixNano)).toBe(true)
      expect([undefined, connected.spanId]).toContain(parentSpanId)
    }
    expect(collector.text()).not.toMatch(/ops1|srv1/)
  })

  test('session workers that die: each is told, and the third in a row is an alert', async () => {
    const killed: number[] = []
    // The first may have lived for long.
    for (let died = 0; died < 4; died++) {
      // A connection waits until a worker has begun.
      await ssh(bastion.home, bastion.login(), ['true'])
      const pid = await until('a session worker', () =>
        descendants(bastion.broker.pid).find((one) => !killed.includes(one)),
      )
      killed.push(pid)
      process.kill(pid, 'SIGKILL')
      const lost = await received('worker.lost', { object: String(pid) })
      expect(lost).toMatchObject({ object_type: 'worker', reason: 'the session worker was ended by SIGKILL' })
    }
    const loop = await received('worker.loop', {})
    expect(loop).toMatchObject({ object_type: 'worker', count: '3', severity: 'alert' })
    expect(killed.slice(2).map(String)).toContain(loop['object'])
  }, 300_000)

  test('SIGHUP takes another receiver over, and one that is away is told of once', async () => {
    const second = await startRsyslog()
    try {
      const { configFile, pid } = bastion.broker
      const config = parse(readFileSync(configFile, 'utf8'))
      config.syslog = ['udp', 'tcp'].map((transport) => ({ host: '127.0.0.1', port: second.port, transport }))
      config.syslog.push({ host: '127.0.0.1', port: deadPort, transport: 'tcp' })
      config.snmp.agent.port = await freePort()
      config.workers = 2
      writeFileSync(configFile, stringify(config))
      process.kill(pid, 'SIGHUP')
      await until('the reading', () =>
        bastion.broker.log().includes('the configuration was read again') ? true : undefined,
      )
      // a receiver that is removed gets the event, like all that stay
      for (const one of [rsyslog, second]) {
        const reload = await received('config.reload', { result: 'success' }, one)
        expect(reload['changes']).toContain('syslog[0].port')
        expect(reload['changes']).toContain('snmp.agent.port')
        expect(reload['reason']).toBe('a restart applies: workers')
      }
      expect(await trapped('config.reload')).toMatchObject({ Result: 'success' })
      expect(await figureOf('Ready.0', config.snmp.agent.port)).toBe('true')
      expect(await trapped('sink.end', String(rsyslog.port))).toMatchObject({
        Object: expect.stringContaining('127.0.0.1'),
      })
      expect((await ssh(bastion.home, bastion.login({ password: 'wrong again' }), ['true'])).code).toBe(255)
      const down = await received('sink.down', {}, second)
      expect(down).toMatchObject({ object_type: expect.stringContaining('syslog'), severity: 'warning' })
      expect(down['object']).toContain(String(deadPort))
      expect(await trapped('sink.down')).toMatchObject({ Object: expect.stringContaining(String(deadPort)) })
      expect(await received('auth.failure', { user: 'ops1' }, second)).toMatchObject({ method: 'password' })
      expect(await bastion.events('sink.down')).toHaveLength(1)

      // A faulty configuration is not applied, and nothing stops.
      writeFileSync(configFile, 'lisen: {}\n')
      process.kill(pid, 'SIGHUP')
      await until('the refusal', () =>
        bastion.broker.log().includes('the configuration was not taken over') ? true : undefined,
      )
      expect((await as('ops1', bastion.password).signIn()).status).toBe(200)
      expect(await received('auth.success', { user: 'ops1', protocol: 'HTTPS' }, second)).toBeDefined()
    } finally {
      await second.stop()
    }
  })

  test('a stop is told before the receivers are left; a recording that cannot begin is an alert', async () => {
    await bastion.broker.stop()
    const { ports } = bastion.broker
    const config = { ...sinks(), recordings: { min_free: '1000000GiB' } }
    const again = await startBroker({ dataFolder, ports, config })
    try {
      const done = await ssh(bastion.home, bastion.login(), ['true'])
      expect(done.stderr).toContain('cannot be recorded, so it is not opened')
      expect(await trapped('recording.failed')).toMatchObject({ User: 'ops1', Device: 'srv1' })
      expect(await trapped('recording.space')).toMatchObject({
        Object: expect.stringContaining('recordings'),
      })
    } finally {
      await again.stop()
    }
    const stops = await until('service.stop over both', () => {
      const found = rsyslog.messages().filter(({ msgid }) => msgid === 'service.stop')
      return found.length >= 2 ? found : undefined
    })
    expect(stops.map(({ via }) => via).sort()).toEqual(['tcp', 'udp'])
    const failed = rsyslog.messages().find(({ msgid }) => msgid === 'recording.failed')
    expect(failed).toMatchObject({ severity: 'alert', procid: String(again.pid) })
    const denied = rsyslog.messages().findLast(({ msgid }) => msgid === 'session.denied')
    expect(denied?.['rfc5424-sd']).toMatchObject({
      'sallyport@32473': { user: 'ops1', domain: 'local', device: 'srv1', service: 'ssh' },
    })
  })

  test('every code with a notification was trapped', async () => {
    // test/audit/feeds.test.ts covers the first two; the others need a database server (test/e2e/outage.test.ts).
    const rare: readonly EventCode[] = ['sink.up', 'sink.missed', 'database.away', 'database.back']
    for (const code of TRAP_CODES.filter((one) => !rare.includes(one)))
      expect(trapd.raw()).toContain(`SALLYPORT-MIB::${trapName(code)}`)
  })
})
