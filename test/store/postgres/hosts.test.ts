/** A database of several hosts, with real ones: which is the primary, and what stands in its place. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Kysely, sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { PostgresHost, PostgresPlace } from '../../../src/model/database.ts'
import { Secret } from '../../../src/model/secret.ts'
import { CLAIM, Claim } from '../../../src/store/postgres/claim.ts'
import { PostgresEngineDialect } from '../../../src/store/postgres/dialect.ts'
import { ListReader } from '../../../src/store/postgres/lists.ts'
import { Pool } from '../../../src/store/postgres/pool.ts'
import { Primary } from '../../../src/store/postgres/primary.ts'
import { PostgresReach } from '../../../src/store/postgres/reach.ts'
import { Timelines } from '../../../src/store/postgres/timelines.ts'
import { type PgBouncer, startPgBouncer } from '../../peers/pgbouncer.ts'
import { type Postgres, type Standby, startPostgres } from '../../peers/postgres.ts'
import { freePort } from '../../peers/process.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { OWNER } from '../../peers/sql.ts'
import { until } from '../../until.ts'

const HOST = '127.0.0.1'
const placeOf = (...ports: number[]): PostgresPlace => ({
  hosts: ports.map((port): PostgresHost => ({ host: HOST, port })),
  user: OWNER,
  database: 'postgres',
})

let pools: Pool[]
beforeEach(() => {
  pools = []
})
afterEach(async () => {
  await Promise.all(pools.map((pool) => pool.close()))
})

function poolOf(place: PostgresPlace): Pool {
  const pool = new Pool(place, new Primary(place), 2)
  pools.push(pool)
  return pool
}

function kyselyOn(pool: Pool): Kysely<unknown> {
  const lists = new ListReader('/nonexistent')
  return new Kysely({
    dialect: new PostgresEngineDialect({ pool, reading: pool, lists, searchMs: 1000 }),
  })
}

const portOf = async (pool: Pool) =>
  (await pool.query<{ port: string }>("select current_setting('port') as port", []))[0]?.port

describeWithPeers('a database of several hosts', ['initdb', 'postgres', 'pg_basebackup'], () => {
  let primary: Postgres
  let standby: Standby
  beforeEach(async () => {
    primary = await startPostgres()
    standby = await primary.standby()
  })
  afterEach(async () => {
    await standby.stop()
    await primary.stop()
  })

  test('is the one that takes writes, in whatever order they are named', async () => {
    const absent = await freePort()
    for (const ports of [
      [standby.port, primary.port],
      [absent, standby.port, primary.port],
      [primary.port, absent],
    ])
      expect(await portOf(poolOf(placeOf(...ports)))).toBe(String(primary.port))
  })

  test('is the standby when it has been promoted, and the old one is gone', async () => {
    const pool = poolOf(placeOf(primary.port, standby.port))
    expect(await portOf(pool)).toBe(String(primary.port))
    await primary.kill()
    // The connection at hand is lost, and the next one is to the new primary.
    await expect(portOf(pool)).rejects.toMatchObject({ name: 'StoreUnavailableError' })
    await expect(portOf(pool)).rejects.toThrow(`none of its hosts takes writes (${HOST}:${primary.port}: `)
    await standby.promote()
    expect(await portOf(pool)).toBe(String(standby.port))
  })

  test('is not the former primary, once a process of the data folder has met the new one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-hosts-'))
    const found = async (...ports: number[]) => {
      const primaryNow = new Primary(placeOf(...ports), new Timelines(folder))
      await primaryNow.find()
      return primaryNow.current.port
    }
    try {
      expect(await found(primary.port, standby.port)).toBe(primary.port)
      await standby.promote()
      // The former one still runs, and takes writes.
      expect(await found(primary.port)).toBe(primary.port)
      expect(await found(standby.port)).toBe(standby.port)
      const seen = readFileSync(join(folder, 'database.timeline'), 'latin1')
      expect(seen).toMatch(/^\d+ 00000002\n$/)
      await expect(found(primary.port)).rejects.toThrow(
        'it is of timeline 00000001, and this bastion has worked with 00000002: another server has taken over',
      )
      expect(await found(primary.port, standby.port)).toBe(standby.port)
      // A server that hides its identifier may be another one than the last that did.
      await primary.sql(
        "revoke execute on function pg_control_system() from public; create role plain login password 'x'",
      )
      const plain = { ...placeOf(primary.port), user: 'plain', password: Secret.of('x') }
      const hiding = new Primary(plain, new Timelines(folder))
      await hiding.find()
      expect(readFileSync(join(folder, 'database.timeline'), 'latin1')).toBe(seen)
      // A new server, to which the data were carried.
      writeFileSync(join(folder, 'database.timeline'), seen.replace(/^\d+/, '1'))
      expect(await found(primary.port)).toBe(primary.port)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('is the later one of two that take writes, though the former one answers first', async () => {
    await standby.promote()
    await until('it takes writes', async () => {
      const [row] = await standby.sql('select pg_is_in_recovery() as standby')
      return row?.['standby'] === false || undefined
    })
    /** An address of a server, whose answers wait for `begin`; `onEnd` is called when a client is done. */
    const behind = async (to: number, begin: Promise<void>, onEnd: () => void) => {
      const proxy = createServer((near) => {
        const far = connect(to, HOST)
        near.pipe(far)
        void begin.then(() => far.pipe(near))
        near.on('close', onEnd)
        for (const socket of [near, far]) socket.on('error', () => near.destroy())
      })
      await new Promise<void>((resolve) => proxy.listen(0, HOST, resolve))
      proxy.unref()
      return (proxy.address() as { port: number }).port
    }
    let answered = () => {}
    const first = new Promise<void>((resolve) => {
      answered = resolve
    })
    const former = await behind(primary.port, Promise.resolve(), () => answered())
    const later = await behind(standby.port, first, () => undefined)
    const found = new Primary(placeOf(former, later))
    await found.find()
    expect(found.current.port).toBe(later)
  })

  test('is another cluster at an earlier timeline, but no former primary, within one process too', async () => {
    const { place, serve } = await movable()
    const met = new Primary(place)
    await standby.promote()
    serve(standby.port)
    await met.find()
    serve(primary.port)
    await expect(met.find()).rejects.toThrow(
      'it is of timeline 00000001, and another host has taken over with 00000002 (if it was put back',
    )
    const other = await startPostgres()
    try {
      serve(other.port)
      await met.find()
    } finally {
      await other.stop()
    }
  })

  /** An address behind which ever other servers stand. */
  async function movable() {
    let port = 0
    const proxy = createServer((near) => {
      const far = connect(port, HOST)
      near.pipe(far).pipe(near)
      for (const socket of [near, far]) socket.on('error', () => near.destroy())
    })
    await new Promise<void>((resolve) => proxy.listen(0, HOST, resolve))
    proxy.unref()
    return {
      place: placeOf((proxy.address() as { port: number }).port),
      serve: (to: number) => {
        port = to
      },
    }
  }

  test('a commit that was cut off while it waited for the standby counts when the standby has it', async () => {
    await primary.sql('create table kept (note text)')
    await primary.sql("alter system set synchronous_standby_names = '*'")
    await primary.sql('select pg_reload_conf()')
    const some = async (text: string) => (await primary.sql(text)).length > 0 || undefined
    await until('it is followed', () => some("select 1 from pg_stat_replication where sync_state = 'sync'"))
    const waiting = "from pg_stat_activity where wait_event = 'SyncRep'"
    standby.freeze()
    let isDone = false
    const done = kyselyOn(poolOf(placeOf(primary.port)))
      .transaction()
      .execute((tx) => sql`insert into kept values ('x')`.execute(tx))
      .finally(() => {
        isDone = true
      })
    await until('the commit waits', () => some(`select 1 ${waiting}`))
    await primary.sql(`select pg_terminate_backend(pid) ${waiting}`)
    await until('it stands', () => some('select 1 from kept'))
    await until('it is asked about', async () => isDone || (await some(`select 1 ${waiting}`)))
    expect(isDone).toBe(false)
    standby.thaw()
    await done
  })

  test('a standby alone is refused in words', async () => {
    await expect(portOf(poolOf(placeOf(standby.port)))).rejects.toThrow(
      'the database cannot be used: it is a standby, which takes no writes',
    )
  })

  test('a watch over a standby keeps no connection of its questions', async () => {
    const place = placeOf(standby.port)
    const options = { place, primary: new Primary(place), now: Date.now, onAway: () => undefined }
    const reach = new PostgresReach(options)
    reach.start()
    await until('it is away', () => reach.away)
    const open = async () =>
      (await standby.sql("select 1 from pg_stat_activity where application_name like 'sallyport%'")).length
    // Four questions later; each is asked and ended in turn.
    await sleep(2_000)
    expect(await open()).toBeLessThan(3)
    await reach.close()
  })

  test('a host that accepts and says nothing does not hold up the others', async () => {
    const held: Socket[] = []
    const silent: Server = createServer((socket) => held.push(socket))
    await new Promise<void>((resolve) => silent.listen(0, HOST, resolve))
    const { port } = silent.address() as { port: number }
    const place = placeOf(port, primary.port)
    const found = new Primary(place)
    await found.find()
    expect(found.current.port).toBe(primary.port)
    for (const socket of held) socket.destroy()
    silent.close()
  })
})

