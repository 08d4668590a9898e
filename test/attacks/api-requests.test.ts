/** Attacks by one connection to the API, and by many: pipelining, ambiguous requests, hoarded connections. */
import { connect as connectTcp } from 'node:net'
import { Readable } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Harness, startHarness } from '../api/harness.ts'

const SESSION = '01K9T5RZ8Q4W6X2C3V1B0N7M50'

let h: Harness
let port: number
let cookie: string
/** Whether recordings that are opened from now on have no end. */
let isEndless = false
/** Recordings that are being opened, the most at a time, and the total. */
let [opening, mostOpening, opened] = [0, 0, 0]
beforeAll(async () => {
  h = await startHarness({
    recordings: {
      open: async () => {
        opened++
        mostOpening = Math.max(mostOpening, ++opening)
        await new Promise((resolve) => setTimeout(resolve, 5))
        opening--
        return isEndless ? endless() : Readable.from(['x'])
      },
      close: async () => {},
    },
  })
  await h.api.listen({ host: '127.0.0.1', port: 0 })
  port = (h.api.server.address() as { port: number }).port
  cookie = await h.signIn()
  await h.store.sessions.create({
    id: SESSION,
    begin: 0,
    user: 'ops1',
    sourceIp: '192.0.2.1',
    protocol: 'SSH',
    subprotocols: [],
    account: 'root',
    domain: 'local',
    device: 'srv1',
    service: 'ssh',
    targetHost: '192.0.2.2',
    authorization: 'a',
    isRecorded: true,
    bytesIn: 0,
    bytesOut: 0,
  })
})
const sockets: TLSSocket[] = []
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await h.close()
})

async function secured(localAddress = '127.0.0.1'): Promise<TLSSocket> {
  const tcp = connectTcp({ host: '127.0.0.1', port, localAddress })
  const socket = connect({ socket: tcp, ca: h.cert, host: '127.0.0.1' })
  sockets.push(socket)
  socket.on('error', () => undefined)
  await new Promise((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.once('close', () => reject(new Error('closed')))
  })
  return socket
}

/** A stream that begins and never ends. */
function endless(): Readable {
  const stream = new Readable({ read: () => undefined })
  stream.push('x')
  return stream
}

/** Returns all responses to these bytes until the server closes, or `enough` responses have come. */
async function answers(bytes: string, enough = Number.POSITIVE_INFINITY, on?: TLSSocket) {
  const socket = on ?? (await secured())
  return await new Promise<{ statuses: number[]; text: string; isClosed: boolean }>((resolve) => {
    let text = ''
    const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
    const end = (isClosed: boolean) => {
      socket.removeAllListeners('data')
      resolve({ statuses: statuses(), text, isClosed })
    }
    socket.on('data', (data) => {
      text += data
      if (enough <= statuses().length) end(false)
    })
    socket.once('close', () => end(true))
    socket.write(bytes)
  })
}

