/**
 * The cost of lists and searches in a large estate: 100,000 devices with an account each, 10,000 users, one
 * user with 10,000 targets. Run it by hand; it measures and never fails. It measures the broker's processor
 * time in all threads, which is the same on a busy machine.
 *
 *   node test/bench/api-search.ts [COUNT]
 */
import { dirname, join } from 'node:path'
import { startHarness } from '../api/harness.ts'
import { fillToSize } from '../store/at-size.ts'
import { median, percentile, table } from './stats.ts'

const ROUNDS = 15

const QUERIES: [what: string, path: string][] = [
  ['first page', '/accounts'],
  ['last page', '/accounts?offset=99900'],
  ['by name, one', '/accounts?q=account_name=svc4711'],
  ['by name, half of them', '/accounts?q=account_name=root'],
  ['by the beginning of the name', '/accounts?q=account_name~svc47*'],
  ['by device', '/accounts?q=device=srv4711'],
  ['by domain, half of them', '/accounts?q=domain=local'],
  ['by domain, one', '/accounts?q=domain=corp'],
  ['by the beginning of the device', '/accounts?q=device~srv471*'],
  ['by device and name', '/accounts?q=device=srv4711 %26%26 account_name=root'],
  ['by device or name', '/accounts?q=device=srv4711 || account_name=svc4711'],
  ['a part of the name', '/accounts?q=account_name~4711'],
  ['a part of the description', '/accounts?q=description~4711'],
  ['without a device', '/accounts?q=device=""'],
  ['sorted by device', '/accounts?sort=device'],
  [
    'the worst',
    `/accounts?q=${Array.from({ length: 8 }, (_, one) => `description~a*b*c*d*e*${one}`).join('||')}`,
  ],
  ['one device', '/devices/srv4711'],
  ['one account', '/accounts/root@local@srv4712'],
  ['an account that half of the devices have', '/accounts/root@local'],
  ['devices: by host', '/devices?q=host=10.0.18.103'],
  ['targets: first page', '/targets'],
  ['targets: pattern', '/targets?q=srv471*'],
  ['targets: expression', '/targets?q=device~srv471*'],
  ['session rights', '/sessionrights?user=ops1'],
  ['session rights, all', '/sessionrights?user=ops1&limit=-1'],
]

const count = Number(process.argv[2] ?? 100_000)
const h = await startHarness()
try {
  const path = join(dirname(h.certPath), 'sallyport.db')
  fillToSize(path, { devices: count, targets: count / 10, sessions: 0 })
  await h.store.users.update((await h.store.users.find('admin'))!.id, { groupIds: ['UG'] })
  const cookie = await h.signIn()
  const rows: string[][] = [['', 'found', 'CPU ms, median', 'p95']]
  for (const [what, path] of QUERIES) {
    const samples: number[] = []
    let found = ''
    for (let round = 0; round < ROUNDS; round++) {
      const begin = process.cpuUsage()
      const answer = await h.api.inject({
        method: 'GET',
        url: `/api${path.replaceAll(' ', '%20')}`,
        headers: { cookie },
      })
      const { user, system } = process.cpuUsage(begin)
      samples.push((user + system) / 1000)
      found = String(answer.headers['x-total-count'] ?? answer.statusCode)
    }
    rows.push([what, found, median(samples).toFixed(1), percentile(samples, 0.95).toFixed(1)])
  }
  process.stdout.write(`${table(rows)}\n`)
} finally {
  await h.close()
}
