/** Provisioning from end to end over real HTTPS, with curl as the client. */
import { execFile, execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ADMIN, type Harness, startHarness } from './harness.ts'

const run = promisify(execFile)
const PUBLIC_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti ops1@laptop'
const PASSWORD = 'canary-password-51c7'
const PRIVATE_KEY = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
}).privateKey

let h: Harness
let base: string
let port: number
const seen: string[] = []

beforeAll(async () => {
  h = await startHarness()
  writeFileSync(h.certPath, h.cert)
  await h.api.listen({ host: '127.0.0.1', port: 0 })
  const address = h.api.server.address()
  port = typeof address === 'object' && address ? address.port : 0
  base = `https://127.0.0.1:${port}`
})
afterAll(() => h.close())

interface CurlAnswer {
  status: number
  headers: string
  // biome-ignore lint/suspicious/noExplicitAny: tests check the fields that they read
  body: any
}

async function curl(...args: string[]): Promise<CurlAnswer> {
  const { stdout } = await run('curl', ['-sS', '-i', '--http1.1', '--cacert', h.certPath, ...args], {
    maxBuffer: 10_000_000,
  })
  const end = stdout.indexOf('\r\n\r\n')
  const [head, text] = [stdout.slice(0, end), stdout.slice(end + 4)]
  const isJson = /content-type: application\/json/i.test(head) && text !== ''
  return { status: Number(head.split(' ')[1]), headers: head, body: isJson ? JSON.parse(text) : text }
}

/** Sends a request under /api/v3.12; keeps the answers, to search them for secrets. */
function client(...auth: string[]) {
  return async (method: string, path: string, body?: unknown): Promise<CurlAnswer> => {
    const data =
      body === undefined ? [] : ['-H', 'Content-Type: application/json', '-d', JSON.stringify(body)]
    const answer = await curl('-X', method, ...auth, ...data, `${base}/api/v3.12${path}`)
    if (!path.endsWith('/checkout')) seen.push(answer.headers, JSON.stringify(answer.body))
    return answer
  }
}

const objects: [path: string, key: string, body: Record<string, unknown>][] = [
  [
    '/users',
    'ops1',
    {
      user_name: 'ops1',
      display_name: 'Ops One',
      email: 'ops1@example.com',
      profile: 'user',
      user_auths: ['local_password', 'local_sshkey'],
      password: PASSWORD,
      ssh_public_keys: [PUBLIC_KEY],
    },
  ],
  [
    '/usergroups',
    'linux-admins',
    { group_name: 'linux-admins', description: 'who runs linux', users: ['ops1'] },
  ],
  ['/devices', 'srv1', { device_name: 'srv1', host: '192.0.2.10', description: 'web server' }],
  [
    '/devices/srv1/services',
    'ssh',
    {
      service_name: 'ssh',
      protocol: 'SSH',
      port: 2222,
      subprotocols: ['SSH_SHELL', 'SFTP_SESSION'],
      host_key_policy: 'pinned',
    },
  ],
  ['/devices/srv1/localdomains', 'local', { domain_name: 'local', description: 'own accounts' }],
  ['/domains', 'corp.example', { domain_name: 'corp.example', description: 'global accounts' }],
  [
    '/accounts',
    'root@local',
    {
      account_name: 'root',
      device: 'srv1',
      domain: 'local',
      credentials: [{ type: 'password', password: PASSWORD }],
    },
  ],
  [
    '/accounts',
    'svc@corp.example',
    {
      account_name: 'svc',
      account_login: 'svc-login',
      domain: 'corp.example',
      credentials: [{ type: 'ssh_key', private_key: PRIVATE_KEY }],
    },
  ],
  [
    '/targetgroups',
    'linux-servers',
    {
      group_name: 'linux-servers',
      description: 'all of them',
      session: { accounts: ['root@local:srv1:ssh', 'svc@corp.example:srv1:ssh'] },
      password_retrieval: { accounts: ['svc@corp.example'] },
    },
  ],
  [
    '/authorizations',
    'linux-admins:linux-servers',
    {
      user_group: 'linux-admins',
      target_group: 'linux-servers',
      authorize_sessions: true,
      authorize_password_retrieval: true,
      subprotocols: ['SSH_SHELL', 'SSH_SCP_UP'],
      description: 'ticket 17',
    },
  ],
]
const SECRET_FIELDS = ['password', 'credentials']

