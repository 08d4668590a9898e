/**
 * The API's throughput on one core: reads of one object and creations of devices through HTTPS, with
 * concurrent password sign-ins, checkouts, and the rights of a user with many targets. Run it by hand; it measures and
 * never fails. The broker has one core to itself, with all its threads, and this program another. Rates are
 * per second, and per second of processor time of the broker's event loop and of all its threads (the others
 * hash passwords and write to disk), which are the same on a busy machine.
 *
 *   npm run bench -- --only api [--seconds N]
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { parseArgs } from 'node:util'
import { type Broker, startBroker } from '../peers/broker.ts'
import { median, percentile, table } from './stats.ts'

const CONNECTIONS = 16
const SIGN_INS_EVERY_MS = 200
const TARGETS = 10_000
const TICKS_PER_SECOND = 100

/** Returns seconds of processor time: of the event loop's thread, and of the whole process. */
function cpu(pid: number): { loop: number; all: number } {
  const seconds = (file: string): number => {
    const stat = readFileSync(file, 'utf8')
    const [user = 0, system = 0] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
      .map(Number)
    return (user + system) / TICKS_PER_SECOND
  }
  return { loop: seconds(`/proc/${pid}/task/${pid}/stat`), all: seconds(`/proc/${pid}/stat`) }
}

/** Pins all present and future threads of a process to one core. */
function pin(pid: number, core: number): void {
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', String(core), String(pid)])
}

/**
 * A persistent connection with one request at a time. Leaner than node:https, so that the client does not
 * limit the rate.
 */
class Client {
  readonly #socket: TLSSocket
  #text = ''
  #done: ((answer: { status: number; body: string }) => void) | undefined

  constructor(broker: Broker) {
    const ca = readFileSync(join(broker.dataFolder, 'tls', 'cert.pem'))
    const { https: port } = broker.ports
    this.#socket = connect({ host: '127.0.0.1', port, ca, checkServerIdentity: () => undefined })
    this.#socket.setEncoding('utf8')
    this.#socket.on('data', (data) => this.#take(String(data)))
  }

