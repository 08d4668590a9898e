/**
 * `npm run bench`: the cost of the bastion, as ratios to a direct connection and to `ssh -J`, all in one run
 * on this machine and in random order, since its absolute speed varies. Needs root, to create a system user
 * to log in as.
 *
 *   npm run bench -- [--quick] [--json FILE] [--size MIB] [--rounds N] [--only transfers,echo,logins,memory]
 *   npm run bench -- --only api [--seconds N]
 *   npm run bench -- --only vnc|rdp [--size MIB] [--sessions N] [--unrecorded]
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { randomFileBytes } from './file.ts'
import {
  echoes,
  echoesUnderLoad,
  type LoginResult,
  logins,
  memoryPerSession,
  TRANSFERS,
  type TransferResult,
  transfer,
} from './measures.ts'
import { CIPHER, type Lab, ROUTES, type Route, startLab } from './routes.ts'
import { median, percentile, shuffled, table } from './stats.ts'

type PerRoute<T> = Record<Route, T[]>

const forRoutes = <T>(): PerRoute<T> => ({ direct: [], jump: [], sallyport: [], unrecorded: [] })

/** Measures every route `rounds` times, in another order each time. */
async function inRounds<T>(rounds: number, measure: (route: Route) => Promise<T>): Promise<PerRoute<T>> {
  const results = forRoutes<T>()
  for (let round = 0; round < rounds; round++) {
    for (const route of shuffled(ROUTES)) results[route].push(await measure(route))
  }
  return results
}

interface Row {
  name: string
  unit: string
  values: Record<Route, number | undefined>
  /** Whether more is better: then a ratio above one is good. */
  rate: boolean
}

function rowOf<T>(
  name: string,
  unit: string,
  results: PerRoute<T>,
  value: (result: T) => number | undefined,
  rate = false,
): Row {
  const values: Row['values'] = {
    direct: undefined,
    jump: undefined,
    sallyport: undefined,
    unrecorded: undefined,
  }
  for (const route of ROUTES) {
    const known = results[route].map(value).filter((number) => number !== undefined)
    if (known.length > 0) values[route] = median(known)
  }
  return { name, unit, values, rate }
}

interface Sizes {
  rounds: number
  echoes: number
  logins: number
  sessions: number
  only: Set<string>
}

async function measureAll(lab: Lab, file: string, sizes: Sizes): Promise<Row[]> {
  const rows: Row[] = []
  const wants = (part: string): boolean => sizes.only.size === 0 || sizes.only.has(part)
  const progress = (what: string): void => {
    process.stderr.write(`bench: ${what} …\n`)
  }
  if (wants('transfers')) {
    for (const what of TRANSFERS) {
      progress(what)
      const results = await inRounds<TransferResult>(sizes.rounds, (route) =>
        transfer(lab, route, what, file),
      )
      rows.push(rowOf(what, 'MiB/s', results, (result) => result.mibPerSecond, true))
      rows.push(rowOf('  broker CPU', 's/GiB', results, (result) => result.cpuPerGib))
    }
  }
  if (wants('echo')) {
    progress('echo')
    const idle = await inRounds(sizes.rounds, (route) => echoes(lab, route, sizes.echoes))
    progress('echo beside a bulk session')
    const loaded = await inRounds(sizes.rounds, (route) => echoesUnderLoad(lab, route, sizes.echoes, file))
    rows.push(rowOf('echo, median', 'ms', idle, median))
    rows.push(rowOf('echo, p99', 'ms', idle, (samples) => percentile(samples, 0.99)))
    rows.push(rowOf('echo beside bulk, median', 'ms', loaded, median))
    rows.push(rowOf('echo beside bulk, p99', 'ms', loaded, (samples) => percentile(samples, 0.99)))
  }
  if (wants('logins')) {
    progress('logins')
    const results = await inRounds<LoginResult>(sizes.rounds, (route) => logins(lab, route, sizes.logins))
    rows.push(rowOf('logins, 6 at a time', '1/s', results, (result) => result.perSecond, true))
    rows.push(rowOf('  broker CPU per login', 'ms', results, (result) => result.cpuMs))
  }
  if (wants('memory')) {
    progress(`memory of ${sizes.sessions} idle sessions`)
    // the first sessions also warm up the broker's heap, which would count as theirs
    await inRounds(1, (route) => memoryPerSession(lab, route, sizes.sessions))
    const results = await inRounds(1, (route) => memoryPerSession(lab, route, sizes.sessions))
    const kib = (bytes: number | undefined): number | undefined => bytes && bytes / 1024
    rows.push(rowOf('memory per idle session', 'KiB', results, kib))
  }
  return rows
}

