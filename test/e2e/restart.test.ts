/** The restart of a killed broker, without the files of its listeners, and a takeover. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import ssh2 from 'ssh2'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openVncTarget } from '../../proxies/vnc/back.ts'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import { ADMIN_PASSWORD, type Broker, callApi, startBroker } from '../peers/broker.ts'
import { freePort } from '../peers/process.ts'
import { trustingGate, vncSession } from '../proxies/vnc/sessions.ts'
import { ticketFor } from './tickets.ts'

const run = promisify(execFile)
const SLOW = 120_000
const PASSWORD = 'known at the first door'
const TARGET = 'root@local:srv1:vnc'

let folder: string
let dataFolder: string
let broker: Broker

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-restart-'))
  dataFolder = join(folder, 'data')
  broker = await startBroker({ dataFolder, vnc: {} })
  for (const user_name of ['ops1', 'ops2', 'ops3']) {
    await broker.must('POST', '/users', { user_name, password: PASSWORD, profile: 'user' })
  }
  await broker.must('POST', '/usergroups', { group_name: 'operators', users: ['ops1'] })
  await broker.must('POST', '/devices', { device_name: 'srv1', host: '127.0.0.1' })
  const service = { service_name: 'vnc', protocol: 'VNC', port: await freePort() }
  await broker.must('POST', '/devices/srv1/services', service)
  await broker.must('POST', '/accounts', {
    account_name: 'root',
    device: 'srv1',
    domain: 'local',
    credentials: [{ type: 'password', password: 'screen' }],
  })
  await broker.must('POST', '/targetgroups', { group_name: 'desktops', session: { accounts: [TARGET] } })
  await broker.must('POST', '/authorizations', {
    user_group: 'operators',
    target_group: 'desktops',
    authorize_sessions: true,
    subprotocols: ['VNC'],
  })
}, SLOW)
afterEach(async () => {
  await broker.stop()
  rmSync(folder, { recursive: true, force: true })
})

const certificate = () => readFileSync(join(dataFolder, 'tls', 'cert.pem'))

const call = (method: string, path: string, headers: Record<string, string>, body?: unknown) =>
  callApi<Record<string, unknown>>(broker.ports.https, certificate(), method, path, body, headers)

async function cookieOf(user: string, password: string): Promise<string> {
  const { headers, status } = await call('POST', '/session', {}, { user, password })
  expect(status).toBe(200)
  return [headers['set-cookie'] ?? []].flat()[0]!.split(';')[0]!
}

/** Returns the status of a sign-in at the API from an address of the loopback network. */
async function signIn(user: string, password: string, from = '127.0.0.1'): Promise<string> {
  const { stdout } = await run('curl', [
    ...['-sS', '-o', '/dev/null', '-w', '%{http_code}', '--interface', from, '--insecure'],
    ...['-H', 'Content-Type: application/json', '-d', JSON.stringify({ user, password })],
    `https://127.0.0.1:${broker.ports.https}/api/session`,
  ])
  return stdout
}

/** Returns 'in', or the viewer's error. */
async function byTicket(password: string): Promise<string> {
  const session = vncSession({ port: broker.ports.vnc!, login: '', password, types: ['vncauth'] })
  const options = { gate: trustingGate(), signal: AbortSignal.timeout(20_000), isShared: true }
  try {
    const { stream } = await openVncTarget(session, options)
    stream.destroy()
    return 'in'
  } catch (error) {
    return (error as Error).message
  }
}

/** Returns the host key of that type that the SSH front shows. */
function hostKey(algorithm: 'ssh-ed25519' | 'ecdsa-sha2-nistp256' | 'rsa-sha2-512'): Promise<string> {
  const client = new ssh2.Client()
  return new Promise((resolve, reject) => {
    client.on('error', reject)
    client.connect({
      host: '127.0.0.1',
      port: broker.ports.ssh,
      username: 'nobody',
      algorithms: { serverHostKey: [algorithm] },
      hostVerifier: (key: Buffer) => {
        resolve(key.toString('base64'))
        client.destroy()
        return false
      },
    })
  })
}

const hostKeys = async () => [
  await hostKey('ssh-ed25519'),
  await hostKey('ecdsa-sha2-nistp256'),
  await hostKey('rsa-sha2-512'),
]

test(
  'who has signed in stays so, who is locked out too, and everything made is made once',
  async () => {
    const cookie = await cookieOf('admin', ADMIN_PASSWORD)
    const left = await cookieOf('ops3', PASSWORD)
    expect((await call('DELETE', '/session', { cookie: left })).status).toBe(204)
    const unused = await ticketFor(broker, { user: 'ops1', password: PASSWORD }, TARGET)
    const used = await ticketFor(broker, { user: 'ops1', password: PASSWORD }, TARGET)
    expect(await byTicket(used.password)).toBe('in')
    for (let n = 0; n < LOCKOUT_LIMITS.pairFailures; n++) expect(await signIn('ops2', 'wrong')).toBe('401')
    for (let n = 1; n < LOCKOUT_LIMITS.pairFailures; n++) expect(await signIn('ops3', 'wrong')).toBe('401')
    const once = { cookie, 'idempotency-key': 'once' }
    const made = await call('POST', '/devices', once, { device_name: 'once', host: 'h' })
    expect(made.status).toBe(201)
    const [keys, shown] = [await hostKeys(), certificate().toString()]

    await broker.kill()
    // A whole loss of the files: only the database and its key are left.
    for (const name of ['ssh', 'tls']) rmSync(join(dataFolder, name), { recursive: true })
    broker = await startBroker({ dataFolder, ports: broker.ports, vnc: {} })

    expect(certificate().toString()).toBe(shown)
    expect(await hostKeys()).toEqual(keys)
    expect(await call('GET', '/session', { cookie })).toMatchObject({ status: 200, body: { user: 'admin' } })
    expect((await call('GET', '/session', { cookie: left })).status).toBe(401)
    const again = await call('POST', '/devices', once, { device_name: 'once', host: 'h' })
    expect(again).toMatchObject({ status: 201, body: made.body, headers: { 'idempotency-replayed': 'true' } })
    expect(await signIn('ops2', PASSWORD)).toBe('401')
    expect(await signIn('ops2', PASSWORD, '127.0.0.2')).toBe('200')
    // The tenth failure, of which nine were before the restart.
    expect(await signIn('ops3', 'wrong')).toBe('401')
    expect(await signIn('ops3', PASSWORD)).toBe('401')
    expect(await byTicket(used.password)).not.toBe('in')
    expect(await byTicket(unused.password)).toBe('in')
    expect(await byTicket(unused.password)).not.toBe('in')
  },
  SLOW,
)

test(
  'a newer broker that takes over knows them too',
  async () => {
    for (let n = 0; n < LOCKOUT_LIMITS.pairFailures; n++) expect(await signIn('ops2', 'wrong')).toBe('401')
    const cookie = await cookieOf('ops1', PASSWORD)
    const { password } = await ticketFor(broker, { user: 'ops1', password: PASSWORD }, TARGET)
    const old = broker
    broker = await startBroker({ dataFolder, ports: old.ports, vnc: {}, flags: ['--takeover'] })
    expect(await old.ended).toBe(0)
    expect((await call('GET', '/session', { cookie })).status).toBe(200)
    expect(await signIn('ops2', PASSWORD)).toBe('401')
    expect(await byTicket(password)).toBe('in')
  },
  SLOW,
)
