/** Connections to a real server by TLS: its certificate is checked, and ours shown. */
import { chownSync, copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PostgresPlace } from '../../../src/model/database.ts'
import { EmptyDatabase } from '../../../src/store/copy/empty.ts'
import { copyInto } from '../../../src/store/copy/snapshot.ts'
import { databaseFault, openStore } from '../../../src/store/open.ts'
import { Pool } from '../../../src/store/postgres/pool.ts'
import { Primary } from '../../../src/store/postgres/primary.ts'
import { type Postgres, startPostgres } from '../../peers/postgres.ts'
import { run } from '../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../peers/program.ts'
import { OWNER } from '../../peers/sql.ts'

describeWithPeers('TLS to the database', ['initdb', 'postgres', 'openssl'], () => {
  let folder: string
  let server: Postgres
  const file = (name: string) => join(folder, name)

  async function openssl(...args: string[]): Promise<void> {
    const done = await run(findProgram('openssl'), args, { cwd: folder })
    if (done.code !== 0) throw new Error(`openssl: ${done.stderr}`)
  }

  /** Makes `NAME.key` and `NAME.crt`, signed by `authority`, or by itself as an authority. */
  async function certificate(name: string, extension: string, authority?: string): Promise<void> {
    const request = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-x509']
    const signed = authority === undefined ? [] : ['-CA', `${authority}.crt`, '-CAkey', `${authority}.key`]
    const names = ['-subj', `/CN=${name}`, '-addext', extension]
    await openssl(...request, '-keyout', `${name}.key`, '-out', `${name}.crt`, ...names, ...signed)
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-tls-'))
    for (const authority of ['authority', 'stranger'])
      await certificate(authority, 'basicConstraints=critical,CA:TRUE')
    await certificate('server', 'subjectAltName=DNS:localhost', 'authority')
    await certificate(OWNER, 'extendedKeyUsage=clientAuth', 'authority')
    server = await startPostgres({ listen_addresses: 'localhost' })
    const { uid, gid } = statSync(server.folder)
    for (const name of ['server.crt', 'server.key', 'authority.crt']) {
      copyFileSync(file(name), join(server.folder, name))
      chownSync(join(server.folder, name), uid, gid)
    }
    await server.sql("alter system set ssl_ca_file = 'authority.crt'")
    await server.sql('alter system set ssl = on')
    const hba = join(server.folder, 'pg_hba.conf')
    const strict = `hostssl other ${OWNER} all cert\nhostnossl other all all reject\n`
    writeFileSync(hba, `${strict}${readFileSync(hba, 'utf8')}host all ${OWNER} ::1/128 trust\n`)
    await server.sql('create database other')
    await server.sql('select pg_reload_conf()')
  })
  afterAll(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Returns the version of TLS of a connection. */
  async function connected(host: string, place: Pick<PostgresPlace, 'tls'> & { database?: string }) {
    const hosts = [{ host, port: server.port }]
    const whole: PostgresPlace = { user: OWNER, database: 'postgres', ...place, hosts }
    const pool = new Pool(whole, new Primary(whole), 1)
    try {
      const text = 'select version from pg_stat_ssl where pid = pg_backend_pid()'
      return (await pool.query<{ version: string | null }>(text, []))[0]?.version
    } finally {
      await pool.close()
    }
  }

  test('takes a certificate of the authority for the name', async () => {
    expect(await connected('localhost', { tls: { ca: file('authority.crt') } })).toBe('TLSv1.3')
  })

  test.each([
    ['for another name', '127.0.0.1', 'authority.crt', 'does not match'],
    ['of a stranger', 'localhost', 'stranger.crt', /certificate|signature/],
    ['of an authority that is not named', 'localhost', undefined, /certificate/],
  ])('refuses one %s', async (_, host, ca, words) => {
    const tls = ca === undefined ? {} : { ca: file(ca) }
    await expect(connected(host, { tls })).rejects.toMatchObject({ name: 'StoreUnavailableError' })
    await expect(connected(host, { tls })).rejects.toThrow(words)
  })

  test('so do the broker, a check, a backup and a restore, in words', async () => {
    const hosts = [{ host: '127.0.0.1', port: server.port }]
    const place = { hosts, user: OWNER, database: 'postgres', tls: { ca: file('authority.crt') } }
    const words = /^postgres:\/\/sallyport@127.0.0.1:.* does not match certificate's altnames/
    const { signal } = new AbortController()
    await expect(openStore({ postgres: place, folder })).rejects.toThrow(words)
    expect(await databaseFault(place)).toMatch(words)
    const copied = copyInto({ postgres: place }, file('copy.db'), { folder, now: Date.now, signal })
    await expect(copied).rejects.toThrow(words)
    await expect(EmptyDatabase.open(place, Date.now)).rejects.toThrow(words)
  })

  test('shows a certificate of our own where the server asks for one', async () => {
    const ca = file('authority.crt')
    const client = { certificate: file(`${OWNER}.crt`), key: file(`${OWNER}.key`) }
    expect(await connected('localhost', { database: 'other', tls: { ca, client } })).toBe('TLSv1.3')
    await expect(connected('localhost', { database: 'other', tls: { ca } })).rejects.toThrow('certificate')
    await expect(connected('localhost', { database: 'other' })).rejects.toThrow('28000')
  })

  test('a file that is missing is an error in words', async () => {
    const tls = { ca: file('absent.crt') }
    await expect(connected('localhost', { tls })).rejects.toThrow(/absent.crt/)
  })
})
