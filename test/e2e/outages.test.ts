/** Outages of the database of a busy session: no event that was acknowledged is lost, and none is there twice. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { type Postgres, startPostgres } from '../peers/postgres.ts'
import { describeWithPeers } from '../peers/program.ts'
import type { Terminal } from '../peers/terminal.ts'
import { times } from '../times.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'
import { sallyport } from './recorded.ts'

const OUTAGES = times(6, 20)
const LONG = { timeout: 300_000 }

describeWithPeers('a database that goes away again and again', ['sshd', 'ssh', 'initdb', 'postgres'], () => {
  let server: Postgres
  let bastion: Bastion
  let terminal: Terminal | undefined
  let dataFolder: string

  beforeAll(async () => {
    server = await startPostgres()
    await server.sql('create database outages template template0')
    dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-outages-'))
    const config = { database: { url: server.url('outages') } }
    bastion = await startBastion({ credential: 'password', broker: { dataFolder, config } })
  }, LONG.timeout)
  afterAll(async () => {
    await terminal?.close()
    await bastion.stop()
    await server.stop()
    rmSync(dataFolder, { recursive: true, force: true })
  }, LONG.timeout)

  test('loses nothing, and stores nothing twice', LONG, async () => {
    const options = [`ControlPath=${join(bastion.home.folder, 'm')}`, 'ControlMaster=auto']
    terminal = sshTerminal(bastion.home, bastion.login({ options }), ['echo begun; cat'])
    await terminal.expect('begun')
    const acknowledged: string[] = []
    let isOver = false
    const busy = (async () => {
      for (let n = 0; !isOver; n++) {
        const { stdout } = await ssh(bastion.home, bastion.login({ options: options.slice(0, 1) }), [
          `echo n${n}`,
        ])
        expect(stdout).toBe(`n${n}\n`)
        acknowledged.push(`echo n${n}`)
      }
    })()
    for (let outage = 1; outage <= OUTAGES; outage++) {
      await sleep(Math.random() * 300)
      if (outage % 2 === 0) {
        await server.kill()
        await sleep(Math.random() * 1000)
        await server.start()
      } else {
        server.freeze()
        await sleep(2600 + Math.random() * 500)
        server.thaw()
      }
      await until('the database', async () =>
        (await bastion.broker.api('GET', '/users')).status === 200 ? true : undefined,
      )
    }
    isOver = true
    await busy
    await until('the events', async () => {
      const [{ count } = { count: 0 }] = await server.sql(
        `select count(*)::int as count from audit where code = 'command' and json like '%echo n%'`,
        'outages',
      )
      return Number(count) >= acknowledged.length ? true : undefined
    })
    const rows = await server.sql(
      `select json from audit where code = 'command' and json like '%echo n%' order by sequence`,
      'outages',
    )
    expect(rows.map(({ json }) => JSON.parse(String(json)).fields.object)).toEqual(acknowledged)
    expect((await bastion.events('database.back')).length).toBeGreaterThan(OUTAGES / 2)
    expect((await sallyport(bastion.broker, ['audit', 'verify'])).stdout).toMatch(/^ok: \d+ rows/)
  })
})