it('an administrator creates everything, reads it back, and a user checks a secret out and in', async () => {
  const signedIn = await curl(
    '-H',
    'Content-Type: application/json',
    '-d',
    JSON.stringify(ADMIN),
    `${base}/api/v3.12/session`,
  )
  expect(signedIn.status).toBe(200)
  const cookie = /set-cookie: (sallyport_session=[^;]+)/i.exec(signedIn.headers)?.[1] ?? ''
  const admin = client('-H', `Cookie: ${cookie}`)

  for (const [path, key, body] of objects) {
    const created = await admin('POST', path, body)
    expect(created.status, JSON.stringify(created.body)).toBe(201)
    // The URL has the device's id, so that it stays valid when the device is renamed.
    const location = new RegExp(`^/api/v3.12${path.replace('srv1', '[0-9A-Z]{26}')}/${created.body.id}$`)
    expect(created.body.url).toMatch(location)
    expect(created.headers).toContain(`location: ${created.body.url}`)
    expect(created.body.id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/)
    const given = Object.entries(body).filter(([field]) => !SECRET_FIELDS.includes(field))
    expect(created.body).toMatchObject(Object.fromEntries(given))

    const byName = await admin('GET', `${path}/${encodeURIComponent(key)}`)
    expect(byName.body).toEqual(created.body)
    expect((await admin('GET', `${path}/${created.body.id}`)).body).toEqual(created.body)
    expect((await admin('GET', path)).body).toContainEqual(created.body)
    const second = await admin('POST', path, body)
    expect([second.status, second.body.error]).toEqual([409, 'duplicate'])
    const same = await admin('PUT', `${path}/${encodeURIComponent(key)}`, Object.fromEntries(given))
    expect([same.status, same.body]).toEqual([200, created.body])
  }

  const key = await admin('POST', '/apikeys', { key_name: 'pipeline', profile: 'user' })
  const pipeline = client('-H', `X-Auth-Key: ${key.body.api_key}`, '-H', 'X-Auth-User: ops1')
  expect((await pipeline('GET', '/users')).status).toBe(403)
  const targets = await pipeline('GET', '/targets')
  expect(targets.body.map((one: { target: string }) => one.target)).toEqual([
    'root@local:srv1:ssh',
    'svc@corp.example:srv1:ssh',
  ])
  // Only those of the authorization's rights that the service lists.
  expect(targets.body[0].subprotocols).toEqual(['SSH_SHELL'])
  const rights = await admin('GET', '/sessionrights?user=ops1')
  expect(rights.body[0]).toMatchObject({
    user: 'ops1',
    authorization: 'linux-admins:linux-servers',
    device: 'srv1',
  })

  const out = await pipeline('POST', '/accounts/root@local/checkout')
  expect(out.body).toMatchObject({ login: 'root', password: PASSWORD })
  const withKey = await pipeline('POST', '/accounts/svc@corp.example/checkout')
  expect(withKey.body).toMatchObject({ login: 'svc-login', private_key: PRIVATE_KEY })
  expect(withKey.body).not.toHaveProperty('password')
  for (const [ref, one] of [
    ['root@local', out],
    ['svc@corp.example', withKey],
  ] as const) {
    expect(
      (await pipeline('POST', `/accounts/${ref}/checkin`, { checkout_id: one.body.checkout_id })).status,
    ).toBe(204)
  }

  // Renames have an effect everywhere.
  await admin('PUT', '/devices/srv1', { device_name: 'web1' })
  expect((await admin('GET', '/targetgroups/linux-servers')).body.session.accounts).toContain(
    'root@local:web1:ssh',
  )
  await admin('PUT', '/devices/web1', { device_name: 'srv1' })

  for (const [path, name] of objects.toReversed()) {
    expect((await admin('DELETE', `${path}/${encodeURIComponent(name)}`)).status, `${path}/${name}`).toBe(204)
    expect((await admin('GET', `${path}/${encodeURIComponent(name)}`)).status).toBe(404)
  }
  expect((await admin('DELETE', '/session')).status).toBe(204)
  expect((await admin('GET', '/users')).status).toBe(401)

  const everything = [...seen, JSON.stringify(await h.events()), h.log.join('')].join('\n')
  expect(everything).not.toContain(PASSWORD)
  expect(everything).not.toContain(PRIVATE_KEY.split('\n')[3])
  const codes = (await h.events()).map(({ event, object_type }) => `${event} ${object_type ?? ''}`)
  for (const type of [
    'user',
    'usergroup',
    'device',
    'service',
    'localdomain',
    'domain',
    'account',
    'targetgroup',
    'authorization',
  ]) {
    expect(codes).toContain(`object.create ${type}`)
    expect(codes).toContain(`object.delete ${type}`)
  }
})

