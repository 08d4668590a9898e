/**
 * A program that does what a session worker has to do, in its cage, and says what it came to. It has a pipe at
 * descriptor 3 and a channel to its parent at 4. Argument: the port of a TCP server.
 */
import { randomBytes } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { rootCertificates } from 'node:tls'
import { Worker } from 'node:worker_threads'
import { gunzipSync, gzipSync } from 'node:zlib'
import { nativeCryptoAvailable } from '../../proxies/ssh/transport/ssh2.ts'
import { openKernel } from '../../src/confine/kernel.ts'
import { settle } from '../../src/confine/settle.ts'

const [port] = process.argv.slice(2)
const report = settle()
const fromParent: unknown[] = []
process.on('message', (message) => fromParent.push(message))

async function talk(): Promise<string> {
  const socket = connect(Number(port), '127.0.0.1')
  socket.end('ping')
  const [answer] = await once(socket, 'data')
  return String(answer)
}

async function think(): Promise<unknown> {
  // A thread steps back for the main one, as that of hashes does.
  const code = `const t = require('node:worker_threads')
require('node:os').setPriority(0, 19)
t.parentPort.postMessage(6 * 7)`
  const worker = new Worker(code, { eval: true })
  const [result] = await once(worker, 'message')
  await worker.terminate()
  return result
}

async function timers(): Promise<number> {
  const all = Array.from({ length: 100 }, (_, index) => wait(index % 10, index))
  return (await Promise.all(all)).length
}

async function allMessages(): Promise<number> {
  while (fromParent.at(-1) !== 'last') await once(process, 'message')
  return fromParent.length
}

writeSync(3, 'through the pipe')
const done = {
  report,
  answer: await talk(),
  addresses: (await lookup('localhost', { all: true })).map(({ address }) => address),
  thought: await think(),
  timers: await timers(),
  binding: nativeCryptoAvailable(),
  foreign: 'kernel' in openKernel(),
  source: readFileSync(new URL(import.meta.url), 'utf8').includes('readFileSync'),
  packages: readdirSync(
    createRequire(import.meta.url)
      .resolve('ssh2/package.json')
      .replace(/package\.json$/, ''),
  ).length,
  memory: process.memoryUsage().rss > 0,
  limits: readFileSync('/proc/self/limits', 'utf8'),
  isFirstWithoutMemory: readFileSync('/proc/self/oom_score_adj', 'utf8').trim() === '500',
  random: randomBytes(8).length,
  unzipped: gunzipSync(gzipSync('text')).toString(),
  authorities: rootCertificates.length > 0,
  messages: await allMessages(),
  environment: process.env,
  arguments: process.argv.slice(2),
}
process.send!(done, () => process.disconnect())
