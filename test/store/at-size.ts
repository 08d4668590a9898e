/**
 * Fills a store to the size of a large installation. Writes into the tables directly: the API would need
 * minutes.
 */
import { DatabaseSync } from 'node:sqlite'

export interface Sizes {
  /** Each with a service, a local domain and an account. Every fourth account is of the domain `corp`. */
  devices: number
  /** Named `ops0` and so on, all in one group. */
  users?: number
  /** Targets that the group may open. */
  targets: number
  /** Sessions that have ended, one each ten seconds; a thousandth of them by each of `ops0` to `ops999`. */
  sessions: number
}

/** Fills the tables of a database that `openStore` has made. */
export function fillToSize(path: string, { devices, users = 10, targets, sessions }: Sizes): void {
  const database = new DatabaseSync(path)
  database.exec('pragma synchronous = off')
  database.exec('begin')
  database.exec(`
    insert into user_groups (id, group_name, name_key, description) values ('UG', 'ug', 'ug', '');
    insert into target_groups (id, group_name, name_key, description) values ('TG', 'tg', 'tg', '');
    insert into authorizations (id, user_group_id, target_group_id, description, authorize_sessions,
        authorize_password_retrieval, subprotocols, is_recorded)
      values ('AUTH', 'UG', 'TG', '', 1, 0, '["SSH_SHELL"]', 1);
    insert into domains (id, domain_name, name_key, description, device_id)
      values ('CORP', 'corp', 'corp', '', null);`)
  const run = (count: number, ...statements: string[]) => {
    const numbers = `with recursive n (n) as (select 0 union all select n + 1 from n where n < ${count - 1})`
    if (count > 0) for (const sql of statements) database.exec(sql.replace('NUMBERS', numbers))
  }
  run(
    users,
    `insert into users (id, user_name, name_key, display_name, email, profile, user_auths, ssh_public_keys,
        is_disabled, ip_source)
      NUMBERS select 'U' || n, 'ops' || n, 'ops' || n, '', '', 'user', '["local_password"]', '[]', 0, '[]' from n`,
    `insert into user_group_members (group_id, user_id) NUMBERS select 'UG', 'U' || n from n`,
  )
  run(
    devices,
    `insert into devices (id, device_name, name_key, host, description)
      NUMBERS select 'D' || n, 'srv' || n, 'srv' || n,
        '10.' || (n >> 16) || '.' || ((n >> 8) & 255) || '.' || (n & 255), 'rack ' || (n % 97) from n`,
    `insert into services (id, device_id, service_name, name_key, protocol, port, subprotocols, host_key_policy)
      NUMBERS select 'S' || n, 'D' || n, 'ssh', 'ssh', 'SSH', 22, '[]', 'first_sight' from n`,
    `insert into domains (id, domain_name, name_key, description, device_id)
      NUMBERS select 'L' || n, 'local', 'local', '', 'D' || n from n`,
    `insert into accounts (id, account_name, name_key, account_login, domain_id, description)
      NUMBERS select 'A' || n, name, name, name, domain, 'abcde abcde abcde number ' || n || ' of them'
      from (select n, iif(n % 2, 'svc' || n, 'root') as name, iif(n % 4 = 1, 'CORP', 'L' || n) as domain from n)`,
  )
  run(
    Math.min(targets, devices),
    `insert into target_group_sessions (target_group_id, account_id, service_id)
      NUMBERS select 'TG', 'A' || n, 'S' || n from n`,
  )
  run(
    sessions,
    `insert into sessions (id, begin_time, end_time, user_name, source_ip, protocol, subprotocols, account,
        domain, device, service, target_host, result, reason, authorization_name, is_recorded, bytes_in,
        bytes_out, recording)
      NUMBERS select printf('01%024d', n), 1700000000000 + n * 10000, 1700000005000 + n * 10000,
        'ops' || (n % 1000), '192.0.2.' || (n % 250), 'SSH', '["SSH_SHELL"]', 'svc' || (n % 5000), 'corp',
        'srv' || (n % 5000), 'ssh', '10.0.0.1', iif(n % 100 = 7, 'killed', 'success'), null, 'ug:tg', 1, 2000, 9000,
        '{"state":"sealed","size":12345,"frames":67,"digest":"' || printf('%064x', n) || '"}' from n`,
  )
  database.exec('commit')
  database.close()
}
