/**
 * The longest pauses of event loops, of the broker and of each session worker, with many sessions: idle ones, with
 * a key every five seconds in each, while they sign in and while they end.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { LOOP_LOOK_MS } from '../../src/contract/worker.ts'
import { type Broker, metricsOf } from '../peers/broker.ts'
import { CrowdedBroker } from './crowded.ts'
import { median, table } from './stats.ts'

/** Time in which what the sign-ins left behind is collected. */
const SETTLE_MS = 10_000
/** In each window all sessions are reviewed at least once. */
const WINDOW_MS = 11_000
const KEY_MS = 5_000
const LAG = /^sallyport_(?:nodejs|worker)_eventloop_lag_max_seconds(?:\{worker="(\d+)"\})? (\S+)$/gm

export interface Pauses {
  what: string
  /** By the loop: the longest pause in each window, in milliseconds. */
  loops: Record<string, number[]>
}

export interface PausesOptions {
  sessions: number
  workers: number
  windows: number
  progress: (what: string) => void
}

export async function measurePauses({
  sessions,
  workers,
  windows,
  progress,
}: PausesOptions): Promise<Pauses[]> {
  const crowded = await CrowdedBroker.start(workers)
  const { broker } = crowded
  const quietly = async (what: string): Promise<Pauses> => {
    await sleep(SETTLE_MS)
    await longest(broker)
    const all: Pauses = { what, loops: {} }
    for (let window = 0; window < windows; window++) {
      await sleep(WINDOW_MS)
      add(all, await longest(broker))
    }
    return all
  }
  const during = async (what: string, work: Promise<void>): Promise<Pauses> => {
    await longest(broker)
    await work
    const all: Pauses = { what, loops: {} }
    add(all, await longest(broker))
    return all
  }
  try {
    const points = [await quietly('no session')]
    progress(`${sessions} sessions`)
    points.push(await during('while they sign in', crowded.open(sessions)))
    points.push(await quietly('idle'))
    progress('keys')
    await crowded.type(KEY_MS)
    points.push(await quietly('a key in each every 5 s'))
    await crowded.type(0)
    progress('the end of all')
    points.push(await during('while they end', crowded.close()))
    return points
  } finally {
    await crowded.stop()
  }
}

function add(all: Pauses, loops: Readonly<Record<string, number>>): void {
  for (const [loop, pause] of Object.entries(loops)) {
    all.loops[loop] ??= []
    all.loops[loop].push(pause)
  }
}

/** Returns the longest pause of each event loop since the last call, in milliseconds. */
async function longest(broker: Broker): Promise<Record<string, number>> {
  const lags = [...(await metricsOf(broker)).matchAll(LAG)].map(([, worker, seconds]): [string, number] => [
    worker === undefined ? 'broker' : `worker ${worker}`,
    // The time between two looks is counted into each delay.
    Math.max(0, Number(seconds) * 1000 - LOOP_LOOK_MS),
  ])
  if (lags.length === 0) throw new Error('the metrics have no delay of an event loop')
  return Object.fromEntries(lags)
}

export function showPauses(points: readonly Pauses[], sessions: number): string {
  const loops = [...new Set(points.flatMap((point) => Object.keys(point.loops)))]
  return table([
    [`longest pause at ${sessions} sessions, ms`, ...loops.flatMap((loop) => [`${loop}: median`, 'most'])],
    ...points.map((point) => [
      point.what,
      ...loops.flatMap((loop) => {
        const pauses = point.loops[loop] ?? []
        return [median(pauses).toFixed(1), Math.max(...pauses).toFixed(1)]
      }),
    ]),
  ])
}