function show(rows: readonly Row[]): string {
  const number = (value: number | undefined): string => {
    if (value === undefined) return '-'
    return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
  }
  const ratio = (a: number | undefined, b: number | undefined): string =>
    a === undefined || b === undefined || b === 0 ? '-' : `× ${(a / b).toFixed(2)}`
  return table([
    ['', 'unit', 'direct', 'ssh -J', 'sallyport', 'to direct', 'to ssh -J', 'unrecorded', 'to unrecorded'],
    ...rows.map(({ name, unit, values: { direct, jump, sallyport, unrecorded } }) => [
      name,
      unit,
      number(direct),
      number(jump),
      number(sallyport),
      ratio(sallyport, direct),
      ratio(sallyport, jump),
      number(unrecorded),
      ratio(sallyport, unrecorded),
    ]),
  ])
}

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    size: { type: 'string' },
    rounds: { type: 'string' },
    only: { type: 'string' },
    seconds: { type: 'string' },
    sessions: { type: 'string' },
    unrecorded: { type: 'boolean', default: false },
  },
})
async function passage(): Promise<void> {
  const mebibytes = Number(flags.size ?? (flags.quick ? 128 : 1024))
  const sizes: Sizes = {
    rounds: Number(flags.rounds ?? (flags.quick ? 2 : 5)),
    echoes: flags.quick ? 200 : 700,
    logins: flags.quick ? 12 : 60,
    sessions: flags.quick ? 10 : 100,
    only: new Set(flags.only?.split(',') ?? []),
  }
  if (process.getuid?.() !== 0) {
    process.stderr.write('bench: run it as root, it makes a system user to log in as\n')
    process.exit(1)
  }

  // Memory, not a disk: only the disk of the recordings matters.
  const folder = mkdtempSync('/dev/shm/sallyport-bench-')
  try {
    await chmod(folder, 0o777)
    const file = join(folder, 'file')
    randomFileBytes(file, mebibytes)
    await chmod(file, 0o644)
    const lab = await startLab()
    try {
      const rows = await measureAll(lab, file, sizes)
      const about = [
        `${cpus().length} × ${cpus()[0]?.model ?? 'processor'}, Node ${process.version}, ${mebibytes} MiB files, ` +
          `medians of ${sizes.rounds} rounds in random order, clients on ${CIPHER}`,
        'ratios of rates: more is better; of times, CPU and memory: less is better',
        'sallyport records: terminals whole; a command (ssh cat) whole up to the quota of its session, then by hash ' +
          'and count; scp and sftp by operation, path, size and SHA-256 of each file, not the bytes',
        'unrecorded: the same broker under an authorization without recording',
        "CPU: of the broker process, all its threads, until it rests after the session; memory: resident of the broker, proportional of the jump host's processes",
      ]
      process.stdout.write(`${show(rows)}\n\n${about.join('\n')}\n`)
      if (flags.json !== undefined) writeFileSync(flags.json, `${JSON.stringify({ about, rows }, null, 2)}\n`)
    } finally {
      await lab.stop()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (flags.only === 'api') await import('./api.ts')
else if (flags.only === 'vnc') await import('./vnc.ts')
else if (flags.only === 'rdp') await import('./rdp.ts')
else await passage()
