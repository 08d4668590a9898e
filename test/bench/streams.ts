/**
 * Four transfers at a time, each over an open connection of its own, through a broker with one session worker and
 * through one with two: elapsed time, and the processor time of each worker.
 */
import { join } from 'node:path'
import { type Master, openMaster, timed } from './clients.ts'
import { randomFileBytes } from './file.ts'
import { between, type Spent } from './processor.ts'
import { isBroker, type Lab, type Route, startLab } from './routes.ts'
import { median, shuffled, table } from './stats.ts'

const STREAMS = 4
const WORKERS = [1, 2] as const
const WARM_UP_MIB = 64
const MIB_PER_GIB = 1024

export interface StreamsOptions {
  /** Of each stream. */
  mebibytes: number
  rounds: number
  routes: readonly Route[]
  progress: (what: string) => void
}

/** All values are per GiB of all streams together. */
export interface Streams {
  route: Route
  /** Session workers of the broker; none for the other routes. */
  workers?: number
  seconds: number
  broker: Spent
}

interface Line {
  lab: Lab
  route: Route
  workers?: number
  masters: Master[]
}

/** Measures all lines `rounds` times in random order; `folder` is in memory. */
export async function measureStreams(folder: string, options: StreamsOptions): Promise<Streams[]> {
  const file = join(folder, 'stream')
  const warm = join(folder, 'warm')
  randomFileBytes(file, options.mebibytes)
  randomFileBytes(warm, WARM_UP_MIB)
  const labs: Lab[] = []
  const lines: Line[] = []
  const all: Streams[] = []
  try {
    for (const workers of WORKERS) {
      const lab = await startLab({ workers })
      labs.push(lab)
      for (const route of options.routes) {
        // One of the labs is enough for what does not pass its broker.
        if (!isBroker(route) && labs.length > 1) continue
        const line: Line = { lab, route, ...(isBroker(route) && { workers }), masters: [] }
        lines.push(line)
        for (let stream = 0; stream < STREAMS; stream++) {
          line.masters.push(await openMaster(lab, route, 'gcm', `${route}-${stream}`))
        }
      }
    }
    for (const line of lines) await together(line, warm)
    for (let round = 0; round < options.rounds; round++) {
      options.progress(`streams, round ${round + 1}`)
      for (const line of shuffled(lines)) {
        const { lab, route, workers } = line
        const before = lab.broker.spent()
        const seconds = await together(line, file)
        await Promise.all([lab.broker.quiet(), lab.target.quiet()])
        const spent = between(before, lab.broker.spent())
        const each = (value: number): number => (value * MIB_PER_GIB) / (options.mebibytes * STREAMS)
        all.push({
          route,
          ...(workers !== undefined && { workers }),
          seconds: each(seconds),
          broker: {
            all: each(spent.all),
            threads: Object.fromEntries(
              Object.entries(spent.threads).map(([name, value]) => [name, each(value)]),
            ),
          },
        })
      }
    }
  } finally {
    for (const { masters } of lines) for (const master of masters) await master.close()
    for (const lab of labs) await lab.stop()
  }
  return all
}

/** Transfers the file over all connections of a line at once; resolves to seconds. */
async function together({ masters }: Line, file: string): Promise<number> {
  const begin = performance.now()
  await Promise.all(masters.map(({ options, host }) => timed('ssh', [...options, host, `cat ${file}`])))
  return (performance.now() - begin) / 1000
}

const nameOf = ({ route, workers }: Pick<Streams, 'route' | 'workers'>): string =>
  workers === undefined ? route : `${route}, ${workers} worker${workers > 1 ? 's' : ''}`

export function showStreams(all: readonly Streams[]): string {
  const names = [...new Set(all.map(nameOf))].sort()
  const threads = [...new Set(all.flatMap(({ broker }) => Object.keys(broker.threads)))]
    .filter((name) => all.some(({ broker }) => (broker.threads[name] ?? 0) >= 0.01))
    .sort()
  const of = (name: string, value: (one: Streams) => number): number =>
    median(all.filter((one) => nameOf(one) === name).map(value))
  return table([
    [`${STREAMS} streams, per GiB`, 'wall, s', '/direct', '/1 worker', 'broker CPU, s', ...threads],
    ...names.map((name) => {
      const seconds = of(name, (one) => one.seconds)
      const [route] = name.split(',')
      const faster = (other: string): string => `× ${(of(other, (one) => one.seconds) / seconds).toFixed(2)}`
      const isPassage = name !== route
      return [
        name,
        seconds.toFixed(2),
        faster('direct'),
        isPassage ? faster(`${route}, 1 worker`) : '-',
        isPassage ? of(name, (one) => one.broker.all).toFixed(2) : '-',
        ...threads.map((thread) =>
          isPassage ? of(name, (one) => one.broker.threads[thread] ?? 0).toFixed(2) : '-',
        ),
      ]
    }),
  ])
}
