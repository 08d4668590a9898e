import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { migrate } from '../../src/store/migrate.ts'
import * as terminals from '../../src/store/migrations/0010-terminals.ts'
import * as vnc from '../../src/store/migrations/0011-vnc.ts'
import * as rdp from '../../src/store/migrations/0012-rdp.ts'

it.each([
  [terminals, 'Telnet', ['TELNET', 'RLOGIN']],
  [vnc, 'Vnc', ['VNC']],
  [rdp, 'Rdp', ['RDP']],
])(
  'a policy of somebody’s own that is called like the new ones is called otherwise',
  (migration, own, made) => {
    const database = new DatabaseSync(':memory:')
    database.exec(`
    create table connection_policies (id text primary key, policy_name text, name_key text unique, description text,
      protocol text, host_key_policy text, is_factory integer);
    insert into connection_policies values ('01OWN', '${own}', '${own.toLowerCase()}', '', 'SSH', 'pinned', 0)
  `)
    migrate(database, 0, [migration])
    const rows = database
      .prepare('select policy_name, name_key, is_factory from connection_policies order by id')
      .all()
    expect(rows.map((row) => Object.values(row))).toEqual([
      ...made.map((name) => [name, name.toLowerCase(), 1]),
      [`${own}-01OWN`, `${own.toLowerCase()}-01own`, 0],
    ])
    database.close()
  },
)
