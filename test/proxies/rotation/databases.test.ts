/** Changes of passwords at real databases, by TLS with an authority of their own. */
import { chownSync, copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mysql } from '../../../proxies/rotation/mysql.ts'
import { postgresql } from '../../../proxies/rotation/postgresql.ts'
import { MARIADB_ADMIN, type Mariadb, startMariadb } from '../../peers/mariadb.ts'
import { type Postgres, startPostgres } from '../../peers/postgres.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { type CertificateFiles, certificateFiles } from '../../peers/vnc/certificate.ts'
import { changeBy, errorOf, inTime, outcomeOf, ownChange, signInOf, targetAt } from './targets.ts'

let certificate: CertificateFiles
let stranger: CertificateFiles
beforeAll(async () => {
  certificate = await certificateFiles()
  stranger = await certificateFiles()
})
afterAll(() => {
  certificate.remove()
  stranger.remove()
})

describeWithPeers('PostgreSQL', ['initdb', 'postgres'], () => {
  let server: Postgres
  const boss = { login: 'boss', password: 'Boss-Pass1' }
  const at = (parameters = {}, trusted = certificate) =>
    targetAt(server.port, parameters, { certificates: trusted.pem.cert })
  const verify = (login: string, password: string, target = at()) =>
    outcomeOf(postgresql.verify(target, signInOf(login, password), inTime()))

  beforeAll(async () => {
    server = await startPostgres({ log_statement: 'all' })
    const { uid, gid } = statSync(server.folder)
    for (const [from, to] of [
      [certificate.cert, 'server.crt'],
      [certificate.key, 'server.key'],
    ] as const) {
      copyFileSync(from, join(server.folder, to))
      chownSync(join(server.folder, to), uid, gid)
    }
    const hba = join(server.folder, 'pg_hba.conf')
    const rules =
      'host all open 127.0.0.1/32 trust\nhostnossl all plain 127.0.0.1/32 password\nhost all old 127.0.0.1/32 md5\n'
    writeFileSync(hba, `${rules}${readFileSync(hba, 'utf8')}`)
    await server.sql('alter system set ssl = on')
    for (const statement of [
      `create role boss login createrole password '${boss.password}'`,
      `create role "o'""dd role" login password 'Odd-Pass1'`,
      "create role alice login password 'Alice-Pass1'",
      "create role open login password 'Open-Pass1'",
      "create role plain login password 'Plain-Pass1'",
      "set password_encryption = 'md5'; create role old login password 'Old-Pass1'",
      'create role idle nologin',
      'select pg_reload_conf()',
    ])
      await server.sql(statement)
  })
  afterAll(() => server?.stop())

  test('a role changes its own password, and the log never has it', async () => {
    const next = `It's "q\\uoted" $1 %s`
    await postgresql.change(at(), ownChange('alice', 'Alice-Pass1', next), inTime())
    expect(await verify('alice', next)).toBe('valid')
    expect(await verify('alice', 'Alice-Pass1')).toBe('invalid')
    expect(server.log()).toContain('alter role "alice" password \'SCRAM-SHA-256$4096:')
    expect(server.log()).not.toContain('q\\uoted')
    const [stored] = await server.sql("select rolpassword from pg_authid where rolname = 'alice'")
    expect(stored?.['rolpassword']).toMatch(/^SCRAM-SHA-256\$4096:/)
  })

  test('an administrator changes the password of another role, whatever its name', async () => {
    const login = `o'"dd role`
    await postgresql.change(at(), changeBy(boss, login, 'Odd-Pass2'), inTime())
    expect(await verify(login, 'Odd-Pass2')).toBe('valid')
  })

  test('a password of MD5 becomes one of SCRAM', async () => {
    expect(await verify('old', 'Old-Pass1')).toBe('valid')
    await postgresql.change(at(), ownChange('old', 'Old-Pass1', 'Old-Pass2'), inTime())
    expect(await verify('old', 'Old-Pass2')).toBe('valid')
  })

  test('a sign-in that proves nothing, or fails for another reason, is no verdict', async () => {
    expect(await verify('open', 'anything')).toBe('unclear')
    expect(await verify('open', 'anything', at({ database: 'none' }))).toBe('unclear')
    expect(await verify('idle', 'anything')).toBe('invalid')
    expect(await verify('alice', '')).toBe('unsupported')
    // The server has judged the password before it looks for the database.
    expect(await verify('boss', boss.password, at({ database: 'none' }))).toBe('valid')
  })

  test('refusals leave all as it was, with the reason', async () => {
    const change = (...args: Parameters<typeof changeBy>) =>
      outcomeOf(postgresql.change(at(), changeBy(...args), inTime()))
    expect(await change({ login: 'old', password: 'Old-Pass2' }, 'boss', 'Boss-Pass2')).toBe('not_permitted')
    expect(await change(boss, 'nobody', 'Any-Pass1')).toBe('not_permitted')
    expect(await change({ ...boss, password: 'wrong' }, 'old', 'Any-Pass1')).toBe('refused_sign_in')
    expect(await change(boss, 'old', 'Paß-word1')).toBe('refused_password')
    expect(await verify('boss', boss.password)).toBe('valid')
    expect(await verify('old', 'Old-Pass2')).toBe('valid')
  })

  test('a server without a trusted certificate gets nothing, and one without TLS only a proof', async () => {
    expect(await verify('boss', boss.password, at({}, stranger))).toBe('untrusted')
    expect(await verify('boss', boss.password, at({ tls_name: 'other.test' }))).toBe('untrusted')
    expect(await verify('boss', boss.password, at({ tls_name: 'localhost' }))).toBe('valid')
    expect(await verify('boss', boss.password, at({ insecure: true }))).toBe('valid')
    // pg_hba.conf asks for the password itself.
    const plain = await errorOf(
      postgresql.verify(at({ insecure: true }), signInOf('plain', 'Plain-Pass1'), inTime()),
    )
    expect(plain).toMatchObject({ code: 'untrusted', message: expect.stringContaining('SCRAM only') })
  })

  test('a server that halts ends with the time of the job', async () => {
    server.freeze()
    try {
      const signal = AbortSignal.timeout(300)
      expect(await outcomeOf(postgresql.verify(at(), signInOf('boss', boss.password), signal))).toBe(
        'timeout',
      )
    } finally {
      server.thaw()
    }
  })
})

