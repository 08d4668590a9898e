/** Rejected backups, whose content differs from their manifest: a restore changes nothing. */
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Manifest } from '../../src/backup/manifest.ts'
import { sealFile } from '../../src/backup/sealed.ts'
import type { Config } from '../../src/config/config.ts'
import { recipient } from '../recordings/support.ts'
import { type House, measureAgain, openHouse, restore, SESSIONS } from './setting.ts'

let house: House
beforeAll(async () => {
  house = await openHouse()
  await house.session(SESSIONS[0], 'closed')
  await house.backup('good')
})
afterAll(() => house.close())

let names = 0
/** Returns a configuration whose data folder does not exist. */
const fresh = () => house.elsewhere(`data-${++names}`)
const recordingOf = (backup: string) => join(backup, 'recordings', '2026', '11', '20', SESSIONS[0])

async function refused(backup: string, config: Config, message: RegExp): Promise<void> {
  await expect(restore(config, backup)).rejects.toThrow(message)
  expect(existsSync(config.dataDir)).toBe(false)
}

describe('a backup is refused, and nothing is made, when', () => {
  test.each<[string, (backup: string) => void, RegExp]>([
    ['it is not there', (backup) => rmSync(backup, { recursive: true }), /there is no backup /],
    [
      'it was interrupted',
      (backup) => rmSync(join(backup, 'manifest.json')),
      /no whole backup: .* written last/,
    ],
    [
      'its manifest was changed',
      (backup) => appendFileSync(join(backup, 'manifest.json'), ' '),
      /manifest\.json is not signed by the broker of this backup: it was changed/,
    ],
    [
      'its signature is another one',
      (backup) => writeFileSync(join(backup, 'manifest.sig'), `${Buffer.alloc(64).toString('base64')}\n`),
      /not signed by the broker/,
    ],
    [
      'its signature is missing',
      (backup) => rmSync(join(backup, 'manifest.sig')),
      /manifest\.sig is missing/,
    ],
    [
      'its manifest is none',
      (backup) => writeFileSync(join(backup, 'manifest.json'), '{"format":'),
      /is no JSON/,
    ],
    [
      'it is of something else',
      (backup) => writeFileSync(join(backup, 'manifest.json'), '[]'),
      /not of a backup/,
    ],
    [
      'its manifest is too long',
      (backup) => writeFileSync(join(backup, 'manifest.json'), Buffer.alloc(1024 * 1024 + 1)),
      /has 1048577 bytes, expected at most 1048576/,
    ],
    [
      'the database was changed',
      (backup) => {
        const path = join(backup, 'sallyport.db')
        const bytes = readFileSync(path)
        bytes[5000] = (bytes[5000] ?? 0) ^ 1
        writeFileSync(path, bytes)
      },
      /sallyport\.db was changed: its SHA-256 is not that of the manifest/,
    ],
    [
      'a host key was cut',
      (backup) => truncateSync(join(backup, 'data', 'ssh', 'ssh_host_ed25519_key.age'), 100),
      /ssh_host_ed25519_key\.age has 100 bytes, expected \d+: it was cut/,
    ],
    [
      'a recording is longer',
      (backup) => appendFileSync(join(recordingOf(backup), 'session.rec'), 'x'),
      /session\.rec has more than \d+ bytes: it was changed/,
    ],
    [
      'a recording is missing',
      (backup) => rmSync(join(recordingOf(backup), 'key.age')),
      /key\.age is missing/,
    ],
    [
      'a line of the list was changed',
      (backup) => appendFileSync(join(backup, 'recordings.jsonl'), '{}\n'),
      /recordings\.jsonl has more than/,
    ],
    [
      'a file is a link',
      (backup) => {
        const path = join(backup, 'sallyport.db')
        renameSync(path, `${path}.real`)
        symlinkSync(`${path}.real`, path)
      },
      /sallyport\.db is a symbolic link, expected a file/,
    ],
    [
      'a folder is a link',
      (backup) => {
        renameSync(join(backup, 'data'), join(backup, 'elsewhere'))
        symlinkSync(join(backup, 'elsewhere'), join(backup, 'data'))
      },
      /data is a symbolic link, expected a folder/,
    ],
    [
      'others can write to it',
      (backup) => chmodSync(join(backup, 'sallyport.db'), 0o620),
      /can be written by others \(mode 620\)/,
    ],
    [
      'others can put files into it',
      (backup) => chmodSync(join(backup, 'recordings'), 0o777),
      /recordings can be written by others \(mode 777\)/,
    ],
  ])('%s', async (_, change, message) => {
    const backup = house.copy('good')
    change(backup)
    await refused(backup, fresh(), message)
  })

  test.skipIf(process.geteuid?.() !== 0)('it belongs to somebody else', async () => {
    const backup = house.copy('good')
    chownSync(join(backup, 'sallyport.db'), 65534, 65534)
    await refused(backup, fresh(), /sallyport\.db belongs to another user \(65534\)/)
  })

  const file = (path: string) => ({ path, size: 0, sha256: '0'.repeat(64) })
  test.each<[string, (manifest: Manifest) => void, RegExp]>([
    [
      'a name that leads out',
      ({ files }) => files.push(file('data/../../evil.age')),
      /which is no place in a backup/,
    ],
    ['an absolute name', ({ files }) => files.push(file('/etc/passwd')), /which is no place in a backup/],
    [
      'a name with an empty part',
      ({ files }) => files.push(file('data//x.age')),
      /which is no place in a backup/,
    ],
    [
      'a name with a control byte',
      ({ files }) => files.push(file('data/a\nb.age')),
      /which is no place in a backup/,
    ],
    ['a name twice', ({ files }) => files.push(files[0]!), /names "sallyport\.db" twice/],
    [
      'a file that is not sealed',
      ({ files }) => files.push(file('data/tls/key.pem')),
      /which is no place in a backup/,
    ],
    ['no database', ({ files }) => files.splice(0, 1), /does not name sallyport\.db/],
    [
      'too many files',
      ({ files }) => files.push(...Array.from({ length: 1100 }, (_, i) => file(`data/${i}.age`))),
      /malformed/,
    ],
    [
      'a place of the broker',
      ({ files }) => files.push(file('data/sallyport.lock.age')),
      /has something else/,
    ],
    [
      'the place of the database',
      ({ files }) => files.push(file('data/sallyport.db.age')),
      /has something else/,
    ],
    [
      'a place among the recordings',
      ({ files }) => files.push(file('data/recordings/x.age')),
      /has something else/,
    ],
    ['a key that nobody knows', (one) => Object.assign(one, { more: 1 }), /malformed/],
    ['a version that is newer', (one) => Object.assign(one, { version: 2 }), /the backup has version 2/],
    [
      'a schema that is newer',
      (one) => Object.assign(one, { schema: 999, program: '9.9.9' }),
      /made by sallyport 9\.9\.9 with schema version 999, this program knows up to \d+: restore it with the newer/,
    ],
    [
      'a row that the audit log does not have',
      ({ audit }) => {
        audit.row += 10
      },
      /audit log of the backup is not in order: row \d+: cut_tail/,
    ],
    [
      'another row than the audit log has',
      ({ audit }) => {
        audit.hash = '0'.repeat(64)
      },
      /audit log of the backup is not in order: row \d+: replaced_log/,
    ],
  ])('its manifest, though signed, has %s', async (_, change, message) => {
    const backup = house.copy('good')
    house.sign(backup, change)
    await refused(backup, fresh(), message)
  })

  test('a host key, though measured and signed, is none of this broker', async () => {
    const backup = house.copy('good')
    const name = 'data/ssh/ssh_host_ed25519_key.age'
    await sealFile(
      join(house.config.dataDir, 'ssh', 'ssh_host_ed25519_key'),
      join(backup, 'other'),
      recipient,
    )
    renameSync(join(backup, 'other'), join(backup, name))
    house.sign(backup, (one) => measureAgain(one, backup, name))
    await refused(backup, fresh(), /ssh_host_ed25519_key\.age cannot be opened with the keys of this backup/)
  })

  test.each([
    ['leads out', '"folder":"2026/11/20/../../../../../evil"'],
    ['is no folder of a recording', '"folder":"deleted/x"'],
  ])('a line of its list, though signed, %s', async (_, folder) => {
    const backup = house.copy('good')
    const path = join(backup, 'recordings.jsonl')
    writeFileSync(path, readFileSync(path, 'utf8').replace(/"folder":"[^"]*"/, folder))
    house.sign(backup, (one) => measureAgain(one, backup, 'recordings.jsonl'))
    await refused(backup, fresh(), /line 1 is not of a recording/)
  })

  test('a line of its list has no end', async () => {
    const backup = house.copy('good')
    writeFileSync(join(backup, 'recordings.jsonl'), 'x'.repeat(100_000))
    house.sign(backup, (one) => measureAgain(one, backup, 'recordings.jsonl'))
    await refused(backup, fresh(), /has a line of more than 16384 characters/)
  })

  test.each<[string, string, RegExp]>([
    [
      'an event was changed',
      "update audit set json = replace(json, 'ops1', 'ops2')",
      /row \d+: changed_event/,
    ],
    ['events were removed', 'delete from audit where sequence = 2', /row 2: missing_events/],
    [
      'it would act by itself',
      'create trigger t after insert on audit begin delete from users; end',
      /is damaged: it has a trigger or a view \(t\)/,
    ],
    [
      'a trigger of ours does something else',
      'drop trigger users_updated; create trigger users_updated after update on users begin delete from users; end',
      /is damaged: it has a trigger or a view \(users_updated\)/,
    ],
    [
      'changes of users would not be noted',
      'drop trigger users_updated',
      /is damaged: it has \d+ triggers that note changes of rights, not \d+/,
    ],
    [
      'it is newer than it says',
      'insert into schema_migrations (version, applied) values (999, 0)',
      /the database has schema version 999/,
    ],
  ])('its database, though signed, shows that %s', async (_, statement, message) => {
    const backup = house.copy('good')
    const database = new DatabaseSync(join(backup, 'sallyport.db'))
    database.exec(statement)
    database.close()
    house.sign(backup, (one) => measureAgain(one, backup, 'sallyport.db'))
    await refused(backup, fresh(), message)
  })
})
