/**
 * A bastion with secrets in every input, in correct places and by mistake, with its log at the most verbose
 * level. It keeps the API's responses.
 */
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { expect } from 'vitest'
import { Secret } from '../../src/model/secret.ts'
import { formatMasterKey } from '../../src/vault/master-key.ts'
import type { SessionRow } from '../e2e/bastion.ts'
import { ASKED_PASSWORD, answering, type LogonBastion, startLogonBastion } from '../e2e/logons.ts'
import { sallyport } from '../e2e/recorded.ts'
import { keytabOf } from '../kerberos/keytab.ts'
import { ADMIN_PASSWORD } from '../peers/broker.ts'
import { generateKey } from '../peers/keys.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { freePort, type RunResult, run } from '../peers/process.ts'
import { findProgram } from '../peers/program.ts'
import { plinkTerminal } from '../peers/putty.ts'
import { type Rsyslog, startRsyslog } from '../peers/rsyslog.ts'
import { type Snmptrapd, startSnmptrapd } from '../peers/snmptrapd.ts'
import type { Terminal } from '../peers/terminal.ts'
import { createSystemUser, type SystemUser } from '../peers/users.ts'
import { certificateFiles } from '../peers/vnc/certificate.ts'
import { Canaries, seedOf } from './canaries.ts'
import { type Answer, sendAsIs, signInAs } from './requests.ts'
import { noSession } from './setting.ts'

export interface Planted {
  bastion: LogonBastion
  canaries: Canaries
  rsyslog: Rsyslog
  trapd: Snmptrapd
  /** The broker's folder for temporary files. */
  temporary: string
  /** File in which a video's encoder leaves its environment. */
  environment: string
  /** The sessions in which secrets were typed or sent. */
  sessions: SessionRow[]
  /** Runs `sallyport ARGS`, with the variables that the configuration names. */
  command(args: string[], configFile?: string): Promise<RunResult>
  /** Returns all of the API's responses, except those to requests for a secret. */
  answers(): string
  /** Sends a request as admin and keeps the response; a text body is sent unchanged. */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<number>
  stop(): Promise<void>
}

