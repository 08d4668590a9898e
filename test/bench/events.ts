/**
 * Events of the audit log: what one costs the action that raises it, and how many a second two receivers get, on one
 * thread. The receivers are another process, which reads and counts.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Feeds } from '../../src/audit/feeds/feeds.ts'
import { freshRegister } from '../../src/audit/feeds/register.ts'
import { AuditLog } from '../../src/audit/log.ts'
import { SyslogSink } from '../../src/audit/sinks/syslog.ts'
import { openUnacknowledged } from '../../src/sockets/outgoing.ts'
import { temporaryStore } from '../store/temp.ts'
import { table } from './stats.ts'

const EVENTS = 40_000
/** Sessions that raise events at a time. */
const AT_A_TIME = 500
const RECEIVERS = 2
const WAIT_MS = 5

const RECEIVER = `
  const { createServer } = require('node:net')
  createServer((socket) => socket.resume()).listen(0, '127.0.0.1', function () { console.log(this.address().port) })
`

async function startReceiver(): Promise<{ port: number; stop: () => void }> {
  const child = spawn(process.execPath, ['-e', RECEIVER], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [port] = await once(createInterface(child.stdout), 'line')
  return { port: Number(port), stop: () => void child.kill() }
}

interface Cost {
  /** Events of a second. */
  rate: number
  /** Microseconds of this process' processor time for each event. */
  cpu: number
}

async function measured(work: () => Promise<void>): Promise<Cost> {
  const [begin, cpu] = [performance.now(), process.cpuUsage()]
  await work()
  const { user, system } = process.cpuUsage(cpu)
  return { rate: EVENTS / ((performance.now() - begin) / 1000), cpu: (user + system) / EVENTS }
}

const temporary = await temporaryStore()
const receivers = await Promise.all(Array.from({ length: RECEIVERS }, startReceiver))
try {
  const repository = temporary.store.audit
  let register = freshRegister()
  const audit = new AuditLog({ repository, now: Date.now, onStored: (events) => feeds.stored(events) })
  const feeds = new Feeds({
    repository,
    folder: join(temporary.path, '..', 'sinks'),
    register: {
      read: async () => register,
      write: async (registered) => {
        register = registered
      },
    },
    audit,
    onError: (error) => process.stderr.write(`${error.message}\n`),
  })
  const raise = async (): Promise<void> => {
    const one = (index: number) =>
      audit.record('command', {
        ...{ user: 'ops1', client_ip: '192.0.2.1', session: '01K9T5RZ8Q4W6X2C3V0000000A', device: 'srv1' },
        object: `systemctl restart unit-${index}`,
      })
    for (let first = 0; first < EVENTS; first += AT_A_TIME) {
      await Promise.all(Array.from({ length: AT_A_TIME }, (_, i) => one(first + i)))
    }
  }
  const taken = async (): Promise<void> => {
    // A row counts as received seconds later, if the connection stays open: that is no measure of the rate.
    while (feeds.feeds.some(({ queued }) => queued > 0))
      await new Promise((done) => setTimeout(done, WAIT_MS))
  }
  const unacknowledged = await openUnacknowledged()
  const sinks = receivers.map(
    ({ port }) =>
      new SyslogSink({
        target: { host: '127.0.0.1', port, transport: 'tcp', format: 'rfc5424' } as never,
        origin: { hostname: 'bastion', version: '0', processId: process.pid, enterprise: 32473 },
        unacknowledged,
      }),
  )
  await raise()
  const alone = await measured(raise)
  const last = (await repository.last())?.sequence ?? 0
  await feeds.open(sinks, last - EVENTS)
  const backlog = await measured(taken)
  const both = await measured(async () => {
    await raise()
    await taken()
  })
  await audit.close()
  await feeds.close()
  const row = (name: string, { rate, cpu }: Cost) => [name, rate.toFixed(0), cpu.toFixed(1)]
  process.stdout.write(
    `${table([
      [`${EVENTS} events, ${AT_A_TIME} at a time`, '1/s', 'CPU, µs each'],
      row('stored in the log', alone),
      row(`sent from the log to ${RECEIVERS} receivers (TCP)`, backlog),
      row('both', both),
    ])}\n`,
  )
} finally {
  for (const { stop } of receivers) stop()
  await temporary.remove()
}
