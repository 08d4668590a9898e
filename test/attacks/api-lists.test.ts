/** Lists that are long, and asked for by somebody who does not read them. */
import { DatabaseSync } from 'node:sqlite'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Harness, startHarness } from '../api/harness.ts'
import { until } from '../until.ts'

const SESSIONS = 20_000
const MIB = 1024 * 1024

let h: Harness
let port: number
let cookie: string
const sockets: TLSSocket[] = []
beforeAll(async () => {
  h = await startHarness()
  await h.api.listen({ host: '127.0.0.1', port: 0 })
  port = (h.api.server.address() as { port: number }).port
  cookie = await h.signIn()
  fill()
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await h.close()
})

const idOf = (n: number) => `01K9T5RZ8Q4W6X2C3V${String(n).padStart(8, '0')}`

/** Beside the broker, as nobody can over the API: it would take its time. */
function fill(): void {
  const database = new DatabaseSync(h.database, { timeout: 10_000 })
  const insert = database.prepare(
    `insert into sessions (id, begin_time, end_time, user_name, source_ip, protocol, subprotocols, account, domain,
       device, service, target_host, result, authorization_name, is_recorded, bytes_in, bytes_out, recording)
     values (?, ?, 1, 'ops1', '192.0.2.1', 'SSH', '["SSH_SHELL"]', 'root', 'local', 'srv1', 'ssh', '192.0.2.2',
       'success', 'a:b', 1, 1, 1, ?)`,
  )
  database.exec('begin')
  const recording = JSON.stringify({ state: 'sealed', size: 1, frames: 1, digest: 'ab'.repeat(32) })
  for (let n = 0; n < SESSIONS; n++) insert.run(idOf(n), (n * 7919) % SESSIONS, recording)
  database.exec('commit')
  database.close()
}

/** Asks, and reads nothing of the answer. */
async function unread(path: string): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, ca: h.cert })
  sockets.push(socket)
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.once('secureConnect', resolve))
  socket.pause()
  socket.write(`GET /api${path} HTTP/1.1\r\nHost: x\r\nCookie: ${cookie}\r\n\r\n`)
  return socket
}

describe('a list of all', () => {
  it('is whole and in its order, in pieces', async () => {
    for (const [sort, first, last] of [
      ['begin', 0, SESSIONS - 1],
      ['-begin', SESSIONS - 1, 0],
    ] as const) {
      const answer = await h.call('GET', `/sessions?limit=-1&fields=id,begin&sort=${sort}`, { cookie })
      expect([answer.status, answer.headers['x-total-count']]).toEqual([200, SESSIONS])
      expect(answer.headers['content-length']).toBeUndefined()
      expect(answer.body).toHaveLength(SESSIONS)
      const times = answer.body.map((one: { begin: string }) => Date.parse(one.begin))
      expect([times[0], times.at(-1)]).toEqual([first, last])
      expect(times).toEqual(times.toSorted((a: number, b: number) => (sort === 'begin' ? a - b : b - a)))
      expect(new Set(answer.body.map((one: { id: string }) => one.id)).size).toBe(SESSIONS)
    }
  })

  it('is what its pages are', async () => {
    const get = async (query: string) =>
      (await h.call('GET', `/sessions?fields=id&sort=-id&${query}`, { cookie })).body
    const all = await get('limit=-1&q=begin>=1970-01-01T00:00:15Z')
    expect(all).toHaveLength(SESSIONS - 15_000)
    expect(await get('limit=3000&offset=1990&q=begin>=1970-01-01T00:00:15Z')).toEqual(all.slice(1990, 4990))
    expect(await get('limit=100&offset=4950&q=begin>=1970-01-01T00:00:15Z')).toEqual(all.slice(4950))
    expect(await get('limit=-1&q=user=nobody')).toEqual([])
  })

  it('is of one moment, whatever is changed while it is read', async () => {
    const socket = await unread('/sessions?limit=-1&fields=id,user&sort=id')
    const text = new Promise<string>((resolve) => {
      let all = ''
      socket.on('data', (data) => {
        all += data
        if (all.endsWith('\r\n0\r\n\r\n')) resolve(all)
      })
    })
    socket.pause()
    await until('its beginning', () => socket.readableLength > 0 || undefined)
    await h.store.sessions.update(idOf(SESSIONS - 1), { user: 'changed' })
    socket.resume()
    const answer = await text
    expect(answer).toContain(idOf(SESSIONS - 1))
    expect(answer).not.toContain('"changed"')
    const after = await h.call('GET', `/sessions?limit=-1&fields=user&q=user=changed`, { cookie })
    expect(after.body).toEqual([{ user: 'changed' }])
  })

  it('with an unknown field or a bad order is an error, and none that has begun', async () => {
    for (const query of ['sort=nothing', 'fields=nothing', 'q=nothing=1']) {
      expect((await h.call('GET', `/sessions?limit=-1&${query}`, { cookie })).status).toBe(400)
    }
  })

  it('that nobody reads takes no memory, however often it is asked for, and holds nobody else up', async () => {
    const one = await h.call('GET', '/sessions?limit=-1', { cookie })
    expect(one.text.length).toBeGreaterThan(8 * MIB)
    await h.addUser('other', 'auditor')
    const other = await h.signIn('other')
    const before = process.memoryUsage().rss
    await Promise.all(Array.from({ length: 40 }, () => unread('/sessions?limit=-1')))
    // one after the other: each is answered while the forty wait
    for (let round = 0; round < 5; round++) {
      const page = await h.call('GET', '/sessions?limit=-1&fields=id', { cookie: other })
      expect(page.body).toHaveLength(SESSIONS)
    }
    // as whole texts the forty would be 340 MiB
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * MIB)
  })
})
