/**
 * The broker itself as a peer: started as users start it, in its own process with a configuration file and an
 * empty data folder, and controlled over HTTPS.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { isOnPostgres, testDatabase } from './databases.ts'
import { type Daemon, freePort, run, startDaemon } from './process.ts'
import { findProgram } from './program.ts'
import { layRsaHostKey } from './rsa-host-key.ts'
import { layStartedData } from './started-data.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const STOP_GRACE_MS = 10_000
const BIND_ATTEMPTS = 3
const QUIET = '--disable-warning=ExperimentalWarning'
/** Environment variable with the program that the tests start: a build of the present sources. */
export const PROGRAM = 'SALLYPORT_TEST_PROGRAM'
const main = (): string[] => [QUIET, process.env[PROGRAM] ?? join(ROOT, 'src', 'main.ts')]
const INSTALLED = [QUIET, join(ROOT, 'bin', 'sallyport.js')]

export const ADMIN_PASSWORD = 'correct horse battery staple'

export interface ApiAnswer<T = unknown> {
  status: number
  headers: NodeJS.Dict<string | string[]>
  body: T
}

export interface BrokerPorts {
  https: number
  ssh: number
  metrics: number
  /** Ports of the listeners in `terminals`. */
  telnet?: number
  rlogin?: number
  telnets?: number
  /** Set if `vnc` is. */
  vnc?: number
  /** Set if `rdp` is. */
  rdp?: number
}

export interface BrokerOptions {
  /** Keys besides the listeners and data_dir, merged at the top level. */
  config?: Record<string, unknown>
  /** Data folder of an earlier broker, to restart with it; `stop` does not remove it. */
  dataFolder?: string
  /** Ports of an earlier broker. */
  ports?: BrokerPorts
  /** Listen for Telnet, rlogin and Telnet inside TLS too, with these keys; default: no. */
  terminals?: { telnet?: object; rlogin?: object; telnets?: object }
  /** Listen for VNC too, with these keys; default: no. */
  vnc?: object
  /** Listen for RDP too, with these keys; default: no. */
  rdp?: object
  env?: NodeJS.ProcessEnv
  /** Starts it as users do, by bin/sallyport.js, so that it runs from a build if there is one; default: the sources. */
  asInstalled?: boolean
  /** Options of `serve`, such as `--takeover`. */
  flags?: string[]
}

export interface Broker {
  pid: number
  ports: BrokerPorts
  dataFolder: string
  /** The configuration file, for `sallyport COMMAND --config`. */
  configFile: string
  /** Returns its output so far. */
  log(): string
  /** Sends a request under /api as admin (signed in at the first call), with JSON both ways. */
  api<T = unknown>(method: string, path: string, body?: unknown): Promise<ApiAnswer<T>>
  /** Like `api`, but a response other than 2xx rejects with its text. */
  must<T = unknown>(method: string, path: string, body?: unknown): Promise<T>
  /** Sends SIGTERM, and waits for the end. */
  stop(): Promise<void>
  /** Resolves to its exit code, or null if a signal ended it. */
  ended: Promise<number | null>
  /** Sends SIGKILL; the data folder stays. */
  kill(): Promise<void>
}

/** Returns the status and the text of a probe, such as `/readyz`, as curl has them. */
export async function probe({ ports }: Pick<Broker, 'ports'>, path: string): Promise<string> {
  const url = `https://127.0.0.1:${ports.https}${path}`
  return (await run(findProgram('curl'), ['-sk', '-w', '%{http_code}', url])).stdout
}

/** Returns the text of /metrics. */
export function metricsOf({ ports }: Pick<Broker, 'ports'>): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port: ports.metrics, path: '/metrics' }, (response) => {
      let body = ''
      response.on('data', (data) => {
        body += data
      })
      response.on('end', () => resolve(body))
    }).on('error', reject)
  })
}

/** Returns the command line of `sallyport ARGS`, for `run`. */
export function sallyportCommand(args: string[]): [string, string[]] {
  return [process.execPath, [...main(), ...args]]
}

/**
 * Starts `serve` with listeners on free ports of 127.0.0.1 and waits for `sallyport is ready`. If another
 * process has bound a port in the meantime, tries others.
 */
export async function startBroker(options: BrokerOptions = {}): Promise<Broker> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(options)
    } catch (error) {
      if (options.ports || attempt === BIND_ATTEMPTS || !String(error).includes('cannot listen for'))
        throw error
    }
  }
}