describeWithPeers('a server', ['initdb', 'postgres', 'pgbouncer'], () => {
  let server: Postgres
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  test.each([
    [[], 'unsupported startup parameter'],
    [['options'], 'a connection pooler such as PgBouncer stands before it'],
  ])('behind PgBouncer is refused in words (%j dropped)', async (ignored, words) => {
    const bouncer: PgBouncer = await startPgBouncer(server, ignored)
    try {
      await expect(portOf(poolOf(placeOf(bouncer.port)))).rejects.toThrow(words)
      const several = poolOf(placeOf(bouncer.port, bouncer.port))
      await expect(portOf(several)).rejects.toThrow(words)
    } finally {
      await bouncer.stop()
    }
  })

  test('whose connections are ended does not end the process', async () => {
    const pool = poolOf(placeOf(server.port))
    const client = await pool.take()
    const [idle] = await pool.query<{ pid: number }>('select pg_backend_pid() as pid', [])
    await server.sql('select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()')
    await expect(client.query('select 1')).rejects.toThrow()
    client.release(true)
    // The first query may still meet the connection that has just been ended.
    const next = await until('a query on another connection', async () => {
      const [row] = await pool.query<{ pid: number }>('select pg_backend_pid() as pid', []).catch(() => [])
      return row
    })
    expect(next.pid).not.toBe(idle!.pid)
  })

  // A connection through this ends when the server's answer to `until` would come back.
  async function cutter(until: string, reachesServer: boolean) {
    let isArmed = true
    const proxy = createServer((near) => {
      const far = connect(server.port, HOST)
      let isCut = false
      const end = () => {
        near.destroy()
        far.destroy()
      }
      near.on('data', (data) => {
        if (isArmed && data.includes(until)) {
          isArmed = false
          isCut = true
          if (!reachesServer) return end()
        }
        far.write(data)
      })
      far.on('data', (data) => (isCut ? end() : near.write(data)))
      for (const socket of [near, far]) socket.on('error', end).on('close', end)
    })
    await new Promise<void>((resolve) => proxy.listen(0, HOST, resolve))
    return { port: (proxy.address() as { port: number }).port, close: () => proxy.close() }
  }

  test.each([
    ['stands', true],
    ['does not stand', false],
  ])('whose answer to a commit is lost is asked: it %s', async (_, stands) => {
    await server.sql('create table if not exists kept (note text)')
    await server.sql('delete from kept')
    const proxy = await cutter('commit\0', stands)
    const db = kyselyOn(poolOf(placeOf(proxy.port)))
    try {
      const done = db.transaction().execute(async (tx) => {
        await sql`insert into kept values ('x')`.execute(tx)
        return 'done'
      })
      if (stands) expect(await done).toBe('done')
      else await expect(done).rejects.toMatchObject({ name: 'StoreUnavailableError' })
      expect(await server.sql('select * from kept')).toHaveLength(stands ? 1 : 0)
    } finally {
      proxy.close()
    }
  })

  test('that is silent after its first words keeps no connection of a watch that has given up', async () => {
    const near: Socket[] = []
    const proxy = createServer((socket) => {
      near.push(socket)
      const onward = connect(server.port, HOST)
      socket.on('data', (data) => onward.write(data)).on('error', () => undefined)
      socket.on('close', () => onward.destroy())
      onward.once('data', (data) => socket.write(data)).on('error', () => undefined)
    })
    await new Promise<void>((resolve) => proxy.listen(0, HOST, resolve))
    const place = placeOf((proxy.address() as { port: number }).port)
    const reach = new PostgresReach({
      place,
      primary: new Primary(place),
      now: Date.now,
      onAway: () => undefined,
    })
    reach.start()
    await until('a second question', () => near[1])
    await until('the end of the first', () => near[0]!.destroyed || undefined)
    await reach.close()
    for (const socket of near) socket.destroy()
    proxy.close()
  })

  test('that takes a lost connection for alive gives the claim back to its broker', async () => {
    const near = new Set<Socket>()
    const far: Socket[] = []
    const proxy = createServer((socket) => {
      const onward = connect(server.port, HOST)
      near.add(socket)
      far.push(onward)
      socket.on('data', (data) => onward.write(data)).on('error', () => undefined)
      onward.on('data', (data) => socket.destroyed || socket.write(data)).on('error', () => undefined)
    })
    await new Promise<void>((resolve) => proxy.listen(0, HOST, resolve))
    const place = placeOf((proxy.address() as { port: number }).port)
    const taken: Error[] = []
    const claim = await Claim.open(place, new Primary(place), (error) => taken.push(error))
    const holder = async () =>
      (await server.sql(`select pid from pg_locks where locktype = 'advisory' and objid = ${CLAIM}`))[0]?.pid
    const before = await holder()
    for (const socket of near) socket.destroy()
    await until('another connection has it', async () => {
      const now = await holder()
      return (now !== undefined && now !== before) || undefined
    })
    expect(taken).toEqual([])
    await claim.release()
    for (const socket of [...near, ...far]) socket.destroy()
    proxy.close()
  })
})
