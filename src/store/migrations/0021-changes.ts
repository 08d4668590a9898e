/**
 * The log of changes of rights. Triggers write it, so that no writer can forget to: not a repository, not another
 * program, not the removal of what belongs to a removed object.
 */
export const version = 21

/** For each table: the kind of object that a row is about, and the column of its id. Without one, it is about all. */
export type About = Readonly<Record<string, readonly [kind: string, column?: string]>>

const ABOUT: About = {
  users: ['user', 'id'],
  user_groups: ['user_group', 'id'],
  user_group_members: ['user', 'user_id'],
  authorizations: ['user_group', 'user_group_id'],
  target_groups: ['target_group', 'id'],
  target_group_sessions: ['service', 'service_id'],
  target_group_logins: ['service', 'service_id'],
  target_group_retrievals: ['account', 'account_id'],
  devices: ['device', 'id'],
  services: ['service', 'id'],
  domains: ['domain', 'id'],
  domain_authorities: ['domain', 'domain_id'],
  accounts: ['account', 'id'],
  account_credentials: ['account', 'account_id'],
  api_keys: ['api_key', 'id'],
  api_key_users: ['api_key', 'api_key_id'],
  api_key_groups: ['api_key', 'api_key_id'],
  profiles: ['everyone'],
  checkout_policies: ['everyone'],
  connection_policies: ['everyone'],
}

const noted = (kind: string, object: string) =>
  `insert into changes (kind, object) values ('${kind}', ${object});`

/** A row that is moved from one object to another changes both. */
function triggersOf([table, [kind, column]]: readonly [string, readonly [string, string?]]): [
  string,
  string,
][] {
  const [old, new_] = column === undefined ? ["''", "''"] : [`old.${column}`, `new.${column}`]
  const moved = `insert into changes (kind, object) select '${kind}', ${new_} where ${new_} <> ${old};`
  const trigger = (name: string, event: string, work: string): [string, string] => [
    name,
    `CREATE TRIGGER ${name} after ${event} on ${table} begin ${work} end`,
  ]
  return [
    trigger(`${table}_inserted`, 'insert', noted(kind, new_)),
    trigger(`${table}_updated`, 'update', `${noted(kind, old)} ${moved}`),
    trigger(`${table}_removed`, 'delete', noted(kind, old)),
  ]
}

/** Returns SQLite's triggers of the tables by their names, as its schema has them. */
export function sqliteTriggers(about: About): ReadonlyMap<string, string> {
  return new Map(Object.entries(about).flatMap(triggersOf))
}

export const TRIGGERS = sqliteTriggers(ABOUT)

/** Key of the lock that changes are noted under: `salc` as a number. */
export const LOCK = 0x73616c63

/** Returns PostgreSQL's triggers of the tables. */
export function postgresTriggers(about: About): string {
  return Object.entries(about).map(triggerOf).join('')
}

const triggerOf = ([table, about]: readonly [string, readonly [string, string?]]) => `
create trigger ${table}_changed after insert or update or delete on ${table}
  for each row execute function note_change(${about.map((word) => `'${word}'`).join(', ')});`

/** Several transactions write at a time: each waits for those that have noted something, as revisions promise. */
export const postgres = `
create table changes (
  revision bigint generated always as identity primary key,
  kind text collate "C" not null,
  object text collate "C" not null
);
create function note_change() returns trigger language plpgsql as $$
declare
  before text := '';
  becomes text := '';
begin
  perform pg_advisory_xact_lock(${LOCK});
  if tg_nargs = 2 and tg_op <> 'INSERT' then
    before := to_jsonb(old) ->> tg_argv[1];
  end if;
  if tg_nargs = 2 and tg_op <> 'DELETE' then
    becomes := to_jsonb(new) ->> tg_argv[1];
  end if;
  if tg_op <> 'INSERT' then
    insert into changes (kind, object) values (tg_argv[0], before);
  end if;
  if tg_op = 'INSERT' or (tg_op = 'UPDATE' and becomes <> before) then
    insert into changes (kind, object) values (tg_argv[0], becomes);
  end if;
  return null;
end $$;
${postgresTriggers(ABOUT)}
`

export const sql = `
create table changes (
  revision integer primary key autoincrement,
  kind text not null,
  object text not null
) strict;
${[...TRIGGERS.values()].map((trigger) => `${trigger};\n`).join('')}`