describeWithPeers('MariaDB', ['mariadbd'], () => {
  let server: Mariadb
  const at = (parameters = {}, trusted = certificate) =>
    targetAt(server.port, parameters, { certificates: trusted.pem.cert })
  const verify = (login: string, password: string, target = at()) =>
    outcomeOf(mysql.verify(target, signInOf(login, password), inTime()))

  beforeAll(async () => {
    server = await startMariadb(certificate)
    await server.sql(
      "create user alice@'%' identified by 'Alice-Pass1'",
      "create user `o'dd`@'%' identified by 'Odd-Pass-1'",
      "create user `o'dd`@'10.%' identified by 'Odd-Pass-1'",
      "create user late@'%' identified by 'Late-Pass1' password expire",
      "create user shut@'%' identified by 'Shut-Pass1' account lock",
      "create user local@'%' identified via unix_socket",
    )
  })
  afterAll(() => server?.stop())

  test.each([
    ['as it comes', ''],
    ['without backslashes', 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'],
  ])('a user changes its own password, with the quoting of the server %s', async (_name, mode) => {
    await server.sql(`set global sql_mode = '${mode}'`)
    const next = `A1-'' or \\' "x" \\\\ ñ ${mode.length}`
    await mysql.change(at(), ownChange('alice', 'Alice-Pass1', next), inTime())
    expect(await verify('alice', next)).toBe('valid')
    expect(await verify('alice', 'Alice-Pass1')).toBe('invalid')
    await mysql.change(at(), ownChange('alice', next, 'Alice-Pass1'), inTime())
  })

  test('an administrator changes all users of a name that the parameters list', async () => {
    await mysql.change(
      at({ account_hosts: '%, 10.%' }),
      changeBy(MARIADB_ADMIN, "o'dd", 'Odd-Pass-2'),
      inTime(),
    )
    expect(await verify("o'dd", 'Odd-Pass-2')).toBe('valid')
    const rows = await server.sql(
      "select distinct authentication_string from mysql.user where user = 'o''dd'",
    )
    expect(rows).toHaveLength(1)
  })

  test('a user whose password has expired is right, and changes it', async () => {
    expect(await verify('late', 'Late-Pass1')).toBe('valid')
    expect(await verify('late', 'wrong')).toBe('invalid')
    await mysql.change(at(), ownChange('late', 'Late-Pass1', "Late-'Pass2"), inTime())
    expect(await verify('late', "Late-'Pass2")).toBe('valid')
  })

  test('refusals leave all as it was, with the reason', async () => {
    const change = (...args: Parameters<typeof changeBy>) =>
      errorOf(mysql.change(at(), changeBy(...args), inTime()))
    const alice = { login: 'alice', password: 'Alice-Pass1' }
    expect((await change(alice, 'late', 'Late-Pass3'))?.code).toBe('not_permitted')
    expect((await change(MARIADB_ADMIN, 'nobody', 'Any-Pass-1'))?.code).toBe('not_permitted')
    expect((await change({ ...alice, password: 'no' }, 'late', 'Any-Pass-1'))?.code).toBe('refused_sign_in')
    expect(await verify('alice', 'Alice-Pass1')).toBe('valid')
    expect(await verify('shut', 'Shut-Pass1')).toBe('refused_sign_in')
    expect(await verify('local', 'Any-Pass-1')).toBe('refused_sign_in')
  })

  test('a server without a trusted certificate gets nothing', async () => {
    expect(await verify('alice', 'Alice-Pass1', at({}, stranger))).toBe('untrusted')
    expect(await verify('alice', 'Alice-Pass1', at({ tls_name: 'other.test' }))).toBe('untrusted')
    expect(await verify('alice', 'Alice-Pass1', at({ tls_name: 'localhost' }))).toBe('valid')
    expect(await verify('alice', 'Alice-Pass1', at({ insecure: true }))).toBe('valid')
  })
})
