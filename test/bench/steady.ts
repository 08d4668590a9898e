/**
 * The cost of a transfer in the steady state: over one open connection for each route and cipher (the sign-in
 * is left out), after a warm-up, in random order, in processor time of every process and thread. What the
 * broker does after the end of a session, mostly indexing, is counted apart.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Master, openMaster } from './clients.ts'
import { randomFileBytes } from './file.ts'
import { between, type Spent } from './processor.ts'
import { type Cipher, isBroker, type Lab, type Route } from './routes.ts'
import { median, shuffled, table } from './stats.ts'
import { type Cost, isMeasured, type Transfer, transfer } from './transfers.ts'

const WARM_UP_MIB = 64
const MIB_PER_GIB = 1024
/** Time within which indexing has begun. */
const INDEXING_MS = 2_000

export interface SteadyOptions {
  mebibytes: number
  rounds: number
  routes: readonly Route[]
  ciphers: readonly Cipher[]
  transfers: readonly Transfer[]
  progress: (what: string) => void
}

/** All values are per GiB. */
export interface Sample extends Cost {
  route: Route
  cipher: Cipher
  transfer: Transfer
}

/** The broker's processor time after the end of a session, per GiB that the session has carried. */
export interface End {
  route: Route
  cipher: Cipher
  gib: number
  broker: Spent
}

export interface Steady {
  samples: Sample[]
  ends: End[]
}

interface Line {
  route: Route
  cipher: Cipher
  master: Master
  mebibytes: number
}

/** Measures all transfers on all routes; `folder` is in memory. */
export async function measureSteady(lab: Lab, folder: string, options: SteadyOptions): Promise<Steady> {
  const file = join(folder, 'file')
  const warm = join(folder, 'warm')
  randomFileBytes(file, options.mebibytes)
  randomFileBytes(warm, WARM_UP_MIB)
  const lines: Line[] = []
  const steady: Steady = { samples: [], ends: [] }
  try {
    for (const cipher of options.ciphers) {
      for (const route of options.routes) {
        lines.push({ route, cipher, master: await openMaster(lab, route, cipher), mebibytes: 0 })
      }
    }
    for (const what of options.transfers) {
      options.progress(what)
      for (let round = 0; round < options.rounds; round++) {
        for (const line of shuffled(lines.filter(({ route }) => isMeasured(what, route)))) {
          const { route, cipher, master } = line
          const copy = join(folder, 'copy')
          await transfer(lab, master, what, warm, copy)
          const cost = await transfer(lab, master, what, file, copy)
          line.mebibytes += WARM_UP_MIB + options.mebibytes
          steady.samples.push({ route, cipher, transfer: what, ...perGib(cost, options.mebibytes) })
        }
      }
    }
  } finally {
    for (const line of lines) steady.ends.push(await end(lab, line))
  }
  return steady
}

function perGib(cost: Cost, mebibytes: number): Cost {
  const each = (value: number): number => (value * MIB_PER_GIB) / mebibytes
  return {
    seconds: each(cost.seconds),
    client: each(cost.client),
    target: each(cost.target),
    jump: each(cost.jump),
    broker: {
      all: each(cost.broker.all),
      threads: Object.fromEntries(
        Object.entries(cost.broker.threads).map(([name, value]) => [name, each(value)]),
      ),
    },
  }
}

async function end(lab: Lab, { route, cipher, master, mebibytes }: Line): Promise<End> {
  const before = lab.broker.spent()
  await master.close()
  await sleep(INDEXING_MS)
  await lab.broker.quiet()
  return {
    route,
    cipher,
    gib: mebibytes / MIB_PER_GIB,
    broker: between(before, lab.broker.spent()),
  }
}

const figure = (value: number | undefined): string =>
  value === undefined || Number.isNaN(value) ? '-' : value.toFixed(2)

/** Returns the tables: processor time, elapsed time, the broker's threads, and the ends of sessions. */
export function showSteady({ samples, ends }: Steady, { routes }: Pick<SteadyOptions, 'routes'>): string {
  const brokers = routes.filter(isBroker)
  const kinds = [...new Set(samples.map(({ transfer, cipher }) => `${transfer} ${cipher}`))]
  const of = (kind: string, route: Route, value: (sample: Sample) => number): number =>
    median(
      samples
        .filter((sample) => `${sample.transfer} ${sample.cipher}` === kind && sample.route === route)
        .map(value),
    )
  const processor = table([
    ['CPU, s/GiB', 'direct: client + target', 'ssh -J: client + target', '+ jump', ...brokers],
    ...kinds.map((kind) => {
      const ends = (route: Route): string =>
        `${figure(of(kind, route, (one) => one.client))} + ${figure(of(kind, route, (one) => one.target))}`
      return [
        kind,
        ends('direct'),
        ends('jump'),
        figure(of(kind, 'jump', (one) => one.jump)),
        ...brokers.map((route) => figure(of(kind, route, (one) => one.broker.all))),
      ]
    }),
  ])
  const elapsed = table([
    ['wall', 'direct, s/GiB', 'ssh -J, s/GiB', ...brokers.flatMap((route) => [route, '/direct', '/ssh -J'])],
    ...kinds.map((kind) => {
      const seconds = (route: Route): number => of(kind, route, (one) => one.seconds)
      return [
        kind,
        figure(seconds('direct')),
        figure(seconds('jump')),
        ...brokers.flatMap((route) => [
          figure(seconds(route)),
          figure(seconds('direct') / seconds(route)),
          figure(seconds('jump') / seconds(route)),
        ]),
      ]
    }),
  ])
  const rows = kinds.flatMap((kind) =>
    brokers
      .map((route) => ({ name: `${kind}, ${route}`, kind, route }))
      .filter(({ kind, route }) => !Number.isNaN(of(kind, route, (one) => one.broker.all))),
  )
  const named = (values: readonly { broker: Spent }[]): string[] => [
    ...new Set(values.flatMap(({ broker }) => Object.keys(broker.threads))),
  ]
  const names = named(samples).sort()
  const threads = table([
    ['threads of the broker, s/GiB', ...names],
    ...rows.map(({ name, kind, route }) => [
      name,
      ...names.map((thread) => figure(of(kind, route, (one) => one.broker.threads[thread] ?? 0))),
    ]),
  ])
  const after = ends.filter(({ route, gib }) => isBroker(route) && gib > 0)
  const endNames = named(after).sort()
  const atEnd = table([
    ['after the last byte, s/GiB', 'GiB', 'all', ...endNames],
    ...after.map(({ route, cipher, gib, broker }) => [
      `${route} ${cipher}`,
      figure(gib),
      figure(broker.all / gib),
      ...endNames.map((name) => figure((broker.threads[name] ?? 0) / gib)),
    ]),
  ])
  return [processor, elapsed, threads, atEnd].join('\n\n')
}
