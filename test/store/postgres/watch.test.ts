/** The watch over a real server whose standby is lost, or that has no room for one statement. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PostgresPlace } from '../../../src/model/database.ts'
import { MIGRATIONS } from '../../../src/store/migrate.ts'
import { openPostgres } from '../../../src/store/postgres/open.ts'
import { Primary } from '../../../src/store/postgres/primary.ts'
import { PostgresReach } from '../../../src/store/postgres/reach.ts'
import { type Postgres, startPostgres } from '../../peers/postgres.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { OWNER } from '../../peers/sql.ts'
import { until } from '../../until.ts'

describeWithPeers('the watch over a server', ['initdb', 'postgres'], () => {
  let server: Postgres
  let folder: string
  beforeAll(async () => {
    server = await startPostgres()
    folder = mkdtempSync(join(tmpdir(), 'sallyport-watch-'))
  })
  afterAll(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const placeOf = (database: string): PostgresPlace => ({
    hosts: [{ host: '127.0.0.1', port: server.port }],
    user: OWNER,
    database,
  })

  async function standbys(names: string): Promise<void> {
    await server.sql(`alter system set synchronous_standby_names = '${names}'`)
    await server.sql('select pg_reload_conf()')
  }

  test('whose standby is lost has no more connections of it than two', async () => {
    const place = placeOf('postgres')
    const reach = new PostgresReach({
      place,
      primary: new Primary(place),
      now: Date.now,
      onAway: () => undefined,
    })
    const pids = async () =>
      (await server.sql("select pid from pg_stat_activity where application_name like 'sallyport%'")).map(
        ({ pid }) => pid,
      )
    reach.start()
    try {
      await until('it is asked', async () => (await pids()).length > 0 || undefined)
      await standbys('gone')
      await until('it is away', () => reach.away, 30_000)
      const seen = new Set<unknown>()
      await until(
        'three more questions',
        async () => {
          const now = await pids()
          expect(now.length).toBeLessThan(3)
          for (const pid of now) seen.add(pid)
          return seen.size > 3 || undefined
        },
        30_000,
      )
      await standbys('')
      await until('it is back', () => reach.away === undefined || undefined, 30_000)
    } finally {
      await standbys('')
      await reach.close()
    }
  }, 300_000)

  test('without room for one statement is not away for the others', async () => {
    await server.sql('create database roomy')
    await server.sql(
      `create function lacks() returns int language plpgsql as $$ begin raise exception sqlstate '53100'
        using message = 'could not resize shared memory segment'; end $$`,
      'roomy',
    )
    const options = { now: Date.now, migrations: MIGRATIONS }
    const { db, reach } = await openPostgres({ postgres: placeOf('roomy'), folder }, options)
    const changes: unknown[] = []
    try {
      const other = sql`select pg_sleep(1)`.execute(db)
      await sleep(200)
      await expect(sql`select lacks()`.execute(db)).rejects.toMatchObject({ isFull: true })
      reach.onChange((away) => changes.push(away))
      expect(reach.away).toBeUndefined()
      await other
      expect(changes).toEqual([])
    } finally {
      await db.destroy()
    }
  })
})
