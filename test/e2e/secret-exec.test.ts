/** Secrets for the lifetime of a program: `sallyport secret exec`, `checkout` and `checkin` against a broker. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:https'
import { type AddressInfo, createServer as listener } from 'node:net'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adapt, walkOf } from '../docs/walks.ts'
import { opensshKey } from '../identity/keys.ts'
import { type Broker, sallyportCommand, startBroker } from '../peers/broker.ts'
import { run } from '../peers/process.ts'
import { openTerminal } from '../peers/terminal.ts'
import { until } from '../until.ts'
import { eventsIn } from './bastion.ts'

const ACCOUNT = 'deploy@local@db1'
const PASSWORD = 'pa$$ "word" 7'
const folder = mkdtempSync(join(tmpdir(), 'sallyport-job-'))
const key = opensshKey('ed25519')
let broker: Broker
let keyFile: string

beforeAll(async () => {
  broker = await startBroker()
  const made = (path: string, body: object) => broker.must<{ api_key: string }>('POST', path, body)
  const account = ['local_password']
  await made('/users', { user_name: 'ci', profile: 'user', user_auths: account, password: 'not for jobs 1' })
  await made('/devices', { device_name: 'db1', host: '127.0.0.1' })
  await made('/checkoutpolicies', { policy_name: 'jobs', enable_lock: true, duration: 60 })
  const credentials = [
    { type: 'password', password: PASSWORD },
    { type: 'ssh_key', private_key: key.file },
  ]
  const place = { device: 'db1', checkout_policy: 'jobs' }
  await made('/accounts', { account_name: 'deploy', ...place, credentials })
  await made('/accounts', { account_name: 'bare', ...place })
  await made('/usergroups', { group_name: 'jobs', users: ['ci'] })
  const accounts = [ACCOUNT, 'bare@local@db1']
  await made('/targetgroups', { group_name: 'jobs', password_retrieval: { accounts } })
  const pair = { user_group: 'jobs', target_group: 'jobs' }
  await made('/authorizations', { ...pair, authorize_password_retrieval: true })
  keyFile = join(folder, 'key')
  const { api_key } = await made('/apikeys', { key_name: 'ci', profile: 'user', users: ['ci'] })
  writeFileSync(keyFile, `${api_key}\n`, { mode: 0o600 })
})
afterAll(async () => {
  await broker?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const environment = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  ...process.env,
  SALLYPORT_URL: `https://127.0.0.1:${broker.ports.https}`,
  SALLYPORT_CA: join(broker.dataFolder, 'tls', 'cert.pem'),
  SALLYPORT_API_KEY_FILE: keyFile,
  SALLYPORT_USER: 'ci',
  ...more,
})
const sallyport = (args: string[], more?: NodeJS.ProcessEnv) =>
  run(...sallyportCommand(args), { env: environment(more), cwd: folder })
const exec = (options: string[], script: string, more?: NodeJS.ProcessEnv) =>
  sallyport(['secret', 'exec', ACCOUNT, ...options, '--', 'sh', '-c', script], more)
const current = () => broker.must<{ id: string }[]>('GET', '/checkouts?status=current')

test('the page for scripts works as it stands there', async () => {
  const [block] = walkOf('docs/secrets.md')
  const [program, args] = sallyportCommand([])
  const quoted = [program, ...args].map((word) => `'${word}'`).join(' ')
  const script = adapt(block!.text, {
    'https://bastion.example.com': `https://127.0.0.1:${broker.ports.https}`,
    '/etc/ci/bastion.pem': join(broker.dataFolder, 'tls', 'cert.pem'),
    '/etc/ci/bastion.key': keyFile,
  })
  const done = await run('sh', ['-euc', `sallyport() { ${quoted} "$@"; }\n${script}`], { cwd: folder })
  expect([done.code, done.stdout], done.stderr).toEqual([0, `deploy: ${PASSWORD.length} characters\n`])
  const events = eventsIn(broker.log()).filter(({ event }) => String(event).startsWith('checkout.'))
  expect(events.slice(-2)).toMatchObject([
    { event: 'checkout.out', user: 'ci', api_key: 'ci', reason: 'nightly dump', duration: 60_000 * 5 },
    { event: 'checkout.in', user: 'ci', account: 'deploy' },
  ])
})

test('the secret in files, which are gone afterwards; the exit code; no API key for the program', async () => {
  const { SALLYPORT_API_KEY_FILE: _file, ...env } = environment()
  const show = 'cat "$P"; echo; echo "$P $K"; ssh-keygen -y -f "$K"; env | grep -c SALLYPORT_API_KEY=; exit 7'
  const args = ['secret', 'exec', ACCOUNT, '--file', 'P', '--ssh-key', 'K', '--', 'sh', '-c', show]
  const done = await run(...sallyportCommand(args), {
    env: { ...env, SALLYPORT_API_KEY: readFileSync(keyFile, 'utf8').trim() },
    cwd: folder,
  })
  const [password, paths, line, api] = done.stdout.split('\n')
  expect([done.code, password, api], done.stderr).toEqual([7, PASSWORD, '0'])
  expect(line).toBe(key.line)
  for (const path of paths!.split(' ')) expect(existsSync(path)).toBe(false)
  expect(await current()).toEqual([])
})

test.each([
  ['passed on', 'trap "echo caught; exit 5" TERM; echo ready; while :; do sleep 0.1; done', 5, 'caught'],
  ['that ends the program', 'echo ready; exec sleep 60', 128 + 15, ''],
])('a signal %s, and the secret is returned', async (_title, script, code, said) => {
  const [program, args] = sallyportCommand(['secret', 'exec', ACCOUNT, '--', 'sh', '-c', script])
  const child = spawn(program, args, { env: environment(), cwd: folder })
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  await until('the program', () => output.includes('ready') || undefined)
  expect(await current()).toHaveLength(1)
  child.kill('SIGTERM')
  expect([await ended, output]).toEqual([code, expect.stringContaining(said)])
  expect(await current()).toEqual([])
})

test('a checkout is not lost with the program that has it, nor with the broker', async () => {
  const [program, args] = sallyportCommand([
    'secret',
    'exec',
    ACCOUNT,
    '--',
    'sh',
    '-c',
    'echo $$; exec sleep 60',
  ])
  const child = spawn(program, args, { env: environment(), cwd: folder })
  const pid = await new Promise<number>((resolve) => child.stdout.on('data', (data) => resolve(Number(data))))
  const ended = new Promise((resolve) => child.on('exit', resolve))
  child.kill('SIGKILL')
  await ended
  process.kill(pid, 'SIGTERM')
  await broker.kill()
  const { dataFolder, ports } = broker
  broker = await startBroker({ dataFolder, ports })
  const locked = await exec([], 'true')
  expect([locked.code, locked.stderr]).toEqual([
    1,
    expect.stringMatching(/locks it until 20.*\(checked_out\)|\(checked_out\).*locks it until 20/),
  ])
  const [out] = await current()
  await broker.must('POST', `/checkouts/${out!.id}/checkin`, { comment: 'its job was killed' })
  expect((await exec([], 'true')).code).toBe(0)
})

test('checkout and checkin by hand', async () => {
  const out = await sallyport(['checkout', ACCOUNT, '--json', '--key-format', 'putty'])
  const { checkout_id: id, ...secret } = JSON.parse(out.stdout)
  expect(secret).toMatchObject({ login: 'deploy', password: PASSWORD })
  expect(secret.private_key).toContain('PuTTY-User-Key-File-3')
  expect((await sallyport(['checkin', ACCOUNT, id])).stdout).toBe('returned\n')
  const again = await sallyport(['checkin', ACCOUNT, id])
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('(not_found)')])
})

test('every failure has words, and nothing is left checked out', async () => {
  const bare = ['secret', 'exec', 'bare@local@db1', '--', 'true']
  const cases: [() => ReturnType<typeof sallyport>, number, string][] = [
    [() => exec([], 'true', { SALLYPORT_CA: '' }), 1, '--ca-file'],
    [() => exec([], 'true', { SALLYPORT_URL: 'https://127.0.0.1:9' }), 1, 'nothing listens there'],
    [
      () => exec([], 'true', { SALLYPORT_URL: 'http://u:canary@h' }),
      2,
      'expected --url to begin with https://',
    ],
    [() => exec([], 'true', { SALLYPORT_URL: 'https://u:canary@h' }), 2, 'without a name, a password'],
    [() => exec(['--env', '1x'], 'true'), 2, 'the name of a variable'],
    [() => exec(['--env', 'X', '--file', 'X'], 'true'), 2, 'expected one use of the variable X'],
    [() => sallyport(['secret', 'exec', ACCOUNT, 'true', '--env', 'X']), 2, '-- PROGRAM'],
    [() => sallyport(['secret', 'exec', ACCOUNT, '--', '/etc/passwd/x']), 126, 'ENOTDIR'],
    [() => exec(['--duration', '2h'], 'true'), 1, 'allows a checkout of 3600 seconds'],
    [() => exec([], 'true', { SALLYPORT_USER: 'nobody' }), 1, '('],
    [() => sallyport(bare), 1, '(no_secret)'],
    [
      () => sallyport(['secret', 'exec', ACCOUNT, '--', './no-such-program']),
      127,
      'there is no such program',
    ],
  ]
  for (const [attempt, code, words] of cases) {
    const done = await attempt()
    expect([done.code, done.stderr]).toEqual([code, expect.stringContaining(words)])
    expect(done.stdout + done.stderr).not.toContain('canary')
  }
  const { SALLYPORT_CA: _ca, ...env } = environment({ NODE_TLS_REJECT_UNAUTHORIZED: '0' })
  const untrusted = await run(...sallyportCommand(['checkout', ACCOUNT]), { env, cwd: folder })
  expect([untrusted.code, untrusted.stderr]).toEqual([
    1,
    expect.stringContaining('its certificate is self-signed'),
  ])
  expect(await current()).toEqual([])
})

test('the path of --url is no other host', async () => {
  const done = await exec([], 'true', { SALLYPORT_URL: `https://127.0.0.1:${broker.ports.https}//api/` })
  expect([done.code, done.stderr]).toEqual([0, ''])
})

test('a folder that cannot be removed is named; the secret is returned, and the exit code the program’s', async () => {
  const runtime = join(folder, 'runtime')
  mkdirSync(runtime)
  // Even root finds nothing behind a link to itself.
  const hide = `mv '${runtime}' '${runtime}.away'; ln -s runtime '${runtime}'; exit 9`
  const done = await exec(['--file', 'P'], hide, { XDG_RUNTIME_DIR: runtime })
  expect([done.code, done.stderr]).toEqual([9, expect.stringContaining(`${runtime}/sallyport-secret-`)])
  expect(done.stderr).toContain('could not be removed')
  expect(await current()).toEqual([])
})

test('a check-in that fails on the way is tried again; another server is found out', async () => {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] }],
  })
  const ca = join(folder, 'front.pem')
  writeFileSync(ca, cert)
  let failures: ('busy' | 'cut' | 'page')[] = []
  const front = createServer({ cert, key }, (asked, answer) => {
    const failure = asked.url?.endsWith('/checkin') || failures[0] === 'page' ? failures.shift() : undefined
    if (failure === 'busy') answer.writeHead(503).end()
    if (failure === 'page') answer.writeHead(200).end('<p>hello</p>')
    if (failure === 'busy' || failure === 'page') return
    const { method = '', url = '', headers } = asked
    const options = { port: broker.ports.https, host: '127.0.0.1', method, path: url, headers }
    const behind = request(
      { ...options, ca: readFileSync(join(broker.dataFolder, 'tls', 'cert.pem')) },
      (reply) => {
        if (failure === 'cut') {
          reply.resume().on('end', () => asked.socket.destroy())
          return
        }
        answer.writeHead(reply.statusCode ?? 0, reply.headers)
        reply.pipe(answer)
      },
    )
    asked.pipe(behind)
  })
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
  const url = `https://127.0.0.1:${(front.address() as AddressInfo).port}`
  const through = { SALLYPORT_URL: url, SALLYPORT_CA: ca }
  try {
    for (const [plan, code, words] of [
      [['busy'], 4, /^$/],
      [['cut'], 4, /^$/],
      [['page'], 1, /not one of a broker's API/],
      [['busy', 'busy', 'busy'], 4, /could not be returned, and expires at 20/],
    ] as const) {
      failures = [...plan]
      const done = await exec([], 'exit 4', through)
      expect([done.code, done.stderr], plan.join()).toEqual([code, expect.stringMatching(words)])
      const left = await current()
      expect(left).toHaveLength(plan.length === 3 ? 1 : 0)
      for (const { id } of left) await broker.must('POST', `/checkouts/${id}/checkin`, { comment: 'lost' })
    }
  } finally {
    front.closeAllConnections()
    front.close()
  }
})

test('a key of the terminal reaches the program once, wherever stdin comes from', async () => {
  const script = join(folder, 'counting.sh')
  const count = 'n=0; trap \'n=$((n+1)); echo "caught $n"\' INT; echo ready'
  writeFileSync(
    script,
    `${count}\ni=0; while [ $i -lt 15 ]; do sleep 0.1; i=$((i+1)); done\nexit $((10+n))\n`,
  )
  const [program, args] = sallyportCommand(['secret', 'exec', ACCOUNT, '--', 'sh', script])
  const words = [program, ...args].map((word) => `'${word}'`).join(' ')
  const terminal = openTerminal('sh', ['-c', `trap : INT; ${words} </dev/null; exit $?`], {
    env: environment(),
    cwd: folder,
  })
  await terminal.expect('ready')
  terminal.send('\x03')
  await terminal.expect('caught 1')
  expect(await terminal.exit()).toBe(11)
  expect(terminal.output()).not.toContain('caught 2')
  expect(await current()).toEqual([])
})

test('a signal to a job in the foreground of a terminal reaches the program, once, between keys too', async () => {
  const script =
    "n=0; trap 'n=$((n+1)); echo caught $n' INT; trap 'echo left; exit 7' QUIT; echo ready; while :; do sleep 0.1; done"
  const [program, args] = sallyportCommand(['secret', 'exec', ACCOUNT, '--', 'sh', '-c', script])
  const terminal = openTerminal(program, args, { env: environment(), cwd: folder })
  await terminal.expect('ready')
  terminal.signal(constants.signals.SIGINT)
  await terminal.expect('caught 1')
  terminal.send('\x03')
  await terminal.expect('caught 2')
  expect(terminal.output()).not.toContain('caught 3')
  // One that comes at once after a key counts for another.
  await until('a signal that is passed on', () => {
    if (terminal.output().includes('caught 3')) return true
    terminal.signal(constants.signals.SIGINT)
    return false
  })
  terminal.signal(constants.signals.SIGQUIT)
  await terminal.expect('left')
  expect(await terminal.exit()).toBe(7)
  expect(await current()).toEqual([])
})

test('a signal to a job in the background reaches the program, though stdin is a terminal', async () => {
  const [program, args] = sallyportCommand(['secret', 'exec', ACCOUNT, '--', 'sh', '-c'])
  const words = [program, ...args].map((word) => `'${word}'`).join(' ')
  const script = 'trap "echo caught; exit 5" INT; echo ready; while :; do sleep 0.1; done'
  // With -m the job has a group of its own; stdin of a script's job would be /dev/null.
  const line = `set -m; ${words} '${script}' <&3 & read word; kill -INT $!; wait $!; exit $?`
  const terminal = openTerminal('bash', ['-c', `exec 3<&0; ${line}`], { env: environment(), cwd: folder })
  await terminal.expect('ready')
  terminal.send('go\r')
  await terminal.expect('caught')
  expect(await terminal.exit()).toBe(5)
  expect(await current()).toEqual([])
})

test('a signal before the secret is there ends the attempt, and leaves nothing out', async () => {
  const [program, args] = sallyportCommand(['secret', 'exec', ACCOUNT, '--', 'true'])
  const silent = listener()
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const connected = once(silent, 'connection')
  const child = spawn(program, args, { env: environment({ SALLYPORT_URL: url }), cwd: folder })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  await connected
  child.kill('SIGINT')
  expect(await ended).toBe(128 + 2)
  silent.close()
})
