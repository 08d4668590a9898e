/**
 * Clients that disconnect in the middle of a body, over real TLS connections: none causes an internal error.
 */
import { connect, type TLSSocket } from 'node:tls'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let port: number
const lines: { level: string; msg: string }[] = []
const answered: [route: string, status: number][] = []
const logger = pino(
  { level: 'debug', formatters: { level: (level) => ({ level }) } },
  { write: (line: string) => void lines.push(JSON.parse(line)) },
)
const request = (_method: string, route: string, status: number) => void answered.push([route, status])

beforeAll(async () => {
  h = await startHarness({ logger, metrics: { request } })
  await h.api.listen({ host: '127.0.0.1', port: 0 })
  port = (h.api.server.address() as { port: number }).port
})
afterAll(() => h.close())

/** Opens a connection and sends the beginning of a body. */
async function begun(): Promise<TLSSocket> {
  lines.length = 0
  answered.length = 0
  const socket = connect({ host: '127.0.0.1', port, ca: h.cert })
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.once('secureConnect', resolve))
  const head =
    'POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n'
  socket.write(`${head}{"user":`)
  return socket
}

async function expectNoErrorOfOurs(): Promise<void> {
  await vi.waitFor(() => expect(answered).toEqual([['/api/session', 408]]), 15_000)
  expect(lines.filter(({ level }) => level !== 'debug')).toEqual([])
  expect(lines.map(({ msg }) => msg)).toEqual(['the client went away before its request was whole'])
}

it('a client that goes away is not logged as an error, and counts as the client’s', async () => {
  const socket = await begun()
  await new Promise((resolve) => setTimeout(resolve, 100))
  socket.destroy()
  await expectNoErrorOfOurs()
})

it('one that is too slow is told so, and likewise', { timeout: 300_000 }, async () => {
  Object.assign(h.api.server, { requestTimeout: 300, headersTimeout: 200 })
  const socket = await begun()
  const answer = await new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
  expect(answer).toMatch(/^HTTP\/1\.1 408 [\s\S]*"request_timeout"/)
  await expectNoErrorOfOurs()
})
