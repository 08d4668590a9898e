/** `sallyport doctor`: all that support asks for first, in one file, without secrets. */
import { closeSync, fstatSync, openSync, readSync, statfsSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { availableParallelism, freemem, loadavg, release, totalmem, uptime } from 'node:os'
import { join, resolve } from 'node:path'
import { wasUsed } from '../broker/database.ts'
import { openFoundation } from '../broker/foundation.ts'
import type { Config } from '../config/config.ts'
import { ConfigError, loadConfig } from '../config/load.ts'
import { ControlClient } from '../control/client.ts'
import { CONTROL_SOCKET, replacedSockets } from '../control/place.ts'
import { SCHEMA_VERSION } from '../store/migrate.ts'
import type { Store } from '../store/store.ts'
import { look } from './check.ts'
import { type Command, expectNoWords, textOption } from './command.ts'
import { plain } from './output.ts'
import { scrubbed, secretsOf } from './scrub.ts'
import { productVersion } from './version.ts'

/** Bytes of the log's end, and of the metrics. */
const MAX_LOG = 256 * 1024
const MAX_METRICS = 4 * 1024 * 1024
const METRICS_MS = 5_000

export const doctor: Command = {
  synopsis: [
    [
      'doctor [--output FILE]',
      'write what support asks for into one file, without secrets: versions, configuration, check, counts, disk, log, metrics',
    ],
  ],
  options: { output: { type: 'string' } },
  async run(invocation) {
    expectNoWords('doctor', invocation.words)
    const time = new Date().toISOString()
    const name = `sallyport-doctor-${time.replaceAll(/[-:]|\.\d+/g, '')}.json`
    const file = resolve(textOption(invocation, 'output') ?? name)
    const report = { time, ...(await collected(invocation.config)) }
    // A file that is there, or a link that another user has laid, is never written to.
    writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`, { mode: 0o600, flag: 'wx' })
    process.stdout.write(
      plain(
        `${file}\nit holds no secrets, but names of users, machines and networks: read it before you send it\n`,
      ),
    )
    return 0
  },
}

async function collected(file: string): Promise<object> {
  const findings = await look(file)
  const always = { ...versions(), machine: machine(), check: findings }
  let config: Config
  try {
    config = loadConfig(file)
  } catch (error) {
    // The findings say why. Its text may hold secrets where none is expected.
    if (error instanceof ConfigError) return always
    throw error
  }
  return {
    ...always,
    // Its secrets print as such.
    configuration: config,
    brokers: await brokers(config.dataDir),
    store: await tried(() => counts(config)),
    disk: [config.dataDir, config.recordings.directory].map(volume),
    metrics: await tried(() => metrics(config)),
    log: await tried(async () => logEnd(config)),
  }
}

function versions() {
  const { version: node, versions: of, platform, arch, execPath } = process
  return {
    version: productVersion(),
    schema: SCHEMA_VERSION,
    node,
    openssl: of.openssl,
    platform,
    arch,
    execPath,
  }
}

function machine() {
  const { uid, gid } = { uid: process.geteuid?.(), gid: process.getegid?.() }
  const memory = { total: totalmem(), free: freemem() }
  return {
    kernel: release(),
    processors: availableParallelism(),
    memory,
    load: loadavg(),
    uptime: uptime(),
    uid,
    gid,
  }
}

/** Returns what the work found, or why it could not be done: a bastion that is ill has parts that fail. */
async function tried<T>(work: () => Promise<T>): Promise<T | { fault: string }> {
  try {
    return await work()
  } catch (error) {
    return { fault: scrubbed(error instanceof Error ? error.message : String(error), []) }
  }
}

/** Returns the states of the brokers on the data folder: the one that serves, and those that it has replaced. */
async function brokers(dataDir: string): Promise<object[]> {
  const places = [join(dataDir, CONTROL_SOCKET), ...replacedSockets(dataDir)]
  const states = places.map((place) =>
    tried(async () => {
      const client = await ControlClient.connect(place)
      if (!client) return undefined
      try {
        return await client.status()
      } finally {
        client.destroy()
      }
    }),
  )
  return (await Promise.all(states)).filter((state) => state !== undefined)
}

/** The lists whose length tells how large an estate is. */
const COUNTED = [
  'users',
  'userGroups',
  'devices',
  'services',
  'domains',
  'accounts',
  'targetGroups',
  'authorizations',
  'connectionPolicies',
  'externalAuths',
  'authDomains',
  'notifications',
] as const satisfies readonly (keyof Store)[]

async function counts(config: Config): Promise<object> {
  if (!wasUsed(config)) return { fault: 'the broker was not started yet' }
  const foundation = await openFoundation(config)
  try {
    const { store } = foundation
    const first = { limit: 1, offset: 0 }
    const sizes: [string, number][] = []
    for (const name of COUNTED) sizes.push([name, (await store[name].list(first)).total])
    for (const status of ['current', 'closed'] as const)
      sizes.push([`sessions ${status}`, (await store.sessions.list({ status }, first)).total])
    return { ...Object.fromEntries(sizes), events: (await store.audit.last())?.sequence ?? 0 }
  } finally {
    await foundation.close()
  }
}

function volume(folder: string): object {
  try {
    const { bavail, blocks, bsize, ffree } = statfsSync(folder)
    return { folder, free: bavail * bsize, size: blocks * bsize, freeFiles: ffree }
  } catch (error) {
    return { folder, fault: (error as Error).message }
  }
}

async function metrics({ listen }: Config): Promise<string | undefined> {
  if (!listen.metrics) return undefined
  const { host, port } = listen.metrics
  const near = host === '::' ? '::1' : host === '0.0.0.0' ? '127.0.0.1' : host
  return await new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(METRICS_MS)
    get({ host: near, port, path: '/metrics', signal }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        text += piece
        if (text.length > MAX_METRICS) response.destroy(new Error(`more than ${MAX_METRICS} characters`))
      })
      response.on('end', () => resolve(text))
      response.on('error', reject)
    }).on('error', reject)
  })
}

/** Returns the last lines of the log. */
function logEnd(config: Config): string[] | { fault: string } {
  const { file } = config.log
  if (file === '-')
    return { fault: 'the log goes to standard output: add it from there (journalctl -u sallyport)' }
  const handle = openSync(file, 'r')
  try {
    const { size } = fstatSync(handle)
    const bytes = Buffer.alloc(Math.min(size, MAX_LOG))
    const read = readSync(handle, bytes, 0, bytes.length, size - bytes.length)
    const lines = bytes.toString('utf8', 0, read).split('\n')
    // The first one is cut, unless it is the first of all.
    if (size > MAX_LOG) lines.shift()
    return lines.filter((line) => line !== '').map((line) => scrubbed(line, secretsOf(config)))
  } finally {
    closeSync(handle)
  }
}
