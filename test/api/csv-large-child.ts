/**
 * Transfers a large table over a real connection, in a process of its own with a limited heap: without the
 * limit V8 would keep garbage and falsify the measurement. Prints the results as JSON; called with `own`,
 * only the heap (MiB) that a broker itself needs.
 */
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { startHarness } from './harness.ts'

const ROWS = Number(process.env['ROWS'])
const WARM_ROWS = 2000
const MiB = 1024 * 1024

const h = await startHarness()
await h.api.listen({ host: '127.0.0.1', port: 0 })
const { port } = h.api.server.address() as AddressInfo
const cookie = await h.signIn()

interface Received {
  status: number
  lines: number
  begin: string
}

/** Sends a request; keeps only the beginning of the answer. */
function ask(method: string, path: string, body?: Readable): Promise<Received> {
  return new Promise((resolve, reject) => {
    const headers = { cookie, ...(body && { 'content-type': 'text/csv' }) }
    const options = { host: '127.0.0.1', port, method, path: `/api${path}`, ca: h.cert, headers }
    const asked = request({ ...options, servername: 'localhost' }, (answer) => {
      let lines = 0
      let begin = ''
      answer.setEncoding('utf8')
      answer.on('data', (text: string) => {
        lines += text.split('\n').length - 1
        if (begin.length < 100) begin += text.slice(0, 100)
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, lines, begin }))
      answer.on('error', reject)
    })
    asked.on('error', reject)
    if (body) body.pipe(asked)
    else asked.end()
  })
}

function* table(name: string, rows: number): Generator<string> {
  yield '#device_name;host;description\r\n'
  for (let from = 0; from < rows; from += 100) {
    let text = ''
    for (let i = from; i < from + 100; i++)
      text += `${name}${i};10.${i >> 16}.${(i >> 8) & 255}.${i & 255};of the large estate, ${i}\r\n`
    yield text
  }
}

await ask('POST', '/import/devices', Readable.from(table('warm', WARM_ROWS)))
if (process.argv[2] === 'own') {
  globalThis.gc?.()
  console.log(process.memoryUsage().heapUsed / MiB)
  process.exit()
}
const before = process.memoryUsage.rss()
let peak = before
const watch = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss())
}, 20)

let slowest = 0
let isOver = false
const others = (async () => {
  while (!isOver) {
    const begin = performance.now()
    await ask('GET', '/version')
    slowest = Math.max(slowest, performance.now() - begin)
    await sleep(50)
  }
})()

const begin = performance.now()
const imported = await ask('POST', '/import/devices', Readable.from(table('srv', ROWS)))
const seconds = (performance.now() - begin) / 1000
const exported = await ask('GET', '/export/devices')
const again = await ask('POST', '/import/devices', Readable.from(table('srv', ROWS)))
isOver = true
await others
clearInterval(watch)
const { total } = await h.store.devices.list({ limit: 1, offset: 0 })
const events = (await h.store.audit.last())?.sequence ?? 0
const growth = (peak - before) / MiB
console.log(JSON.stringify({ imported, exported, again, total, events, seconds, growth, slowest }))
await h.close()
