/** `sallyport drain`: stops the broker, and waits until its sessions have ended. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../config/load.ts'
import { ControlClient } from '../control/client.ts'
import { ControlError } from '../control/messages.ts'
import { CONTROL_SOCKET, replacedSockets } from '../control/place.ts'
import { type Command, expectNoWords } from './command.ts'
import { graceOption } from './grace.ts'

const LOOK_MS = 1_000

export const drain: Command = {
  synopsis: [
    [
      'drain [--grace 10m] [--no-wait]',
      'stop the broker; its sessions get the grace (default: shutdown_grace)',
    ],
  ],
  options: { grace: { type: 'string' }, 'no-wait': { type: 'boolean' } },
  async run(invocation) {
    expectNoWords('drain', invocation.words)
    const graceMs = graceOption(invocation)
    const { dataDir } = loadConfig(invocation.config)
    const brokers = await brokersOf(dataDir)
    if (brokers.length === 0) throw new Error(`no broker runs on the data folder ${dataDir}`)
    for (const broker of brokers) {
      await broker.ask({ type: 'drain', ...(graceMs !== undefined && { graceMs }) })
    }
    if (invocation.options['no-wait'] === true) {
      for (const broker of brokers) broker.destroy()
      process.stdout.write('no new sessions from now on\n')
    } else await showProgress(brokers)
    return 0
  },
}

/** Connects to the broker, and to those that it has replaced and whose sessions run on. */
async function brokersOf(dataDir: string): Promise<ControlClient[]> {
  const paths = [join(dataDir, CONTROL_SOCKET), ...replacedSockets(dataDir)]
  const brokers = await Promise.all(paths.map((path) => ControlClient.connect(path)))
  return brokers.filter((broker) => broker !== undefined)
}

/** Shows how many sessions are left, whenever that changes. Resolves when all brokers have ended. */
async function showProgress(brokers: readonly ControlClient[]): Promise<void> {
  const ended = Promise.all(brokers.map((broker) => broker.onClosed)).then(() => true)
  let shown: number | undefined
  for (;;) {
    const counts = await Promise.all(brokers.map(sessionsOf))
    const left = counts.reduce((sum, count) => sum + count, 0)
    if (left !== shown) process.stdout.write(`${left} ${left === 1 ? 'session' : 'sessions'} left\n`)
    shown = left
    if (await Promise.race([ended, sleep(LOOK_MS, false)])) break
  }
  process.stdout.write('the broker has ended\n')
}

async function sessionsOf(broker: ControlClient): Promise<number> {
  try {
    return (await broker.status()).sessions
  } catch (error) {
    // It has ended.
    if (error instanceof ControlError) return 0
    throw error
  }
}
