/** A store on a server that other processes use, or go on using, while it is copied and afterwards. */
import { connect, createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { PostgresPlace } from '../../../src/model/database.ts'
import { Pool } from '../../../src/store/postgres/pool.ts'
import { Primary } from '../../../src/store/postgres/primary.ts'
import { until } from '../../until.ts'
import { closeAll, copy, file, filled, once, open, server, usePlaces } from './places.ts'

usePlaces()

const WAIT_MS = 30_000
const networks: { end(): void }[] = []
afterEach(async () => {
  await closeAll()
  for (const network of networks.splice(0)) network.end()
})

/** A network between a broker and its server that can go away. */
async function networkTo({ hosts: [host], ...place }: PostgresPlace) {
  const sockets = new Set<Socket>()
  let isUp = true
  const proxy = createServer((near) => {
    if (!isUp) return near.destroy()
    const far = connect(host!.port, host!.host)
    const end = () => {
      near.destroy()
      far.destroy()
    }
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', end).on('close', end)
    }
    near.pipe(far)
    far.pipe(near)
    return undefined
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const { port } = proxy.address() as { port: number }
  const cut = () => {
    isUp = false
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  const network = {
    postgres: { ...place, hosts: [{ host: '127.0.0.1', port }] },
    cut,
    restore: () => {
      isUp = true
    },
    end: () => {
      cut()
      proxy.close()
    },
  }
  networks.push(network)
  return network
}

describe('a store that was moved', () => {
  it('is not used any more by a broker whose network was gone meanwhile', async () => {
    const from = await server()
    await filled(from)
    const network = await networkTo(from.place)
    const store = await open(network)
    const taken: string[] = []
    const release = await store.claim(({ message }) => taken.push(message))
    network.cut()
    expect((await copy(from, file('b.db'))).fault).toBeUndefined()
    network.restore()
    await until('the broker hears of it', async () => taken.length > 0 || undefined, WAIT_MS)
    expect(taken).toEqual([
      expect.stringMatching(/its data were copied to .*b\.db at .*, and are used there/),
    ])
    await expect(store.settings.set('late', Buffer.from('1'))).rejects.toMatchObject({
      name: 'StoreUnavailableError',
    })
    expect(await store.reach.check()).toBe(false)
    const pool = new Pool(from.place, new Primary(from.place), 1)
    await expect(pool.query('select 1', [])).rejects.toThrow('its data were copied to')
    await pool.close()
    expect(await from.sql("select 1 from settings where name = 'late'")).toEqual([])
    await release()
  })

  it('has no write that waited for the end of the copy: it is not moved then', async () => {
    const from = await server()
    await filled(from)
    let writing: Promise<void> | undefined
    const copying = copy(from, file('b.db'), {
      onProgress: once('copy', async () => {
        // A command, which needs no claim.
        const command = await open(from)
        writing = command.settings.set('late', Buffer.from('1'))
        await until(
          'it waits',
          async () => (await from.sql('select 1 from pg_locks where not granted')).length > 0 || undefined,
          WAIT_MS,
        )
      }),
    })
    await expect(copying).rejects.toThrow(
      /is in use \(connected from .*the same command goes on where it stood/,
    )
    await writing
    await closeAll()
    expect(await from.sql("select 1 from settings where name = 'store.state'")).toEqual([])
    const first = await copy(from, file('b.db'))
    if (first.fault !== undefined) expect((await copy(from, file('b.db'))).fault).toBeUndefined()
    const store = await open(file('b.db'))
    expect(await store.settings.get('late')).toEqual(new Uint8Array(Buffer.from('1')))
  })
})
