/** A copy that is interrupted: killed, cut off from its server, or between its last two commits. */
import { spawn } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { databaseFault } from '../../../src/store/open.ts'
import { sallyportCommand } from '../../peers/broker.ts'
import type { TestDatabase } from '../../peers/databases.ts'
import { until } from '../../until.ts'
import { appendEvents } from './filled.ts'
import {
  closeAll,
  copy,
  file,
  filled,
  once,
  open,
  pathOf,
  refusal,
  requireWhole,
  server,
  usePlaces,
} from './places.ts'

usePlaces()

/** Ends all connections to the database. */
async function cut(database: TestDatabase): Promise<void> {
  await database.sql(
    `select pg_terminate_backend(pid, 30000) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`,
  )
}

describe('an interrupted copy', () => {
  const EVENTS = 2000
  /** Stops the transaction with that row. */
  const STANDSTILL = `create function standstill() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return new; end $$;
    create trigger standstill before insert on audit for each row when (new.sequence = ${EVENTS}) execute function standstill()`
  const NO_END = `create function no() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
    create trigger no before delete on settings for each row execute function no()`

  it('that was killed goes on where it stood, and no broker starts on it before', async () => {
    await filled(file('a.db'), (store) => appendEvents(store, EVENTS, 1000))
    const to = await server()
    await to.sql(STANDSTILL)
    const args = ['store', 'copy', '--from', `sqlite:${pathOf('a.db')}`, '--to', to.url]
    const child = spawn(...sallyportCommand(args), { stdio: 'ignore' })
    const ended = new Promise<NodeJS.Signals | null>((resolve) => child.once('exit', (_, by) => resolve(by)))
    const standing = () =>
      to.sql("select pid from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()")
    await until(
      'a transaction in its middle',
      async () => ((await standing()).length > 0 ? true : undefined),
      30_000,
    )
    child.kill('SIGKILL')
    expect(await ended).toBe('SIGKILL')
    await cut(to)
    await to.sql('drop trigger standstill on audit')
    const [row] = await to.sql('select count(*) as n from audit')
    const before = Number(row?.['n'])
    expect(before).toBeGreaterThan(0)
    const words = `it is a copy of ${pathOf('a.db')} that is not finished`
    expect(await refusal(to)).toContain(words)
    expect(await databaseFault(to.place)).toContain(words)
    await expect(copy(to, file('b.db'))).rejects.toThrow('is itself an unfinished copy')
    await expect(copy(file('other.db'), to)).rejects.toThrow('there is no database')
    const seen: number[] = []
    const result = await copy(file('a.db'), to, {
      onProgress: ({ step, table, rows }) => {
        if (step === 'copy' && table === 'audit') seen.push(rows)
      },
    })
    expect(result).toMatchObject({ isResumed: true })
    expect(result.fault).toBeUndefined()
    expect(seen.at(-1)! + before).toBe(EVENTS + 20)
    await requireWhole(to, result)
  })

  it('whose connection was lost goes on; one whose source was used begins anew', async () => {
    const from = await server()
    await filled(from, (store) => appendEvents(store, 200))
    const once = copy(from, file('b.db'), {
      onProgress: async ({ table }) => {
        if (table === 'sessions') await cut(from)
      },
    })
    await expect(once).rejects.toThrow(/postgres:\/\/.*the same command goes on where it stood/)
    expect(await refusal(file('b.db'))).toContain('not finished')
    await expect(copy(file('a.db'), file('b.db'))).rejects.toThrow('there is no database')
    await filled(file('a.db'))
    await expect(copy(file('a.db'), file('b.db'))).rejects.toThrow('has an unfinished copy of postgres://')
    const store = await open(from)
    await store.users.remove((await store.users.find('user1'))!.id)
    await appendEvents(store, 1)
    await closeAll()
    const result = await copy(from, file('b.db'))
    expect(result).toMatchObject({ isResumed: false })
    expect(result.fault).toBeUndefined()
    expect(await (await open(file('b.db'))).users.find('user1')).toBeUndefined()
  })

  it('between the marks at its end goes on, and no broker may use either', async () => {
    await filled(file('a.db'))
    const to = await server()
    const broken = copy(file('a.db'), to, { onProgress: once('compare', () => to.sql(NO_END)) })
    await expect(broken).rejects.toThrow(/no \(P0001\); the copy is not finished/)
    expect(await refusal(file('a.db'))).toContain('are used there')
    expect(await refusal(to)).toContain('not finished')
    await to.sql('drop trigger no on settings')
    const result = await copy(file('a.db'), to)
    expect(result).toMatchObject({ isResumed: true })
    await requireWhole(to, result)
  })

  it('whose last answer was lost is done already; with other data in its place it is refused', async () => {
    await filled(file('a.db'))
    const to = await server()
    const first = await copy(file('a.db'), to)
    expect(first.isAlreadyDone).toBe(false)
    const again = await copy(file('a.db'), to)
    expect(again).toMatchObject({ isAlreadyDone: true, audit: { rows: first.audit.rows + 1 } })
    expect(again.fault ?? again.audit.fault).toBeUndefined()
    await requireWhole(to, first)
    expect(await copy(file('a.db'), to)).toMatchObject({ isAlreadyDone: true })
    expect(await refusal(file('a.db'))).toContain('are used there')
    // The same place, with other data.
    await to.sql("update audit set time = time + 1 where code = 'store.copy'")
    await expect(copy(file('a.db'), to)).rejects.toThrow('has data already')
  })
})