  ask(method: string, path: string, headers = '', body = ''): Promise<{ status: number; body: string }> {
    const length = Buffer.byteLength(body)
    const type = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${length}\r\n`
    this.#socket.write(`${method} /api/v3.12${path} HTTP/1.1\r\nHost: x\r\n${headers}${type}\r\n${body}`)
    return new Promise((resolve) => {
      this.#done = resolve
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(data: string): void {
    this.#text += data
    const end = this.#text.indexOf('\r\n\r\n')
    if (end < 0) return
    const body = wholeBody(this.#text.slice(0, end), this.#text.slice(end + 4))
    if (body === undefined) return
    const answer = { status: Number(this.#text.slice(9, 12)), body }
    this.#text = ''
    this.#done?.(answer)
  }
}

/** Returns the body, or undefined while a part of it is missing. Chunks (long listings) keep their sizes. */
function wholeBody(head: string, body: string): string | undefined {
  if (/transfer-encoding: chunked/i.test(head)) return body.endsWith('\r\n0\r\n\r\n') ? body : undefined
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
  return Buffer.byteLength(body) < length ? undefined : body
}

interface Measured {
  what: string
  count: number
  seconds: number
  loop: number
  all: number
  latencies: number[]
}

/** Sends requests on all connections for that long; `request` makes the n-th. */
async function measure(
  broker: Broker,
  what: string,
  seconds: number,
  expected: number,
  request: (client: Client, n: number) => Promise<{ status: number; body: string }>,
): Promise<Measured> {
  const clients = Array.from({ length: CONNECTIONS }, () => new Client(broker))
  const latencies: number[] = []
  let n = 0
  const work = async (client: Client, until: number): Promise<void> => {
    while (performance.now() < until) {
      const begin = performance.now()
      const { status, body } = await request(client, n++)
      if (status !== expected) throw new Error(`${what}: ${status} ${body}`)
      latencies.push(performance.now() - begin)
    }
  }
  const warm = performance.now() + 1000
  await Promise.all(clients.map((client) => work(client, warm)))
  latencies.length = 0
  const before = cpu(broker.pid)
  const begin = performance.now()
  await Promise.all(clients.map((client) => work(client, begin + seconds * 1000)))
  const after = cpu(broker.pid)
  const took = (performance.now() - begin) / 1000
  for (const client of clients) client.close()
  return {
    what,
    count: latencies.length,
    seconds: took,
    loop: after.loop - before.loop,
    all: after.all - before.all,
    latencies,
  }
}

/** Signs in repeatedly until stopped; `stop` returns the number of sign-ins. */
function signIns(broker: Broker): { stop(): Promise<number> } {
  const client = new Client(broker)
  let isOver = false
  let count = 0
  const running = (async () => {
    while (!isOver) {
      const body = JSON.stringify({ user: 'ops', password: 'ops password' })
      const { status } = await client.ask('POST', '/session', '', body)
      if (status !== 200) throw new Error(`sign-in: ${status}`)
      count += 1
      await sleep(SIGN_INS_EVERY_MS)
    }
  })()
  return {
    async stop() {
      isOver = true
      await running
      client.close()
      return count
    },
  }
}

/** Creates devices of one service each, in one target group, for one global account. */
async function manyTargets(broker: Broker): Promise<void> {
  const { must } = broker
  await must('POST', '/domains', { domain_name: 'corp' })
  await must('POST', '/accounts', { account_name: 'svc', domain: 'corp' })
  const accounts: string[] = []
  for (let n = 0; n < TARGETS; n++) {
    await must('POST', '/devices', { device_name: `srv${n}`, host: '192.0.2.1' })
    await must('POST', `/devices/srv${n}/services`, { service_name: 'ssh', protocol: 'SSH' })
    accounts.push(`svc@corp:srv${n}:ssh`)
  }
  await must('POST', '/targetgroups', { group_name: 'all', session: { accounts } })
  await must('POST', '/authorizations', { user_group: 'ops', target_group: 'all', authorize_sessions: true })
}

/** Gives `ops` accounts with a password each, of which one user at a time has the secret; returns their names. */
async function lockedAccounts(broker: Broker): Promise<string[]> {
  const { must } = broker
  await must('POST', '/checkoutpolicies', {
    policy_name: 'locked',
    enable_lock: true,
    max_duration: 600,
  })
  await must('POST', '/domains', { domain_name: 'out' })
  const accounts = Array.from({ length: CONNECTIONS }, (_, n) => `a${n}@out`)
  for (const account of accounts) {
    await must('POST', '/accounts', {
      account_name: account.slice(0, account.indexOf('@')),
      domain: 'out',
      checkout_policy: 'locked',
      credentials: [{ type: 'password', password: 'a secret' }],
    })
  }
  await must('POST', '/targetgroups', { group_name: 'out', password_retrieval: { accounts } })
  await must('POST', '/authorizations', {
    user_group: 'ops',
    target_group: 'out',
    authorize_password_retrieval: true,
  })
  return accounts
}

const { values: flags } = parseArgs({ strict: false, options: { seconds: { type: 'string' } } })
const seconds = Number(flags.seconds ?? 10)
const broker = await startBroker({ asInstalled: true })
try {
  pin(broker.pid, 0)
  pin(process.pid, 1)
  const { must } = broker
  await must('POST', '/usergroups', { group_name: 'ops' })
  await must('POST', '/users', { user_name: 'ops', password: 'ops password', groups: ['ops'] })
  await must('POST', '/devices', { device_name: 'one', host: '192.0.2.1' })
  const { api_key: key } = await must<{ api_key: string }>('POST', '/apikeys', {
    key_name: 'bench',
    profile: 'product_administrator',
  })
  const auth = `X-Auth-Key: ${key}\r\n`
  const rows: Measured[] = []
  const beside = signIns(broker)
  const begin = performance.now()
  rows.push(
    await measure(broker, 'GET one device', seconds, 200, (client) =>
      client.ask('GET', '/devices/one', auth),
    ),
  )
  rows.push(
    await measure(broker, 'POST a device', seconds, 201, (client, n) =>
      client.ask('POST', '/devices', auth, JSON.stringify({ device_name: `d${n}`, host: '192.0.2.1' })),
    ),
  )
  const accounts = await lockedAccounts(broker)
  const asUser = `${auth}X-Auth-User: ops\r\n`
  const free = [...accounts]
  rows.push(
    await measure(broker, 'POST a checkout, and its check-in', seconds, 204, async (client) => {
      const account = free.shift()!
      const out = await client.ask('POST', `/accounts/${account}/checkout`, asUser, '{}')
      if (out.status !== 200) return out
      const { checkout_id } = JSON.parse(out.body) as { checkout_id: string }
      const back = await client.ask(
        'POST',
        `/accounts/${account}/checkin`,
        asUser,
        JSON.stringify({ checkout_id }),
      )
      free.push(account)
      return back
    }),
  )
  const perSecond = (await beside.stop()) / ((performance.now() - begin) / 1000)
  process.stderr.write(`bench: ${TARGETS} targets …\n`)
  await manyTargets(broker)
  for (const path of ['/sessionrights?user=ops', '/sessionrights?user=ops&limit=-1']) {
    const client = new Client(broker)
    rows.push(await measure(broker, `GET ${path}`, seconds / 2, 200, (one) => one.ask('GET', path, auth)))
    client.close()
  }
  const text = rows.map(({ what, count, seconds, loop, all, latencies }) => [
    what,
    (count / seconds).toFixed(0),
    (count / loop).toFixed(0),
    (count / all).toFixed(0),
    ((loop / count) * 1000).toFixed(2),
    median(latencies).toFixed(1),
    percentile(latencies, 0.99).toFixed(1),
  ])
  const head = ['', '1/s', 'per loop CPU s', 'per CPU s', 'loop ms each', 'p50 ms', 'p99 ms']
  process.stdout.write(`${table([head, ...text])}\n`)
  process.stdout.write(
    `${CONNECTIONS} connections; beside the first three ${perSecond.toFixed(1)} password sign-ins a second\n`,
  )
} finally {
  await broker.stop()
}
