/** The time from a key to its echo, in a quiet system and beside bulk sessions on the same route. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ended } from './clients.ts'
import { hostOf, type Lab, type Route } from './routes.ts'
import { median, percentile, shuffled, table } from './stats.ts'

const BULK_SESSIONS = 4
const WARM_UP = 50
/** Time for the bulk sessions to sign in and to reach their rate. */
const BULK_START_MS = 2_000

export interface Echoes {
  route: Route
  /** Milliseconds. */
  quiet: number[]
  besideBulk: number[]
}

/** Measures each route `rounds` times in random order; `file` is what the bulk sessions read. */
export async function measureEcho(
  lab: Lab,
  file: string,
  { rounds, count, routes }: { rounds: number; count: number; routes: readonly Route[] },
): Promise<Echoes[]> {
  const all = routes.map((route): Echoes => ({ route, quiet: [], besideBulk: [] }))
  for (let round = 0; round < rounds; round++) {
    for (const one of shuffled(all)) {
      one.quiet.push(...(await echoes(lab, one.route, count)))
      one.besideBulk.push(...(await echoesBesideBulk(lab, one.route, count, file)))
    }
  }
  return all
}

async function echoesBesideBulk(lab: Lab, route: Route, count: number, file: string): Promise<number[]> {
  const sink = openSync('/dev/null', 'w')
  const bulk = Array.from({ length: BULK_SESSIONS }, () =>
    spawn('ssh', [...lab.options, hostOf(route), `while cat ${file}; do :; done`], {
      stdio: ['ignore', sink, 'inherit'],
    }),
  )
  const over = bulk.map(ended)
  try {
    await sleep(BULK_START_MS)
    return await echoes(lab, route, count)
  } finally {
    for (const one of bulk) one.kill('SIGTERM')
    await Promise.all(over)
    closeSync(sink)
    await Promise.all([lab.broker.quiet(), lab.target.quiet()])
  }
}

/** Returns milliseconds from a key to its echo in a session, `count` times, with a millisecond between. */
async function echoes(lab: Lab, route: Route, count: number): Promise<number[]> {
  const child = spawn('ssh', ['-tt', ...lab.options, hostOf(route)], { stdio: ['pipe', 'pipe', 'inherit'] })
  await waitFor(child, lab.user.prompt)
  // From here on the terminal itself does not echo; cat sends back its input.
  child.stdin?.write("stty raw -echo; printf 're''ady'; exec cat\r")
  await waitFor(child, 'ready')
  const samples: number[] = []
  for (let round = -WARM_UP; round < count; round++) {
    const begin = performance.now()
    await new Promise<void>((resolve) => {
      child.stdout?.once('data', () => resolve())
      child.stdin?.write('x')
    })
    if (round >= 0) samples.push(performance.now() - begin)
    await sleep(1)
  }
  child.kill('SIGTERM')
  await ended(child)
  return samples
}

function waitFor(child: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let seen = ''
    const look = (data: Buffer): void => {
      seen += data.toString('latin1')
      if (!seen.includes(text)) return
      child.stdout?.off('data', look)
      child.off('close', gone)
      resolve()
    }
    const gone = (): void => reject(new Error(`ssh ended before ${JSON.stringify(text)} came: ${seen}`))
    child.stdout?.on('data', look)
    child.on('close', gone)
  })
}

export function showEcho(all: readonly Echoes[]): string {
  const direct = all.find(({ route }) => route === 'direct')
  const columns = (samples: readonly number[], base: readonly number[] | undefined): string[] =>
    [median, (values: readonly number[]) => percentile(values, 0.99)].flatMap((value) => [
      value(samples).toFixed(2),
      base ? `× ${(value(samples) / value(base)).toFixed(2)}` : '-',
    ])
  const bulk = `beside ${BULK_SESSIONS} bulk`
  return table([
    ['echo, ms', 'p50', '/direct', 'p99', '/direct', `${bulk}: p50`, '/direct', 'p99', '/direct'],
    ...all.map(({ route, quiet, besideBulk }) => [
      route,
      ...columns(quiet, direct?.quiet),
      ...columns(besideBulk, direct?.besideBulk),
    ]),
  ])
}