/** Starts it and plants. `stop` removes all except the remains of the broker's own `stop`. */
export async function startPlanted(): Promise<Planted> {
  const canaries = new Canaries()
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-canaries-'))
  const [temporary, environment] = [join(folder, 'tmp'), join(folder, 'environment')]
  mkdirSync(temporary)
  const encoder = join(folder, 'ffmpeg')
  const script = `#!/bin/sh\n/usr/bin/env > ${environment}\nexec ${findProgram('ffmpeg')} "$@"\n`
  writeFileSync(encoder, script)
  chmodSync(encoder, 0o755)
  const [rsyslog, trapd, other] = await Promise.all([startRsyslog(), startSnmptrapd(), createSystemUser()])

  canaries.add('the password of admin, from the environment', ADMIN_PASSWORD)
  canaries.add('the password of a user who is asked', ASKED_PASSWORD)
  const masterKey = randomBytes(32)
  canaries.add('the master key, from the environment', masterKey)
  const secretVariables = {
    CANARY_MASTER_KEY: formatMasterKey(Secret.of(masterKey)).revealText(),
    CANARY_SNMP: canaries.plain('a password of SNMP, from the environment'),
  }
  const trap = { host: '127.0.0.1', port: trapd.port }
  const bastion = await startLogonBastion({
    credential: 'password',
    broker: {
      config: {
        log: { level: 'trace', file: '-' },
        master_key: { env: 'CANARY_MASTER_KEY' },
        syslog: [{ host: '127.0.0.1', port: rsyslog.port, transport: 'tcp' }],
        snmp: {
          traps: [
            { ...trap, version: '2c', community: trapd.community },
            // The password is not the receiver's own: the error message is checked, too.
            {
              ...trap,
              version: 3,
              inform: true,
              user: trapd.user.name,
              auth_password: { env: 'CANARY_SNMP' },
              priv_password: canaries.plain('a password of SNMP, in the configuration'),
            },
          ],
        },
      },
      env: {
        ...secretVariables,
        TMPDIR: temporary,
        PATH: `${folder}${delimiter}${process.env['PATH']}`,
      },
    },
  })
  canaries.add('the password of an account, injected, mapped and asked for', bastion.account.password)
  canaries.add('a password typed at the prompt of su', other.password)

  const send = (method: string, path: string, headers: Record<string, string>, body?: string) =>
    sendAsIs(bastion.broker, method, `/api/v3.12${path}`, headers, body)
  const signIn = async (user: string, password: string): Promise<string> => {
    const cookie = await signInAs(bastion.broker, user, password)
    canaries.add('cookies', cookie.split('=')[1] ?? '')
    return cookie
  }
  const cookie = await signIn('admin', ADMIN_PASSWORD)
  let answers = ''
  const ask: Planted['ask'] = async (method, path, body, headers = {}) => {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const answer = await send(method, path, { cookie, ...headers }, text)
    answers += `${JSON.stringify(answer.headers)}\n${answer.body}\n`
    return answer.status
  }

  await plantInObjects({ bastion, canaries, ask, send, signIn, cookie })
  await plantInServers({ bastion, canaries, ask, send, cookie })
  await plantByMistake({ bastion, canaries, ask, send, cookie })
  await plantInSessions(bastion, canaries, other)
  await noSession(bastion)
  const sessions = await bastion.closedSessions()
  return {
    bastion,
    canaries,
    rsyslog,
    trapd,
    temporary,
    environment,
    sessions,
    command: (args, configFile = bastion.broker.configFile) =>
      sallyport({ configFile }, args, { env: { ...process.env, ...secretVariables } }),
    answers: () => answers,
    ask,
    stop: async () => {
      await bastion.stop()
      await rsyslog.stop()
      await trapd.stop()
      await other.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Planting {
  bastion: LogonBastion
  canaries: Canaries
  ask: Planted['ask']
  /** The cookie of admin. */
  cookie: string
  send(method: string, path: string, headers: Record<string, string>, body?: string): Promise<Answer>
}

/** Plants secrets in their correct places, and uses them. */
async function plantInObjects({
  bastion,
  canaries,
  ask,
  send,
  signIn,
  cookie,
}: Planting & { signIn(user: string, password: string): Promise<string> }): Promise<void> {
  const { account, broker, home, sshd } = bastion
  const password = canaries.awkward('the password of a user')
  expect(await ask('PUT', '/users/ops1', { password })).toBe(200)
  const own = await signIn('ops1', password)
  for (const method of ['password', 'keyboard-interactive'] as const)
    expect((await ssh(home, bastion.login({ password, method }), ['true'])).code).toBe(0)

  const key = await generateKey(home.folder)
  canaries.add('the private key of an account', seedOf(key.privateKey, key.publicKey))
  const passphrase = canaries.awkward('the passphrase of a private key')
  await run(findProgram('ssh-keygen'), ['-q', '-p', '-P', '', '-N', passphrase, '-f', key.path])
  sshd.authorize(account.name, [key.publicKey])
  const credentials = [
    { type: 'ssh_key', private_key: readFileSync(key.path, 'utf8'), passphrase },
    { type: 'password', password: canaries.awkward('a secret that is checked out') },
  ]
  const keyed = { account_name: 'keyed', account_login: account.name, device: 'srv1', credentials }
  expect(await ask('POST', '/accounts', keyed)).toBe(201)
  const targets = { session: { accounts: ['keyed@local:srv1:ssh'] } }
  expect(await ask('POST', '/targetgroups', { group_name: 'keyed', ...targets })).toBe(201)
  const grant = { user_group: 'ops1-srv1-users', target_group: 'keyed', subprotocols: ['SSH_REMOTE_COMMAND'] }
  const both = { authorize_sessions: true, authorize_password_retrieval: true }
  expect(await ask('POST', '/authorizations', { ...grant, ...both })).toBe(201)
  const done = await ssh(home, bastion.login({ user: 'ops1+keyed@srv1', password }), ['echo by key'])
  expect(done).toMatchObject({ code: 0, stdout: 'by key\n' })
  const out = await send('POST', '/accounts/keyed@local@srv1/checkout', { cookie: own })
  expect(out.status, out.body).toBe(200)
  expect(canaries.in(out.body)).toEqual(
    expect.arrayContaining(['a secret that is checked out', 'the passphrase of a private key']),
  )

  const authority = await generateKey(home.folder)
  canaries.add('the private key of an authority', seedOf(authority.privateKey, authority.publicKey))
  const domain = { domain_name: 'corp', ca_private_key: authority.privateKey }
  expect(await ask('POST', '/domains', domain)).toBe(201)

  const made = await send(
    'POST',
    '/apikeys',
    { cookie },
    JSON.stringify({ key_name: 'machine', profile: 'product_administrator' }),
  )
  const { api_key: apiKey } = JSON.parse(made.body) as { api_key: string }
  canaries.add('an API key', apiKey.replace('sallyport_', ''))
  expect((await send('GET', '/users', { 'x-auth-key': apiKey })).status).toBe(200)

  const table = `#user_name;profile;password\nops2;user;${canaries.plain('a password in a table')}\n`
  expect(await ask('POST', '/import/users', table, { 'content-type': 'text/csv' })).toBe(200)
  expect(await broker.must('GET', '/users/ops2')).toBeDefined()
}

/** Plants secrets of servers that judge sign-ins. All of them are away, which is said in many words. */
async function plantInServers({ canaries, ask, send }: Planting): Promise<void> {
  const port = await freePort()
  const files = await certificateFiles()
  const { cert, key } = files.pem
  files.remove()
  canaries.add('the key of a client of a directory', key.split('\n')[2]!)
  const keys = randomBytes(32)
  canaries.add('the key of a keytab', keys)
  const service = { realm: 'LAB', components: ['host', 'bastion'], version: 1, type: 18, key: keys }
  const password = canaries.awkward('a password for a server that is away')
  for (const [type, options] of [
    [
      'LDAP',
      {
        bind_password: canaries.awkward('the password of a bind'),
        client_key: key,
        ldap: { base_dn: 'dc=lab', bind_dn: 'cn=x,dc=lab', ca_certificates: cert, client_certificate: cert },
      },
    ],
    ['RADIUS', { shared_secret: canaries.plain('a shared secret of RADIUS') }],
    ['TACACS', { shared_secret: canaries.plain('a shared secret of TACACS+') }],
    [
      'KERBEROS',
      {
        keytab: keytabOf([service]).toString('base64'),
        kerberos: { realm: 'LAB', service_principal: 'host/bastion' },
      },
    ],
  ] as const) {
    const name = type.toLowerCase()
    const server = { authentication_name: name, type, host: '127.0.0.1', port, timeout: 1, ...options }
    expect(await ask('POST', '/externalauths', server), type).toBe(201)
    const domain = { domain_name: name, type, external_auths: [name] }
    expect(await ask('POST', '/authdomains', domain), type).toBe(201)
    const signIn = JSON.stringify({ user: `fritz@${name}`, password })
    expect((await send('POST', '/session', {}, signIn)).status, type).toBe(503)
    expect(await ask('POST', `/authdomains/${name}/test`, { user_name: 'fritz', password }), type).toBe(200)
  }
}

/** Plants secrets in wrong places: every request is refused. */
async function plantByMistake({ bastion, canaries, ask, send, cookie }: Planting): Promise<void> {
  const secret = canaries.plain('a secret in the wrong place of a request')
  const refused = async (
    status: number,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => expect(await ask(method, path, body, headers), `${method} ${path}`).toBe(status)
  const csv = { 'content-type': 'text/csv' }
  const locked = await generateKey(bastion.home.folder, { passphrase: 'another one' })
  await refused(401, 'POST', '/session', { user: 'ops1', password: secret })
  await refused(400, 'POST', '/session', { user: 'ops1', password: [secret] })
  await refused(400, 'POST', '/session', { user: 'ops1', passwort: secret })
  await refused(400, 'POST', '/session', `{"user":"ops1","password":"${secret}`)
  await refused(400, 'PUT', '/users/ops1', { password: { value: secret } })
  await refused(400, 'PUT', '/users/ops1', { password: secret.repeat(60) })
  await refused(400, 'PUT', '/users/ops1', { password: `${secret}\n` })
  await refused(400, 'PUT', '/users/ops1', { ssh_public_keys: [secret] })
  for (const credential of [
    { type: 'ssh_key', private_key: `-----BEGIN OPENSSH PRIVATE KEY-----\n${secret}\n` },
    { type: 'ssh_key', private_key: locked.privateKey, passphrase: secret },
    { type: 'password', password: `${secret}\0` },
    { type: 'password', passphrase: secret },
    { type: secret, password: secret },
  ])
    await refused(400, 'PUT', `/accounts/keyed@local@srv1`, { credentials: [credential] })
  await refused(400, 'POST', '/domains', { domain_name: 'other', ca_private_key: secret })
  await refused(400, 'GET', `/users?password=${secret}`)
  await refused(400, 'GET', `/accounts?q=password=${secret}`)
  await refused(400, 'GET', `/accounts?q=${encodeURIComponent(`"${secret}`)}`)
  await refused(400, 'GET', `/accounts?limit=${secret}`)
  await refused(400, 'POST', '/import/users', `#user_name;password;x\nops3;${secret}\n`, csv)
  await refused(400, 'POST', '/import/users', `#user_name;profile;password\nops3;nobody;${secret}\n`, csv)
  await refused(400, 'POST', '/import/users', `#user_name;profile;password\nops3;user;a;${secret}\n`, csv)
  await refused(400, 'POST', '/import/users', `#user_name;profile;password\nops3;user;"a"${secret}\n`, csv)
  await refused(400, 'POST', '/import/users', `#user_name;profile;password\nops3;user;${secret}\x01\n`, csv)
  await refused(415, 'POST', '/users', secret, { 'content-type': `text/${secret}` })
  // These two errors repeat the invalid field's name to the sender.
  for (const parameter of ['fields', 'sort'])
    expect((await send('GET', `/accounts?${parameter}=${secret}`, { cookie })).status).toBe(400)
  const odd: Record<string, string>[] = [
    { 'x-auth-key': secret },
    { 'x-auth-key': secret, 'x-auth-user': 'ops1' },
    { authorization: `Bearer ${secret}` },
    { cookie: `sallyport_session=${secret}` },
  ]
  for (const headers of odd) await refused(401, 'GET', '/users', undefined, { cookie: '', ...headers })
  await refused(404, 'GET', `/nothing/${secret}?password=${secret}`)
  const odder = { cookie: `sallyport_session=${secret}` }
  expect((await send('POST', '/session', odder, JSON.stringify({ user: 'x', password: 'y' }))).status).toBe(
    401,
  )
}

/** Users plant secrets in their sessions. */
async function plantInSessions(bastion: LogonBastion, canaries: Canaries, other: SystemUser): Promise<void> {
  const { account, home } = bastion
  const { password: _, ...login } = bastion.login({ identity: bastion.key.path })
  const wrong = canaries.awkward('a wrong password at the bastion')
  expect((await ssh(home, bastion.login({ password: wrong }), ['true'])).code).toBe(255)
  const malformed = canaries.plain('a password behind the name in a login string that is none')
  expect((await ssh(home, bastion.login({ user: `ops1+root@srv1@@${malformed}` }), ['true'])).code).toBe(255)

  const variables = [`SetEnv=API_TOKEN=${canaries.plain('a variable')}`]
  expect((await ssh(home, { ...login, options: variables }, ['true'])).code).toBe(0)
  const file = canaries.plain('the content of a file')
  const sent = await ssh(home, login, ['cat > sent; wc -c < sent; rm sent'], { input: file })
  expect(sent.stdout.trim()).toBe(String(file.length))

  const typed = canaries.plain('a password typed without echo')
  for (const terminal of [
    sshTerminal(home, login),
    await plinkTerminal(home, { ...login, hostFingerprint: await fingerprintOf(bastion) }),
  ]) {
    await terminal.expect(account.prompt)
    await typeSecretly(
      terminal,
      `read -s -p 'secret: ' x; echo got $(printf %s $x | wc -c)`,
      'secret: ',
      typed,
    )
    await terminal.expect(`got ${typed.length}`)
    await terminal.expect(account.prompt)
    await typeSecretly(terminal, `su ${other.name} -c 'id -un'`, 'assword: ', other.password)
    await terminal.expect(`\n${other.name}\r\n`)
    await terminal.expect(account.prompt)
    terminal.send('exit\r')
    await terminal.exit()
  }

  const asked = answering(home, { login: account.name, password: account.password })
  expect((await ssh(asked, bastion.asked(), ['true'])).code).toBe(0)
  expect((await ssh(home, bastion.mapped(), ['true'])).code).toBe(0)
  const refused = canaries.plain('a wrong password at a target')
  const badly = answering(home, { login: account.name, password: refused })
  expect((await ssh(badly, bastion.asked(), ['true'])).code).toBe(255)
}

async function typeSecretly(terminal: Terminal, line: string, prompt: string, secret: string): Promise<void> {
  terminal.send(`${line}\r`)
  await terminal.expect(new RegExp(`${prompt}$`))
  // Typed by hand: one key after the other.
  for (const key of `${secret}\r`) terminal.send(key)
}

async function fingerprintOf({ broker }: LogonBastion): Promise<string> {
  const file = join(broker.dataFolder, 'ssh', 'ssh_host_ed25519_key.pub')
  const shown = await run(findProgram('ssh-keygen'), ['-l', '-f', file])
  return shown.stdout.split(' ')[1] ?? ''
}
