/** Backups and copies of a server that was replaced by its standby, and still takes writes. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { storeCommand } from '../../src/commands/store.ts'
import { type Postgres, type Standby, startPostgres } from '../peers/postgres.ts'
import { describeWithPeers } from '../peers/program.ts'
import { OWNER } from '../peers/sql.ts'
import { until } from '../until.ts'
import { type House, openHouse } from './setting.ts'

describeWithPeers('a former primary', ['initdb', 'postgres', 'pg_basebackup'], () => {
  let primary: Postgres
  let standby: Standby
  let house: House
  const urlOf = ({ port }: Postgres) => `postgres://${OWNER}@127.0.0.1:${port}/postgres?sslmode=disable`

  beforeAll(async () => {
    primary = await startPostgres()
    house = await openHouse(urlOf(primary))
    standby = await primary.standby()
    await standby.promote()
    await until('it takes writes', async () => {
      const [row] = await standby.sql('select pg_is_in_recovery() as standby')
      return row?.['standby'] === false || undefined
    })
  }, 300_000)
  afterAll(async () => {
    await house.close()
    await standby.stop()
    await primary.stop()
  })

  test('has the rows of a command that was connected to it: a backup of the new one fails', async () => {
    const { database } = house.elsewhere('new', urlOf(standby))
    const failed = house.backup('torn', { config: { ...house.config, database } })
    await expect(failed).rejects.toThrow(/the copied database lacks row \d+ of the audit log/)
    expect(existsSync(join(house.folder, 'torn'))).toBe(false)
    const seen = readFileSync(join(house.config.dataDir, 'database.timeline'), 'latin1')
    expect(seen).toMatch(/^\d+ 00000002\n$/)
  })

  test('is not copied once the data folder has met the new one', async () => {
    const words = 'it is of timeline 00000001, and this bastion has worked with 00000002'
    await expect(house.backup('former')).rejects.toThrow(words)
    const config = join(house.folder, 'sallyport.yaml')
    const { dataDir } = house.config
    writeFileSync(config, stringify({ data_dir: dataDir, database: { url: urlOf(primary) } }), {
      mode: 0o600,
    })
    const to = `sqlite:${join(house.folder, 'copy.db')}`
    await expect(
      storeCommand.run({ config, words: ['copy'], all: async () => [], options: { to } }),
    ).rejects.toThrow(words)
    await expect(
      storeCommand.run({ config, words: ['reopen'], all: async () => [], options: {} }),
    ).rejects.toThrow(words)
  })
})
