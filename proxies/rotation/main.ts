/**
 * A changer: the process in which plugins talk to targets. It has no database, no master key and no files, and gets the secrets
 * of one job at a time with the job; without the broker it ends (invariant 1).
 */
import type { Buffer } from 'node:buffer'
import { Socket } from 'node:net'
import { settle } from '../../src/confine/settle.ts'
import { CHANGER_VERSION, type ChangeJob, type ToChanger, type Verdict } from '../../src/contract/change.ts'
import { MessageReader } from '../../src/contract/message-reader.ts'
import { encodeMessage } from '../../src/contract/wire.ts'
import { MESSAGES_DESCRIPTOR } from '../../src/contract/worker.ts'
import { ChangeError, timedOut } from './plugin.ts'
import { PLUGINS } from './plugins.ts'

settle()
const socket = new Socket({ fd: MESSAGES_DESCRIPTOR, readable: true, writable: true })
const reader = new MessageReader()
const jobs = new Map<number, AbortController>()

const end = (): never => process.exit(0)
socket.on('close', end)
socket.on('error', end)
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
// A plugin's fault ends its job, and no other.
process.on('unhandledRejection', (error) => console.error('internal error', nameOf(error)))

socket.on('data', (piece: Buffer) => {
  for (const message of reader.read(piece)) take(message as ToChanger)
})

function send(message: object): void {
  for (const part of encodeMessage(message)) socket.write(part)
}

function take(message: ToChanger): void {
  switch (message.type) {
    case 'begin':
      if (message.version !== CHANGER_VERSION) end()
      send({ type: 'ready', version: CHANGER_VERSION })
      return
    case 'cancel':
      jobs.get(message.id)?.abort()
      return
    case 'job':
      void run(message.id, message.job, message.timeoutMs)
  }
}

async function run(id: number, job: ChangeJob, timeoutMs: number): Promise<void> {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(), timeoutMs)
  jobs.set(id, controller)
  try {
    const verdict = await Promise.race([work(job, controller.signal), aborted(controller.signal)])
    send({ type: 'done', id, ...(verdict && { verdict }) })
  } catch (error) {
    // Other errors may hold a secret: only their kind is told.
    const told =
      error instanceof ChangeError
        ? { code: error.code, message: error.message }
        : { code: 'unclear', message: `the plugin failed: ${nameOf(error)}` }
    send({ type: 'failed', id, ...told })
  } finally {
    clearTimeout(timer)
    // Ends what the plugin may have left open.
    controller.abort()
    jobs.delete(id)
  }
}

async function work(job: ChangeJob, signal: AbortSignal): Promise<Verdict | undefined> {
  const load = Object.hasOwn(PLUGINS, job.plugin) ? PLUGINS[job.plugin as keyof typeof PLUGINS] : undefined
  if (!load) throw new ChangeError('unsupported', 'there is no such plugin')
  const plugin = await load()
  switch (job.work) {
    case 'verify':
      return await plugin.verify(job.target, job.as, signal)
    case 'change':
      await plugin.change(job.target, job.change, signal)
      return undefined
    case 'retire':
      await plugin.retire?.(job.target, job.retired, signal)
      return undefined
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(timedOut()), { once: true })
  })
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error
}