describe('on the wire', () => {
  it.each([
    '/api/v3.12/../users',
    '/api/v3.12/users/../users',
    '/api/./users',
    '//api/users',
    '/api/users/..',
    '/..',
    '/api/v3.12/%2e%2e/users',
  ])('the path %s leads nowhere', async (path) => {
    const answer = await curl('--path-as-is', `${base}${path}`)
    expect([401, 404]).toContain(answer.status)
    expect(answer.headers).not.toMatch(/^location:/im)
  })

  it('TLS 1.1 and ciphers without forward secrecy get no connection', async () => {
    const attempt = (options: object) =>
      new Promise<string>((resolve) => {
        const socket: TLSSocket = connectTls({ host: '127.0.0.1', port, ca: h.cert, ...options }, () => {
          resolve(`connected by ${socket.getProtocol()}`)
          socket.destroy()
        })
        socket.on('error', (error) => resolve(error.message))
      })
    expect(await attempt({})).toBe('connected by TLSv1.3')
    expect(await attempt({ maxVersion: 'TLSv1.2' })).toBe('connected by TLSv1.2')
    expect(
      await attempt({ maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'ALL:@SECLEVEL=0' }),
    ).not.toContain('connected')
    expect(
      await attempt({ maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA:AES256-SHA:AES128-GCM-SHA256' }),
    ).not.toContain('connected')
  })

  it('what is no HTTP, or has too long headers, is answered with the catalogue', async () => {
    expect(await rawly('NONSENSE\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 [\s\S]*"error":"malformed_request"/)
    expect(await rawly(`GET /api/version HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 [\s\S]*"error":"headers_too_large"/,
    )
  })

  it('a request that does not come to its end is cut', async () => {
    h.api.server.requestTimeout = 300
    const sent =
      'POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{'
    expect(await rawly(sent)).toMatch(/^HTTP\/1\.1 408 [\s\S]*"error":"request_timeout"/)
    h.api.server.requestTimeout = 30_000
  }, 300_000)

  function rawly(text: string): Promise<string> {
    return new Promise((resolve, reject) => {
      let answer = ''
      const socket = connectTls({ host: '127.0.0.1', port, ca: h.cert }, () => socket.write(text))
      socket.on('data', (chunk) => {
        answer += chunk.toString()
      })
      socket.on('end', () => resolve(answer))
      socket.on('error', reject)
    })
  }
})

it('curl is the client', () => {
  expect(execFileSync('curl', ['--version']).toString()).toMatch(/^curl /)
})
