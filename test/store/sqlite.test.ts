/** The store on a file of SQLite: one connection, and files. */
import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type TemporaryStore, temporaryStore } from './temp.ts'

let temp: TemporaryStore
beforeEach(async () => {
  temp = await temporaryStore()
})
afterEach(() => temp.remove())

const device = (deviceName: string) => ({ deviceName, host: 'h', description: '' })

it('is readable by its owner only, with its write-ahead log', () => {
  for (const path of [temp.path, `${temp.path}-wal`]) expect(statSync(path).mode & 0o777).toBe(0o600)
})

describe('writes that share a commit', () => {
  it('are on the disk when they are answered, in the order of their asking', async () => {
    const { store, path } = temp
    const reader = new DatabaseSync(path, { readOnly: true })
    const count = reader.prepare('select count(*) as n from devices where device_name = ?')
    const order: string[] = []
    const names = Array.from({ length: 100 }, (_, n) => `d${n}`)
    await Promise.all(
      names.map(async (name) => {
        await store.devices.create(device(name))
        expect(count.get(name)).toEqual({ n: 1 })
        order.push(name)
      }),
    )
    expect(order).toEqual(names)
    reader.close()
  })

  it('wait for fewer commits than there are of them', async () => {
    const { store, path } = temp
    const watcher = new DatabaseSync(path, { readOnly: true })
    // Changes with every commit of another connection (sqlite.org/pragma.html#pragma_data_version).
    const version = watcher.prepare('pragma data_version')
    const seen = new Set<unknown>()
    const before = version.get()?.['data_version']
    await Promise.all(
      Array.from({ length: 60 }, async (_, n) => {
        await store.devices.create(device(`d${n}`))
        seen.add(version.get()?.['data_version'])
      }),
    )
    expect(seen.has(before)).toBe(false)
    expect(seen.size).toBeLessThan(10)
    watcher.close()
  })

  it('do not wait for one that takes its time', async () => {
    const { store } = temp
    const done: string[] = []
    const long = store.transaction(async (within) => {
      await within.devices.create(device('long'))
      await new Promise((resolve) => setTimeout(resolve, 100))
      done.push('long')
    })
    const before = store.devices.create(device('other')).then(() => done.push('other'))
    await Promise.all([long, before])
    expect(done).toEqual(['long', 'other'])
    expect((await store.devices.list()).total).toBe(2)
  })
})
