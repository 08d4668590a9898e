/** Sign-ins by key with one short command each, six at a time. */
import { timed } from './clients.ts'
import { between, type Spent } from './processor.ts'
import { hostOf, isBroker, type Lab, type Route } from './routes.ts'
import { median, shuffled, table } from './stats.ts'

const AT_A_TIME = 6

export interface Logins {
  route: Route
  perSecond: number
  /** Milliseconds of processor time for each login: of the broker until it rests, or of the jump host. */
  between: Spent
}

/** Measures each route `rounds` times in random order, after a round that warms up. */
export async function measureLogins(
  lab: Lab,
  { rounds, count, routes }: { rounds: number; count: number; routes: readonly Route[] },
): Promise<Logins[]> {
  for (const route of routes) await logins(lab, route, count)
  const all: Logins[] = []
  for (let round = 0; round < rounds; round++) {
    for (const route of shuffled(routes)) all.push(await logins(lab, route, count))
  }
  return all
}

async function logins(lab: Lab, route: Route, count: number): Promise<Logins> {
  const party = route === 'jump' ? lab.jump : lab.broker
  const before = party.spent()
  const begin = performance.now()
  let left = count
  const worker = async (): Promise<void> => {
    while (left-- > 0) await timed('ssh', [...lab.options, hostOf(route), 'true'])
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker))
  const perSecond = (count * 1000) / (performance.now() - begin)
  await party.quiet()
  const { all, threads } = between(before, party.spent())
  const each = (seconds: number): number => (seconds * 1000) / count
  return {
    route,
    perSecond,
    between: {
      all: each(all),
      threads: Object.fromEntries(Object.entries(threads).map(([name, value]) => [name, each(value)])),
    },
  }
}

export function showLogins(all: readonly Logins[], routes: readonly Route[]): string {
  const names = [
    ...new Set(
      all.filter(({ route }) => isBroker(route)).flatMap(({ between }) => Object.keys(between.threads)),
    ),
  ].sort()
  const of = (route: Route, value: (one: Logins) => number): string =>
    median(all.filter((one) => one.route === route).map(value)).toFixed(1)
  return table([
    [`logins, ${AT_A_TIME} at a time`, '1/s', 'CPU of broker or jump host, ms each', ...names],
    ...routes.map((route) => [
      route,
      of(route, (one) => one.perSecond),
      route === 'direct' ? '-' : of(route, (one) => one.between.all),
      ...names.map((name) => (isBroker(route) ? of(route, (one) => one.between.threads[name] ?? 0) : '-')),
    ]),
  ])
}
