/** Long lists, requested by clients that do not read them. */
import { readdirSync, readlinkSync, statSync, truncateSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Harness, startHarness } from '../api/harness.ts'
import { until } from '../until.ts'

const SESSIONS = 20_000
const MIB = 1024 * 1024
/** The end of a complete response in chunks. */
const END = '\r\n0\r\n\r\n'

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
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
afterAll(async () => {
  await h.close()
})

const idOf = (n: number) => `01K9T5RZ8Q4W6X2C3V${String(n).padStart(8, '0')}`

/** Writes beside the broker: over the API it would be slow. */
function fill(): void {
  const database = new DatabaseSync(h.database, { timeout: 300_000 })
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

/** Returns all received data until the response or the connection ends. */
function rest(socket: TLSSocket): Promise<string> {
  return new Promise((resolve) => {
    let all = ''
    // Asking the whole text for its end each time would copy it each time.
    let end = ''
    socket.on('data', (data) => {
      const text = String(data)
      all += text
      end = (end + text).slice(-END.length)
      if (end === END) resolve(all)
    })
    socket.once('close', () => resolve(all))
    socket.resume()
  })
}

/** Returns the open files of lists of this process, by their link names. */
const spools = () =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = `/proc/self/fd/${fd}`
      return readlinkSync(path).startsWith(`${h.database}-list-`) ? [path] : []
    } catch {
      return []
    }
  })

/** Sends a request, and reads nothing of the response. */
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
      expect([answer.status, answer.headers['x-total-count']]).toEqual([200, String(SESSIONS)])
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
    const all = await get('limit=-1&q=user=ops1')
    expect(all).toHaveLength(SESSIONS)
    expect(await get('limit=500&offset=190&q=user=ops1')).toEqual(all.slice(190, 690))
    expect(await get(`limit=101&offset=${SESSIONS - 50}`)).toEqual(all.slice(-50))
    expect(await get('limit=-1&q=user=nobody')).toEqual([])
  })

  it('is of one moment, whatever is changed while it is read', async () => {
    const socket = await unread('/sessions?limit=-1&fields=id,user&sort=id')
    const text = rest(socket)
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

  it('holds the log of the database for nobody who reads slowly, and is whole when he has read it', async () => {
    const slow = [await unread('/sessions?limit=-1&sort=id'), await unread('/sessions?limit=-1&sort=-begin')]
    for (const socket of slow) await until('its beginning', () => socket.readableLength > 0 || undefined)
    const beside = new DatabaseSync(h.database, { timeout: 5000 })
    try {
      for (let round = 0; round < 2; round++) {
        await h.store.sessions.update(idOf(round), { bytesIn: 100 + round })
        // one that begins before the other ends, as an attacker would continue
        const next = await unread('/sessions?limit=-1')
        await until('its beginning', () => next.readableLength > 0 || undefined)
        slow.shift()!.destroy()
        slow.push(next)
        await until('the log to begin anew', () => {
          const { busy } = beside.prepare('pragma wal_checkpoint(truncate)').get() as { busy: number }
          return (busy === 0 && statSync(`${h.database}-wal`).size === 0) || undefined
        })
      }
    } finally {
      beside.close()
    }
    // a listing of the folder does not show it
    expect(spools().length).toBeGreaterThan(0)
    expect(readdirSync(dirname(h.database)).filter((name) => name.includes('-list-'))).toEqual([])
    const whole = await rest(slow[0]!)
    expect(whole.endsWith(END)).toBe(true)
    for (let n = 0; n < SESSIONS; n += 997) expect(whole).toContain(idOf(n))
    for (const socket of slow) socket.destroy()
    await until('no file of a list', () => spools().length === 0 || undefined)
  }, 300_000)

  it('that cannot be read to its end has none', async () => {
    const socket = await unread('/sessions?limit=-1&sort=id')
    await until('its beginning', () => socket.readableLength > 0 || undefined)
    await until('its file, and no other', () => spools().length === 1 || undefined)
    truncateSync(spools()[0]!, 2 * MIB)
    const text = await rest(socket)
    expect(text).toContain(idOf(0))
    expect(text).not.toContain(idOf(SESSIONS - 1))
    expect(text.endsWith(END)).toBe(false)
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
  }, 300_000)
})
