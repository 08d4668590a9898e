/**
 * The bastion behind Debian's haproxy, by PROXY headers of both versions and by X-Forwarded-For: everything counts
 * for the client and nothing for the balancer.
 */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import { blockHeader, FAMILIES } from '../balancers/headers.ts'
import { type Broker, metricsOf, sallyportCommand, startBroker } from '../peers/broker.ts'
import { type Haproxy, makeCertificate, startHaproxy } from '../peers/haproxy.ts'
import { ssh } from '../peers/openssh.ts'
import { freePort, run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'

const BALANCER = '127.0.0.9'
const HTTP_PROXY = '127.0.0.10'
const DISTRUSTED_PROXY = '127.0.0.11'
const HERE = '127.0.0.1'
/** An X.224 connection request that offers TLS (MS-RDPBCGR 2.2.1.1). */
const RDP_REQUEST = Buffer.from('030000130ee000000000000100080001000000', 'hex')

const client4 = (address: string) => `PROXY TCP4 ${address} 198.51.100.1 3000 22\r\n`

describeWithPeers('behind haproxy', ['haproxy', 'curl', 'ssh', 'sshd', 'openssl'], () => {
  let bastion: Bastion
  let withoutWorkers: Broker
  let haproxy: Haproxy
  const ports = { line: 0, block: 0, vnc: 0, rdp: 0, telnet: 0, https: 0, api: 0, distrusted: 0 }
  const sockets: Socket[] = []

  beforeAll(async () => {
    for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
    bastion = await startBastion({
      broker: {
        config: {
          hostname: 'bastion.example.com',
          proxy_protocol: { from: [BALANCER] },
          trusted_proxies: [HTTP_PROXY],
        },
        terminals: { telnet: { allow: ['127.0.0.0/8'] } },
        vnc: {},
        rdp: {},
      },
    })
    withoutWorkers = await startBroker({
      config: { workers: 0, proxy_protocol: { from: [BALANCER] } },
      terminals: { telnet: { allow: ['127.0.0.0/8'] } },
    })
    const { ports: own, dataFolder } = bastion.broker
    const certificate = await makeCertificate(join(bastion.home.folder, 'proxy.pem'))
    const passed = (name: keyof typeof ports, port: number, version: string) => `
listen ${name}
  bind 127.0.0.1:${ports[name]}
  source ${BALANCER}
  server s 127.0.0.1:${port} ${version} check inter 100ms
`
    const proxied = (name: keyof typeof ports, from: string) => `
listen ${name}
  bind 127.0.0.1:${ports[name]} ssl crt ${certificate}
  mode http
  source ${from}
  option forwardfor
  server s 127.0.0.1:${own.https} ssl verify required ca-file ${dataFolder}/tls/cert.pem verifyhost bastion.example.com
`
    const configuration = [
      'global\n  log stderr format raw local0\n',
      'defaults\n  mode tcp\n  log global\n  option log-health-checks\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n  timeout check 5s\n',
      passed('line', own.ssh, 'send-proxy'),
      passed('block', own.ssh, 'send-proxy-v2 proxy-v2-options crc32c,unique-id'),
      passed('vnc', own.vnc!, 'send-proxy'),
      passed('rdp', own.rdp!, 'send-proxy-v2'),
      passed('telnet', own.telnet!, 'send-proxy-v2'),
      passed('https', own.https, 'send-proxy-v2'),
      proxied('api', HTTP_PROXY),
      proxied('distrusted', DISTRUSTED_PROXY),
    ]
    haproxy = await startHaproxy(configuration.join(''), Object.values(ports))
  })
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
  })
  afterAll(async () => {
    await haproxy?.stop()
    await withoutWorkers?.stop()
    await bastion?.stop()
  })

  async function come(port: number, from: string): Promise<Socket> {
    const socket = connect({ host: HERE, port, localAddress: from, noDelay: true })
    sockets.push(socket)
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    return socket
  }

  /** Returns the first bytes that the server sends, or an empty buffer if it closes. */
  const firstBytes = (socket: Socket) =>
    new Promise<Buffer>((resolve) => {
      socket.once('data', resolve)
      socket.once('close', () => resolve(Buffer.alloc(0)))
    })

  /** Returns the status of a sign-in. */
  async function atApi(
    port: number,
    {
      user,
      password,
      from,
      headers = [],
    }: { user: string; password: string; from: string; headers?: string[] },
  ): Promise<number> {
    const { stdout, stderr } = await run(findProgram('curl'), [
      ...['-sS', '-o', '/dev/null', '-w', '%{http_code}', '--interface', from, '--insecure'],
      ...['-H', 'Content-Type: application/json', '-d', JSON.stringify({ user, password })],
      ...headers.flatMap((header) => ['-H', header]),
      `https://127.0.0.1:${port}/api/session`,
    ])
    expect(stderr).toBe('')
    return Number(stdout)
  }

  async function atSsh(port: number, from: string): Promise<string> {
    const options = [`BindAddress=${from}`, `UserKnownHostsFile=${join(bastion.home.folder, 'known')}`]
    const { stdout } = await ssh(bastion.home, { ...bastion.login({ port }), options }, ['echo in'])
    return stdout
  }

  const lastOf = async (code: string, field: string, value: string) =>
    await until(`${code} with ${field} ${value}`, async () =>
      (await bastion.events(code)).findLast((event) => event[field] === value),
    )

  test.each([
    ['line', '127.0.0.20'],
    ['block', '127.0.0.21'],
  ] as const)('SSH by %s: a session is that of the client at %s', async (name, from) => {
    expect(await atSsh(ports[name], from)).toBe('in\n')
    const opened = await lastOf('session.open', 'client_ip', from)
    expect(opened).toMatchObject({ user: 'ops1', protocol: 'SSH' })
    expect(opened['client_port']).toBeGreaterThan(0)
    const [row] = await bastion.broker.must<object[]>('GET', `/sessions?q=source_ip=${from}`)
    expect(row).toMatchObject({ source_ip: from })
  })

  test('VNC, RDP and Telnet answer through it', async () => {
    const viewer = await come(ports.vnc, '127.0.0.22')
    expect(String(await firstBytes(viewer))).toBe('RFB 003.008\n')
    const desktop = await come(ports.rdp, '127.0.0.22')
    desktop.write(RDP_REQUEST)
    // MS-RDPBCGR 2.2.1.2: a connection confirm, in a TPKT.
    expect((await firstBytes(desktop)).subarray(0, 2).toString('hex')).toBe('0300')
    const terminal = await come(ports.telnet, '127.0.0.22')
    expect((await firstBytes(terminal)).length).toBeGreaterThan(0)
  })

  test.each([
    ['a session worker', () => bastion.broker],
    ['the broker itself', () => withoutWorkers],
  ])("networks of a listener are the client's in %s", async (_place, broker) => {
    const { telnet } = broker().ports
    const inside = await come(telnet!, BALANCER)
    inside.write(client4('127.0.0.23'))
    const outside = await come(telnet!, BALANCER)
    outside.write(client4('192.0.2.7'))
    expect(String(await firstBytes(outside))).toContain('not')
    expect(String(await firstBytes(inside))).not.toContain('not')
  })

  test('the API inside TLS that passes through, and inside TLS that ends there', async () => {
    const right = { user: 'ops1', password: bastion.password }
    expect(await atApi(ports.https, { ...right, from: '127.0.0.24' })).toBe(200)
    expect(await lastOf('auth.success', 'client_ip', '127.0.0.24')).toMatchObject({
      protocol: 'HTTPS',
      client_port: expect.any(Number),
    })
    expect(await atApi(ports.api, { ...right, from: '127.0.0.25' })).toBe(200)
    expect(await lastOf('auth.success', 'client_ip', '127.0.0.25')).not.toHaveProperty('client_port')
  })

  test('a header that the client itself sends is not believed, by whatever way it comes', async () => {
    const { https } = bastion.broker.ports
    const forged = {
      user: 'ops1',
      password: bastion.password,
      headers: ['X-Forwarded-For: 192.0.2.66', 'Forwarded: for=192.0.2.66', 'X-Real-IP: 192.0.2.66'],
    }
    const ways: [number, string, string][] = [
      [https, '127.0.0.26', '127.0.0.26'],
      [ports.https, '127.0.0.27', '127.0.0.27'],
      [ports.api, '127.0.0.28', '127.0.0.28'],
      [ports.distrusted, '127.0.0.29', DISTRUSTED_PROXY],
    ]
    for (const [port, from, counted] of ways) {
      expect(await atApi(port, { ...forged, from })).toBe(200)
      await lastOf('auth.success', 'client_ip', counted)
    }
    expect(bastion.broker.log()).not.toContain('192.0.2.66')
  })

  test('a PROXY header from anywhere else ends the connection, and names nobody', async () => {
    const { ssh: port, https } = bastion.broker.ports
    const liar = await come(port, '127.0.0.30')
    liar.write(client4('192.0.2.77'))
    const said: Buffer[] = []
    liar.on('data', (data) => said.push(data))
    await new Promise((resolve) => liar.once('close', resolve))
    const web = await come(https, '127.0.0.30')
    web.write(client4('192.0.2.77'))
    expect((await firstBytes(web)).subarray(0, 1).toString('hex')).not.toBe('16')
    expect(bastion.broker.log()).not.toContain('192.0.2.77')
  })

  test('missing, torn and wrong headers are closed, told of and counted', async () => {
    const { ssh: port } = bastion.broker.ports
    const counts = async () => {
      const metrics = await metricsOf(bastion.broker)
      return ['missing', 'torn', 'malformed'].map((reason) => {
        const name = `sallyport_proxy_header_refusals_total{listener="ssh",reason="${reason}"}`
        return Number(
          metrics
            .split('\n')
            .find((line) => line.startsWith(name))
            ?.split(' ')[1] ?? 0,
        )
      })
    }
    const before = await counts()
    for (let n = 0; n < 3; n++) {
      const bare = await come(port, BALANCER)
      bare.write('SSH-2.0-client\r\n')
      expect((await firstBytes(bare)).length).toBe(0)
    }
    const torn = await come(port, BALANCER)
    torn.end('PROXY TCP4 192.0.2.7')
    expect((await firstBytes(torn)).length).toBe(0)
    const wrong = await come(port, BALANCER)
    wrong.write(blockHeader({ family: FAMILIES.tcp6, addresses: Buffer.alloc(12) }))
    expect((await firstBytes(wrong)).length).toBe(0)
    // The process writes its log, and the test reads it, after the connection has ended.
    const told = await until('the lines', () => {
      const lines = linesOf(bastion).filter((line) => line['fault'] !== undefined)
      return ['client', 'and the end', 'where 36'].every((part) =>
        lines.some((line) => String(line['fault']).includes(part)),
      )
        ? lines
        : undefined
    })
    for (const fault of ['got "SSH-2.0-client"', 'got 20 bytes of one and the end', '12 bytes where 36']) {
      expect(told).toContainEqual(
        expect.objectContaining({
          level: 'warn',
          listener: 'ssh',
          balancer: BALANCER,
          fault: expect.stringContaining(fault),
          msg: expect.stringContaining('a connection of a balancer was closed: '),
        }),
      )
    }
    const grown = async () => (await counts()).map((count, i) => count - before[i]!)
    await until('the counts', async () => (await grown()).every((count) => count > 0) || undefined)
    expect(await grown()).toEqual([3, 1, 1])
  })

  test('health checks succeed, and make no noise', async () => {
    for (const name of ['line', 'block', 'vnc', 'rdp', 'telnet', 'https']) {
      await until(`a check of ${name}`, () => haproxy.log().includes(`${name}/s succeeded`) || undefined)
    }
    expect(
      linesOf(bastion).filter((line) => line['level'] !== 'info' && line['fault'] === undefined),
    ).toEqual([])
    expect((await bastion.events('auth.failure')).map((event) => event['client_ip'])).not.toContain(BALANCER)
  })

  test('fifty wrong passwords through it lock out their client only', async () => {
    const [attacker, victim] = ['127.0.0.31', '127.0.0.32']
    const { addressFailures } = LOCKOUT_LIMITS
    const right = { user: 'ops1', password: bastion.password }
    // Half of them by each way; of other names too, so that none is locked by its name.
    const attempts = Array.from({ length: addressFailures }, (_none, n) => ({
      user: `user${n}`,
      password: 'wrong',
    }))
    const guess = async () => {
      for (let one = attempts.pop(); one; one = attempts.pop()) {
        const port = attempts.length % 2 === 0 ? ports.https : ports.api
        expect(await atApi(port, { ...one, from: attacker })).toBe(401)
      }
    }
    await Promise.all([guess(), guess(), guess(), guess()])
    expect(await lastOf('auth.locked', 'client_ip', attacker)).toBeDefined()
    for (const port of [ports.https, ports.api]) {
      expect(await atApi(port, { ...right, from: attacker })).toBe(401)
      expect(await atApi(port, { ...right, from: victim })).toBe(200)
    }
    for (const port of [ports.line, ports.block]) {
      expect(await atSsh(port, attacker)).toBe('')
      expect(await atSsh(port, victim)).toBe('in\n')
    }
    expect((await bastion.events('auth.locked')).map((event) => event['client_ip'])).toEqual([attacker])
  })

  test('sallyport check warns of balancers that are strangers', async () => {
    const config = parse(readFileSync(bastion.broker.configFile, 'utf8'))
    const file = join(bastion.home.folder, 'wide.yaml')
    const checked = async () => (await run(...sallyportCommand(['check', '--config', file]))).stdout
    writeFileSync(file, stringify({ ...config, proxy_protocol: { from: ['0.0.0.0/0'] } }))
    expect(await checked()).toMatch(/^warning +balancers +proxy_protocol.from holds 0.0.0.0\/0: /m)
    writeFileSync(file, stringify(config))
    expect(await checked()).toMatch(/^ok +balancers +PROXY headers believed from 127.0.0.9$/m)
  })

  test('SIGHUP changes both networks, and names them', async () => {
    const { configFile, pid, ports: own } = bastion.broker
    const before = readFileSync(configFile, 'utf8')
    const reload = async (more: object) => {
      const { length } = await bastion.events('config.reload')
      writeFileSync(configFile, stringify({ ...parse(before), ...more }))
      process.kill(pid, 'SIGHUP')
      return (await bastion.events('config.reload', length + 1)).at(-1)
    }
    try {
      const reloaded = await reload({ proxy_protocol: { from: [] }, trusted_proxies: [DISTRUSTED_PROXY] })
      expect(reloaded).toMatchObject({
        result: 'success',
        changes: 'proxy_protocol.from[0], trusted_proxies[0]',
      })
      const bare = await come(own.ssh, BALANCER)
      expect(String(await firstBytes(bare))).toContain('SSH-2.0-')
      const right = { user: 'ops1', password: bastion.password }
      expect(await atApi(ports.distrusted, { ...right, from: '127.0.0.33' })).toBe(200)
      await lastOf('auth.success', 'client_ip', '127.0.0.33')
      expect(await atApi(ports.api, { ...right, from: '127.0.0.34' })).toBe(200)
      await lastOf('auth.success', 'client_ip', HTTP_PROXY)
    } finally {
      await reload({})
    }
  })
})

/** Returns the lines of the broker's log that are no events. */
function linesOf({ broker }: Bastion): Record<string, unknown>[] {
  return broker
    .log()
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => !('event' in line))
}
