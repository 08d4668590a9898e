/** The configurations of docs/operations.md for a load balancer, with Debian's haproxy and real clients. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { eventsIn } from '../e2e/bastion.ts'
import { type Desktop, startDesktop } from '../e2e/desktops.ts'
import { ticketFor } from '../e2e/tickets.ts'
import { callApi } from '../peers/broker.ts'
import { type Haproxy, makeCertificate, startHaproxy } from '../peers/haproxy.ts'
import { createHome, type Home } from '../peers/home.ts'
import { ssh } from '../peers/openssh.ts'
import { freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { paint } from '../peers/screen.ts'
import { XVNC_PEERS } from '../peers/vnc/servers.ts'
import { SNAPSHOT_PEERS, vncSnapshot } from '../peers/vnc/viewers.ts'
import { until } from '../until.ts'
import { adapt, filesOf } from './walks.ts'

const HERE = '127.0.0.1'
const BALANCER = '127.0.0.9'
const HTTP_PROXY = '127.0.0.10'
/** A connection request that offers TLS, and the length of its answer (MS-RDPBCGR 2.2.1.1, 2.2.1.2). */
const RDP_REQUEST = Buffer.from('030000130ee000000000000100080001000000', 'hex')
const RDP_CONFIRM = 19

const PEERS = [...XVNC_PEERS, ...SNAPSHOT_PEERS, 'haproxy', 'ssh', 'openssl'] as const

describeWithPeers('the configuration for a load balancer', PEERS, () => {
  const files = filesOf('docs/operations.md')
  const ports = { ssh: 0, vnc: 0, rdp: 0, https: 0, api: 0 }
  let desktop: Desktop
  let haproxy: Haproxy
  let home: Home

  beforeAll(async () => {
    home = createHome()
    for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
    const settings = files.filter(({ name }) => name === 'sallyport.yaml').map(({ text }) => text)
    const config = parse(
      adapt(settings.join(''), { '[192.0.2.5]': `[${BALANCER}]`, '[192.0.2.6]': `[${HTTP_PROXY}]` }),
    )
    desktop = await startDesktop({
      broker: { config: { ...config, hostname: 'bastion.example.com' }, rdp: {} },
    })
    // A blank screen is no picture for the viewer.
    const rgb = Buffer.alloc(640 * 480 * 3, 'colour')
    await paint(desktop.xvnc!.display, { width: 640, height: 480, rgb })
    const { ports: own, dataFolder } = desktop.broker
    const certificate = await makeCertificate(join(home.folder, 'bastion.pem'))
    const [passing, ending] = files.filter(({ name }) => name === 'haproxy.cfg').map(({ text }) => text)
    const configuration = adapt(`${passing}\n${ending}`, {
      'bind :22\n': `bind ${HERE}:${ports.ssh}\n`,
      'bind :5900\n': `bind ${HERE}:${ports.vnc}\n`,
      'bind :3389\n': `bind ${HERE}:${ports.rdp}\n`,
      'bind :443\n': `bind ${HERE}:${ports.https}\n`,
      'bind :443 ': `bind ${HERE}:${ports.api} `,
      'source 192.0.2.5 ': `source ${BALANCER} `,
      'source 192.0.2.6 ': `source ${HTTP_PROXY} `,
      '192.0.2.10:22 ': `${HERE}:${own.ssh} `,
      '192.0.2.10:5900 ': `${HERE}:${own.vnc} `,
      '192.0.2.10:3389 ': `${HERE}:${own.rdp} `,
      '192.0.2.10:443 ': `${HERE}:${own.https} `,
      '/etc/haproxy/bastion.pem': certificate,
      '/etc/haproxy/sallyport.pem': `${dataFolder}/tls/cert.pem`,
    })
    haproxy = await startHaproxy(configuration, Object.values(ports))
  })
  afterAll(async () => {
    await haproxy?.stop()
    await desktop?.stop()
    home?.remove()
  })

  test('shows a desktop by a ticket, both of the same client', async () => {
    const { broker } = desktop
    const passed = { ports: { ...broker.ports, https: ports.https }, dataFolder: broker.dataFolder }
    const target = 'screen@local:desk1:vnc'
    const { password } = await ticketFor(passed, { user: 'ops1', password: desktop.password }, target)
    const { picture, said } = await vncSnapshot({ port: ports.vnc, password })
    expect(picture, said).toMatchObject({ width: 640, height: 480 })
    const sessions = () => broker.must<object[]>('GET', '/sessions?status=closed&sort=begin')
    const last = await until('the end of the session', async () => (await sessions()).at(-1))
    expect(last).toMatchObject({ user: 'ops1', source_ip: HERE })
  })

  test('serves SSH', async () => {
    const login = { port: ports.ssh, user: 'ops1', password: desktop.password }
    const { stderr } = await ssh(home, { ...login, options: ['StrictHostKeyChecking=no'] }, ['true'])
    expect(stderr).toContain('USER')
  })

  test('serves RDP, and TLS in it', async () => {
    const socket = connect(ports.rdp, HERE)
    socket.write(RDP_REQUEST)
    const [confirm] = await once(socket, 'data')
    expect((confirm as Buffer).length).toBe(RDP_CONFIRM)
    const secure = connectTls({ socket, rejectUnauthorized: false })
    await once(secure, 'secureConnect')
    expect(secure.getPeerCertificate().subject.CN).toBe('bastion.example.com')
    secure.destroy()
  })

  test('serves the API by a proxy that ends TLS', async () => {
    const certificate = readFileSync(join(home.folder, 'bastion.pem'))
    const body = { user: 'ops1', password: desktop.password }
    const headers = { 'x-forwarded-for': '192.0.2.66' }
    const answer = await callApi(ports.api, certificate, 'POST', '/session', body, headers)
    expect(answer.status).toBe(200)
    const log = desktop.broker.log()
    const signIns = eventsIn(log).filter(({ event, user }) => event === 'auth.success' && user === 'ops1')
    // A proxy that ends TLS names no port.
    expect(signIns.at(-1)).toMatchObject({ client_ip: HERE, protocol: 'HTTPS' })
    expect(signIns.at(-1)).not.toHaveProperty('client_port')
    expect(log).not.toContain('192.0.2.66')
    for (const address of [BALANCER, HTTP_PROXY]) expect(log).not.toContain(`"client_ip":"${address}"`)
  })
})