async function startOnce(options: BrokerOptions): Promise<Broker> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-broker-'))
  const dataFolder = options.dataFolder ?? join(folder, 'data')
  if (options.env === undefined) layStartedData(dataFolder, options.config ?? {})
  layRsaHostKey(dataFolder)
  const { terminals, vnc, rdp } = options
  const ports = options.ports ?? {
    https: await freePort(),
    ssh: await freePort(),
    metrics: await freePort(),
    ...(terminals && { telnet: await freePort(), rlogin: await freePort(), telnets: await freePort() }),
    ...(vnc && { vnc: await freePort() }),
    ...(rdp && { rdp: await freePort() }),
  }
  const listener = (port: number): object => ({ host: '127.0.0.1', port })
  const terminal = (name: 'telnet' | 'rlogin' | 'telnets'): object | 'off' => {
    const port = ports[name]
    return port === undefined ? 'off' : { ...listener(port), ...terminals?.[name] }
  }
  const configFile = join(folder, 'sallyport.yaml')
  const listen = {
    https: listener(ports.https),
    ssh: listener(ports.ssh),
    telnet: terminal('telnet'),
    rlogin: terminal('rlogin'),
    telnets: terminal('telnets'),
    vnc: ports.vnc === undefined ? 'off' : { ...listener(ports.vnc), ...vnc },
    rdp: ports.rdp === undefined ? 'off' : { ...listener(ports.rdp), ...rdp },
    metrics: listener(ports.metrics),
  }
  const database = isOnPostgres() ? await testDatabase({ of: dataFolder }) : undefined
  const config = {
    data_dir: dataFolder,
    listen,
    shutdown_grace: '1s',
    workers: 1,
    ...(database && { database: { url: database.url } }),
    ...options.config,
  }
  writeFileSync(configFile, stringify(config))
  const program = options.asInstalled ? INSTALLED : main()
  const args = [...program, 'serve', '--config', configFile, ...(options.flags ?? [])]
  const env = { ...process.env, SALLYPORT_ADMIN_PASSWORD: ADMIN_PASSWORD, ...options.env }
  let daemon: Daemon
  try {
    daemon = await startDaemon(process.execPath, args, /^sallyport is ready$/m, {
      env,
      grace: STOP_GRACE_MS,
    })
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  let cookie: string | undefined

  const call = <T>(method: string, path: string, body?: unknown): Promise<ApiAnswer<T>> =>
    callApi<T>(
      ports.https,
      certificateOf(dataFolder),
      method,
      path,
      body,
      cookie === undefined ? {} : { cookie },
    )
  const signIn = async (): Promise<void> => {
    const answer = await call('POST', '/session', { user: 'admin', password: ADMIN_PASSWORD })
    if (answer.status !== 200) throw new Error(`admin cannot sign in: ${JSON.stringify(answer.body)}`)
    cookie = [answer.headers['set-cookie'] ?? []].flat()[0]?.split(';')[0]
  }
  const api = async <T>(method: string, path: string, body?: unknown): Promise<ApiAnswer<T>> => {
    if (cookie === undefined) await signIn()
    return call<T>(method, path, body)
  }
  return {
    pid: daemon.pid,
    ports,
    dataFolder,
    configFile,
    log: daemon.log,
    ended: daemon.ended,
    api,
    must: async <T>(method: string, path: string, body?: unknown) => {
      const answer = await api<T>(method, path, body)
      if (answer.status >= 200 && answer.status < 300) return answer.body
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    },
    stop: async () => {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
    kill: async () => {
      process.kill(daemon.pid, 'SIGKILL')
      await daemon.ended
    },
  }
}

function certificateOf(dataFolder: string): Buffer {
  return readFileSync(join(dataFolder, 'tls', 'cert.pem'))
}

/** Sends one JSON request to https://127.0.0.1:PORT/api/v3.12PATH; the certificate must be the given one. */
export function callApi<T>(
  port: number,
  certificate: Buffer,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<ApiAnswer<T>> {
  const payload = body === undefined ? undefined : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        method,
        path: `/api/v3.12${path}`,
        ca: certificate,
        // The self-signed certificate names the host, not this address.
        checkServerIdentity: () => undefined,
        headers: { ...headers, ...(payload !== undefined && { 'content-type': 'application/json' }) },
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (data: Buffer) => chunks.push(data))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          const isJson = String(response.headers['content-type'] ?? '').startsWith('application/json')
          const value = isJson && text !== '' ? JSON.parse(text) : text
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: value as T })
        })
      },
    )
    sent.on('error', reject)
    sent.end(payload)
  })
}