const signIn = (user: string) => {
  const body = JSON.stringify({ user, password: 'wrong' })
  return `POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}
const get = (path: string, headers = '') => `GET /api${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`

describe('requests that are sent ahead', () => {
  it('for sign-ins are refused one after the other, and the sixth ends the connection', async () => {
    const before = (await h.events('auth.failure')).length
    const { statuses, isClosed } = await answers(signIn('admin').repeat(500))
    expect([statuses, isClosed]).toEqual([Array(6).fill(401), true])
    expect((await h.events('auth.failure')).length - before).toBe(6)
  })

  it('with keys that nobody has end it likewise', async () => {
    const { statuses, isClosed } = await answers(get('/users', 'X-Auth-Key: guess\r\n').repeat(500))
    expect([statuses, isClosed]).toEqual([Array(6).fill(401), true])
  })

  it('are answered in their order by one who is signed in, never two at the same time', async () => {
    const one = get(`/sessions/${SESSION}/recording`, `Cookie: ${cookie}\r\n`)
    const mixed = `${one}${get('/version')}`.repeat(20)
    const { statuses } = await answers(mixed, 40)
    expect([statuses, opened, mostOpening]).toEqual([Array(40).fill(200), 20, 1])
  })

  it('have an end: of thousands so many are answered, and the others never begin', async () => {
    opened = 0
    const one = get(`/sessions/${SESSION}/recording`, `Cookie: ${cookie}\r\n`)
    const { statuses, isClosed } = await answers(one.repeat(5000))
    expect(isClosed).toBe(true)
    expect(statuses.length).toBeLessThan(100)
    expect(opened).toBe(statuses.length)
  })

  it('before a WebSocket end the connection, whose answers would be mixed up', async () => {
    opened = 0
    const upgrade = get(
      `/sessions/${SESSION}/live`,
      `Cookie: ${cookie}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'A'.repeat(22)}==\r\n`,
    )
    const { text, isClosed } = await answers(
      get(`/sessions/${SESSION}/recording`, `Cookie: ${cookie}\r\n`) + upgrade,
    )
    expect([text, isClosed]).toEqual(['', true])
  })
})

describe('a request that two readers could take for different ones', () => {
  const BODY = 'Content-Type: application/json\r\n'
  const post = (headers: string, body: string, version = '1.1') =>
    `POST /api/session HTTP/${version}\r\nHost: x\r\n${BODY}${headers}\r\n${body}`
  const CHUNKS = '2\r\n{}\r\n0\r\n\r\n'
  it.each([
    ['two Host headers', get('/version', 'Host: y\r\n')],
    ['the same Host twice', get('/version', 'Host: x\r\n')],
    ['no Host', 'GET /api/version HTTP/1.1\r\n\r\n'],
    ['a Host that is a list', 'GET /api/version HTTP/1.1\r\nHost: x, y\r\n\r\n'],
    ['a Host with a user', 'GET /api/version HTTP/1.1\r\nHost: x@y\r\n\r\n'],
    ['a Host with a path', 'GET /api/version HTTP/1.1\r\nHost: x/y\r\n\r\n'],
    ['another host in the URL', 'GET https://y/api/version HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a user in the URL', 'GET https://y@x/api/version HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a Host that goes on in the next line', 'GET /api/version HTTP/1.1\r\nHost: x\r\n y\r\n\r\n'],
    ['a space before the colon', 'GET /api/version HTTP/1.1\r\nHost : x\r\n\r\n'],
    ['line feeds alone', 'GET /api/version HTTP/1.1\nHost: x\n\n'],
    ['HTTP/0.9', 'GET /api/version\r\n\r\n'],
    ['HTTP/2.0 in clear words', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['two lengths', post('Content-Length: 2\r\nContent-Length: 2\r\n', '{}')],
    ['two lengths in one', post('Content-Length: 2, 2\r\n', '{}')],
    ['a length with a sign', post('Content-Length: +2\r\n', '{}')],
    ['a length beside chunks', post('Content-Length: 2\r\nTransfer-Encoding: chunked\r\n', CHUNKS)],
    ['chunks beside a length', post('Transfer-Encoding: chunked\r\nContent-Length: 2\r\n', CHUNKS)],
    ['chunks twice', post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', CHUNKS)],
    ['chunks of something else', post('Transfer-Encoding: gzip, chunked\r\n', CHUNKS)],
    ['chunks that are called otherwise', post('Transfer-Encoding: xchunked\r\n', CHUNKS)],
    ['chunks in HTTP/1.0', post('Transfer-Encoding: chunked\r\n', CHUNKS, '1.0')],
    ['two types of body', post(`Content-Length: 2\r\n${BODY}`, '{}')],
    ['two cookies', get('/users', 'Cookie: a=b\r\nCookie: c=d\r\n')],
    ['two keys', get('/users', 'X-Auth-Key: a\r\nX-Auth-Key: b\r\n')],
    ['two users', get('/users', 'X-Auth-Key: a\r\nX-Auth-User: a\r\nX-Auth-User: b\r\n')],
    ['two credentials', get('/users', 'Authorization: Basic YTph\r\nAuthorization: Bearer x\r\n')],
    ['two origins', get('/users', 'Origin: https://x\r\nOrigin: https://y\r\n')],
  ])('%s: is 400', async (_name, bytes) => {
    const before = (await h.events('auth.failure')).length
    const { statuses, text } = await answers(bytes, 1)
    expect(statuses).toEqual([400])
    expect(text).toContain('"error":"malformed_request"')
    expect(await h.events('auth.failure')).toHaveLength(before)
  })

  it('a URL that is given whole is one like any other', async () => {
    const whole = (url: string) => answers(`GET ${url} HTTP/1.1\r\nHost: X:443\r\n\r\n`, 1)
    expect((await whole('https://x:443/api/version')).statuses).toEqual([200])
    expect((await whole('https://x:443')).statuses).toEqual([303])
    expect((await whole('https://x:443/api/users')).statuses).toEqual([401])
  })
})

describe('connections', () => {
  const users = get('/users', '')
  /** Opens a connection that the user keeps, or that is refused. */
  const hold = async (as: string): Promise<{ socket: TLSSocket; status: number | undefined }> => {
    const socket = await secured(`127.0.0.${10 + (sockets.length % 200)}`)
    const { statuses } = await answers(users.replace('Host: x\r\n', `Host: x\r\n${as}`), 1, socket)
    return { socket, status: statuses[0] }
  }

  it('of one user are so many, of a key too, and whoever has too many loses idle ones', async () => {
    await h.addUser('hoarder', 'auditor')
    const hoarder = `Cookie: ${await h.signIn('hoarder')}\r\n`
    const held = await Promise.all(Array.from({ length: 130 }, () => hold(hoarder)))
    expect(new Set(held.map(({ status }) => status))).toEqual(new Set([200]))
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(held.filter(({ socket }) => !socket.destroyed)).toHaveLength(100)
    expect((await hold(`Cookie: ${cookie}\r\n`)).status).toBe(200)
  })

  it('that are in work are not taken from anybody: one more is turned away, and others get in', async () => {
    await h.addUser('reader', 'auditor')
    const reader = `Cookie: ${await h.signIn('reader')}\r\n`
    isEndless = true
    const reading = get(`/sessions/${SESSION}/recording`, reader)
    const held = await Promise.all(Array.from({ length: 100 }, () => secured('127.0.0.9')))
    const begun = await Promise.all(held.map((socket) => answers(reading, 1, socket)))
    expect(new Set(begun.map(({ statuses }) => statuses[0]))).toEqual(new Set([200]))
    const { text, isClosed } = await answers(users.replace('Host: x\r\n', `Host: x\r\n${reader}`))
    expect([text.slice(9, 12), isClosed]).toEqual(['429', true])
    expect(text).toContain('"error":"too_many_connections"')
    expect((await hold(`Cookie: ${cookie}\r\n`)).status).toBe(200)
    for (const socket of held) socket.destroy()
  })
})
