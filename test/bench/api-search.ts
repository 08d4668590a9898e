/**
 * The cost of lists and searches in a large estate: 100,000 devices with an account each, 10,000 users, one
 * user with 10,000 targets. Run it by hand; it measures and never fails. It measures the broker's processor
 * time in all threads, which is the same on a busy machine.
 *
 *   node test/bench/api-search.ts [COUNT]
 */
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { startHarness } from '../api/harness.ts'
import { newUser } from '../store/fixture.ts'
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
  ['session rights', '/sessionrights?user=ops'],
  ['session rights, all', '/sessionrights?user=ops&limit=-1'],
]

const count = Number(process.argv[2] ?? 100_000)
const h = await startHarness()
try {
  fill(join(dirname(h.certPath), 'sallyport.db'), count)
  await h.store.users.update((await h.store.users.find('admin'))!.id, { groupIds: ['UG'] })
  const user = await h.store.users.create(newUser('ops', { groupIds: ['UG'] }))
  if (user.groupIds.length !== 1) throw new Error('the user is in no group')
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

/** Writes into the tables directly: the API would take minutes. */
function fill(path: string, count: number): void {
  const database = new DatabaseSync(path)
  database.exec('begin')
  database.exec(
    "insert into domains (id, domain_name, name_key, description, device_id) values ('CORP', 'corp', 'corp', '', null)",
  )
  const devices = database.prepare(
    'insert into devices (id, device_name, name_key, host, description) values (?, ?, ?, ?, ?)',
  )
  const services = database.prepare(
    `insert into services (id, device_id, service_name, name_key, protocol, port, subprotocols, host_key_policy)
      values (?, ?, 'ssh', 'ssh', 'SSH', 22, '[]', 'first_sight')`,
  )
  const domains = database.prepare(
    "insert into domains (id, domain_name, name_key, description, device_id) values (?, 'local', 'local', '', ?)",
  )
  const accounts = database.prepare(
    'insert into accounts (id, account_name, name_key, account_login, domain_id, description) values (?, ?, ?, ?, ?, ?)',
  )
  const members = database.prepare(
    "insert into target_group_sessions (target_group_id, account_id, service_id) values ('TG', ?, ?)",
  )
  database.exec(`insert into user_groups (id, group_name, name_key, description) values ('UG', 'ug', 'ug', '');
    insert into target_groups (id, group_name, name_key, description) values ('TG', 'tg', 'tg', '');
    insert into authorizations (id, user_group_id, target_group_id, description, authorize_sessions,
      authorize_password_retrieval, subprotocols, is_recorded) values ('A', 'UG', 'TG', '', 1, 0, '[]', 1)`)
  for (let one = 0; one < count; one++) {
    const name = `srv${one}`
    devices.run(`D${one}`, name, name, `10.${one >> 16}.${(one >> 8) & 255}.${one & 255}`, `rack ${one % 97}`)
    services.run(`S${one}`, `D${one}`)
    domains.run(`L${one}`, `D${one}`)
    const [account, domain] =
      one % 2 === 0 ? ['root', `L${one}`] : [`svc${one}`, one % 4 === 1 ? 'CORP' : `L${one}`]
    accounts.run(`A${one}`, account, account, account, domain, `abcde abcde abcde number ${one} of them`)
    if (one < count / 10) members.run(`A${one}`, `S${one}`)
  }
  database.exec('commit')
  database.close()
}
