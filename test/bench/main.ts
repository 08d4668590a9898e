/**
 * `npm run bench`: the cost of the bastion, beside a direct connection and `ssh -J`, all in one run on this
 * machine and in random order, since its absolute speed varies. Needs root, to create a system user to log in
 * as.
 *
 *   npm run bench -- [--quick] [--json FILE] [--only steady,echo,logins,streams,memory,pauses,reviews,store]
 *     [--size MIB] [--rounds N] [--transfers cat,…] [--ciphers gcm,chacha20] [--routes direct,jump,…]
 *     [--sessions 200,1000,5000] [--workers N]
 *   npm run bench -- --only store [--rounds N] [--sessions N] [--against COMMIT]
 *   npm run bench -- --only api [--seconds N]
 *   npm run bench -- --only vnc|rdp [--size MIB] [--sessions N] [--unrecorded]
 *   npm run bench -- --only sign-ins [--quick]
 *   npm run bench -- --only events
 *   npm run bench -- --only failover [--rounds N] [--through hosts|haproxy]
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measureEcho, showEcho } from './echo.ts'
import { randomFileBytes } from './file.ts'
import { measureLogins, showLogins } from './logins.ts'
import { measureMemory, showMemory } from './memory.ts'
import { measurePauses, showPauses } from './pauses.ts'
import { measureReviews, showReviews } from './reviews.ts'
import { CIPHERS, type Cipher, type Lab, ROUTES, type Route, startLab } from './routes.ts'
import { measureSteady, showSteady } from './steady.ts'
import { measureStore, showStore } from './store.ts'
import { measureStreams, showStreams } from './streams.ts'
import { TRANSFERS } from './transfers.ts'

const PARTS = ['steady', 'echo', 'logins', 'streams', 'memory', 'pauses', 'reviews', 'store'] as const
type Part = (typeof PARTS)[number]
/** Parts that need no system user. */
const IDLE: readonly Part[] = ['memory', 'pauses', 'reviews', 'store']
const ECHO_FILE_MIB = 256
/** Routes of which a login or an echo costs the same as of another one are left out there. */
/** Parts that are measured in one lab. */
const IN_LAB: readonly Part[] = ['steady', 'echo', 'logins']
const STREAMED: readonly Route[] = ['direct', 'jump', 'unrecorded', 'hashed']
const WITHOUT_BULK: readonly Route[] = ['direct', 'jump', 'unrecorded', 'hashed']

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    size: { type: 'string' },
    rounds: { type: 'string' },
    only: { type: 'string' },
    transfers: { type: 'string' },
    ciphers: { type: 'string' },
    routes: { type: 'string' },
    seconds: { type: 'string' },
    sessions: { type: 'string' },
    workers: { type: 'string' },
    through: { type: 'string' },
    against: { type: 'string' },
    unrecorded: { type: 'boolean', default: false },
  },
})

/** Returns the words of a list that are among the known ones; all of them without a list. */
function chosen<T extends string>(list: string | undefined, known: readonly T[]): readonly T[] {
  if (list === undefined) return known
  const words = list.split(',')
  const unknown = words.find((word) => !(known as readonly string[]).includes(word))
  if (unknown !== undefined) throw new Error(`expected some of ${known.join(', ')}, not ${unknown}`)
  return known.filter((word) => words.includes(word))
}

interface Report {
  /** How it was measured. */
  about: string[]
  /** The values of each part. */
  parts: Partial<Record<Part, unknown>>
}

function progress(what: string): void {
  process.stderr.write(`bench: ${what} …\n`)
}

function show(text: string): void {
  process.stdout.write(`${text}\n\n`)
}

async function measurePassage(
  lab: Lab,
  folder: string,
  parts: readonly Part[],
  report: Report,
): Promise<void> {
  const routes = chosen(flags.routes, ROUTES)
  if (parts.includes('steady')) {
    const options = {
      mebibytes: Number(flags.size ?? (flags.quick ? 128 : 1024)),
      rounds: Number(flags.rounds ?? 1),
      routes,
      ciphers: chosen(flags.ciphers, Object.keys(CIPHERS) as Cipher[]),
      transfers: chosen(flags.transfers, TRANSFERS),
      progress,
    }
    report.about.push(
      `steady: ${options.mebibytes} MiB over an open connection after 64 MiB, medians of ${options.rounds} rounds`,
    )
    const steady = await measureSteady(lab, folder, options)
    report.parts.steady = steady
    show(showSteady(steady, options))
  }
  const few = routes.filter((route) => WITHOUT_BULK.includes(route))
  if (parts.includes('echo')) {
    progress('echo')
    const file = join(folder, 'echo')
    randomFileBytes(file, ECHO_FILE_MIB)
    const sizes = { rounds: Number(flags.rounds ?? 3), count: flags.quick ? 200 : 700, routes: few }
    report.about.push(`echo: ${sizes.rounds} rounds of ${sizes.count} keys`)
    const echo = await measureEcho(lab, file, sizes)
    report.parts.echo = echo
    show(showEcho(echo))
  }
  if (parts.includes('logins')) {
    progress('logins')
    const sizes = { rounds: Number(flags.rounds ?? 3), count: flags.quick ? 12 : 60, routes: few }
    report.about.push(`logins: medians of ${sizes.rounds} rounds of ${sizes.count}, after one that warms up`)
    const logins = await measureLogins(lab, sizes)
    report.parts.logins = logins
    show(showLogins(logins, few))
  }
}

