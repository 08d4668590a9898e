/** Events sent over one connection leave nothing in the broker's memory. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { Feed } from '../../src/audit/feeds/feed.ts'
import { RecentRows } from '../../src/audit/feeds/recent.ts'
import { type Sink, systemAfter } from '../../src/audit/sink.ts'
import { openStream } from '../../src/audit/sinks/stream.ts'

const TIMES = 10_000
/** A race for each event would leave three to twelve times as much. */
const BYTES_EACH = 100

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** Returns the bytes by which the heap grows each time, once it is warm. */
async function growth(once: (time: number) => Promise<void>): Promise<number> {
  let before = 0
  for (let time = 1; time <= 2 * TIMES; time++) {
    await once(time)
    if (time !== TIMES && time !== 2 * TIMES) continue
    await setImmediate()
    collect()
    if (time === TIMES) before = process.memoryUsage().heapUsed
  }
  return (process.memoryUsage().heapUsed - before) / TIMES
}

test('a feed', { timeout: 300_000 }, async () => {
  let received = 0
  const sink: Sink = {
    type: 'syslog',
    address: 'memory',
    identity: 'memory',
    wants: () => true,
    connect: async ({ settled }) => ({
      send: async (events) => {
        received = events.at(-1)?.sequence ?? received
        settled(received)
      },
      close: async () => {},
    }),
  }
  const rows = new RecentRows({ range: async () => [], last: async () => undefined })
  const nothing = () => undefined
  const feed = new Feed({
    sink,
    rows,
    position: 0,
    onPosition: nothing,
    onDown: nothing,
    onUp: nothing,
    onMissed: nothing,
    after: systemAfter,
  })
  feed.start()
  const grown = await growth(async (sequence) => {
    rows.add([{ sequence, time: 1, code: 'command', fields: {} }])
    feed.wake()
    while (received < sequence) await setImmediate()
  })
  await feed.close()
  expect(grown).toBeLessThan(BYTES_EACH)
})

test('a stream', { timeout: 300_000 }, async () => {
  const server = createServer((socket) => socket.resume()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const stream = await openStream(
    { host: '127.0.0.1', port, after: systemAfter },
    { settled: () => undefined, broken: () => undefined },
  )
  const bytes = Buffer.from('x')
  const grown = await growth((sequence) => stream.send([{ sequence, bytes }]))
  await stream.close()
  server.close()
  expect(grown).toBeLessThan(BYTES_EACH)
})
