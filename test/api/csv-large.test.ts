/** Large tables, and clients that disconnect before the end, over real connections. */
import { execFile } from 'node:child_process'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { times } from '../times.ts'
import { type Harness, startHarness } from './harness.ts'

const ROWS = times(40_000, 100_000)
const WARM_ROWS = 2_000
/** Heap for the rows of a large table and for garbage, MiB. */
const ROWS_HEAP = 56

it(`${ROWS} devices: in bounded memory, beside other requests`, async () => {
  const child = join(import.meta.dirname, 'csv-large-child.ts')
  const run = async (...flags: string[]) => {
    const options = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8', ...flags]
    const { stdout } = await promisify(execFile)(process.execPath, options, {
      env: { ...process.env, ROWS: String(ROWS) },
    })
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  }
  // The broker's own need grows with its code; the limit is for the rows.
  const own: number = await run('--expose-gc', child, 'own')
  const seen = await run(`--max-old-space-size=${Math.ceil(own) + ROWS_HEAP}`, child)
  expect(seen.imported).toMatchObject({
    status: 200,
    begin: expect.stringMatching(/^\[{"row":2,"result":"created"/),
  })
  expect(seen.exported).toMatchObject({ status: 200, lines: ROWS + WARM_ROWS + 1 })
  expect(seen.again).toMatchObject({
    status: 200,
    begin: expect.stringMatching(/^\[{"row":2,"result":"unchanged"/),
  })
  expect(seen.total).toBe(ROWS + WARM_ROWS)
  // One event for each device, the sign-in and the export.
  expect(seen.events).toBe(ROWS + WARM_ROWS + 2)
  // Includes 64 MiB of the database's cache of pages.
  expect(seen.growth).toBeLessThan(180)
  // A moment is 5 ms; the rest is for the machine and the garbage collector.
  expect(seen.slowest).toBeLessThan(1000)
}, 300_000)

describe('clients', () => {
  let h: Harness
  let port: number
  let cookie: string
  beforeEach(async () => {
    h = await startHarness()
    await h.api.listen({ host: '127.0.0.1', port: 0 })
    port = (h.api.server.address() as AddressInfo).port
    cookie = await h.signIn()
    return () => h.close()
  })
  afterEach(() => h.api.server.closeAllConnections())

  function send(body: Readable): Promise<{ status: number; error: string | undefined }> {
    return new Promise((resolve, reject) => {
      const headers = { cookie, 'content-type': 'text/csv' }
      const options = {
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: '/api/import/devices',
        headers,
        ca: h.cert,
      }
      const asked = request({ ...options, servername: 'localhost' }, (answer) => {
        let text = ''
        answer.setEncoding('utf8')
        answer.on('data', (piece: string) => {
          text += piece
        })
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, error: JSON.parse(text).error }))
      })
      asked.on('error', reject)
      body.pipe(asked)
    })
  }

  it('that still send see why their table was refused', async () => {
    function* wrong() {
      yield '#device_name;hots\r\n'
      for (let i = 0; i < 200; i++) yield 'x;y\r\n'.repeat(10_000)
    }
    expect(await send(Readable.from(wrong()))).toEqual({ status: 400, error: 'invalid_csv' })
  }, 300_000)

  it('wait for each other, and leave nothing behind when they go away', async () => {
    const slow = new Readable({ read() {} })
    slow.push('#device_name;host\r\na;192.0.2.1\r\n')
    const first = send(slow)
    first.catch(() => undefined)
    const other = () => send(Readable.from(['#device_name\r\n'])).then(({ status }) => status)
    await expect.poll(other, { timeout: 300_000 }).toBe(503)
    h.api.server.closeAllConnections()
    await expect(first).rejects.toThrow()
    await expect.poll(other, { timeout: 300_000 }).toBe(200)
    expect((await h.store.devices.list()).total).toBe(0)
    expect(h.log.join('')).not.toContain('the request failed')
  }, 300_000)
})