async function streams(folder: string, report: Report): Promise<void> {
  const options = {
    mebibytes: Number(flags.size ?? (flags.quick ? 64 : 512)),
    rounds: Number(flags.rounds ?? 3),
    routes: chosen(flags.routes, ROUTES).filter((route) => STREAMED.includes(route)),
    progress,
  }
  report.about.push(
    `streams: ${options.mebibytes} MiB each over open connections, medians of ${options.rounds} rounds`,
  )
  const measured = await measureStreams(folder, options)
  report.parts.streams = measured
  show(showStreams(measured))
}

async function passage(): Promise<void> {
  const workers = Number(flags.workers ?? 1)
  const parts = chosen(flags.only, PARTS)
  const report: Report = {
    about: [
      `${cpus().length} × ${cpus()[0]?.model ?? 'processor'}, Node ${process.version}, routes in random order`,
      'unrecorded: without a recording; hashed, counted: recorded, and beyond the quota as hash or count; whole: the ' +
        'quota raised. scp and sftp are recorded by operation, path, size and SHA-256',
      "the broker's CPU: of all its processes and threads until they rest; a thread `2: NAME` is one of its second process",
    ],
    parts: {},
  }
  if (parts.some((part) => !IDLE.includes(part))) {
    if (process.getuid?.() !== 0) {
      process.stderr.write('bench: run it as root, it makes a system user to log in as\n')
      process.exit(1)
    }
    // Memory, not a disk: only the disk of the recordings matters.
    const folder = mkdtempSync('/dev/shm/sallyport-bench-')
    try {
      await chmod(folder, 0o777)
      if (parts.some((part) => IN_LAB.includes(part))) {
        const lab = await startLab({ workers })
        try {
          await measurePassage(lab, folder, parts, report)
        } finally {
          await lab.stop()
        }
      }
      if (parts.includes('streams')) await streams(folder, report)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  if (parts.includes('memory')) {
    const counts = flags.sessions ?? (flags.quick ? '50' : '200,1000')
    const memory = await measureMemory(counts.split(',').map(Number), progress)
    report.parts.memory = memory
    show(showMemory(memory))
  }
  if (parts.includes('pauses')) {
    const options = {
      sessions: Math.max(...(flags.sessions ?? (flags.quick ? '50' : '1000')).split(',').map(Number)),
      workers: Number(flags.workers ?? cpus().length),
      windows: Number(flags.rounds ?? 4),
      progress,
    }
    report.about.push(`pauses: ${options.windows} windows of 11 s, ${options.workers} session workers`)
    const pauses = await measurePauses(options)
    report.parts.pauses = pauses
    show(showPauses(pauses, options.sessions))
  }
  if (parts.includes('reviews')) {
    const counts = flags.sessions ?? (flags.quick ? '200' : '10000')
    const sessions = Math.max(...counts.split(',').map(Number))
    const reviews = await measureReviews(sessions, progress)
    report.parts.reviews = reviews
    show(showReviews(reviews, sessions))
  }
  if (parts.includes('store')) {
    const options = {
      rounds: Number(flags.rounds ?? 15),
      part: flags.quick ? 0.2 : 1,
      sessions: Math.max(...(flags.sessions ?? (flags.quick ? '200' : '10000')).split(',').map(Number)),
      against: flags.against,
      progress,
    }
    report.about.push(
      `store: medians of ${options.rounds} rounds, and their quarters, after one that warms up`,
    )
    const figures = await measureStore(options)
    report.parts.store = figures
    show(showStore(figures))
  }
  process.stdout.write(`${report.about.join('\n')}\n`)
  if (flags.json !== undefined) writeFileSync(flags.json, `${JSON.stringify(report, null, 2)}\n`)
}

if (flags.only === 'api') await import('./api.ts')
else if (flags.only === 'vnc') await import('./vnc.ts')
else if (flags.only === 'rdp') await import('./rdp.ts')
else if (flags.only === 'sign-ins') await import('./sign-ins.ts')
else if (flags.only === 'events') await import('./events.ts')
else if (flags.only === 'failover') await import('./failover.ts')
else await passage()
