/**
 * A changer: the process in which plugins talk to targets. It has no database, no master key and no files, and gets the secrets
 * of one job at a time with the job; without the broker it ends (invariant 1).
 */

import { AsyncLocalStorage } from 'node:async_hooks'
import type { Buffer } from 'node:buffer'
import { Socket } from 'node:net'
import { settle } from '../../src/confine/settle.ts'
import { CHANGER_VERSION, type ChangeJob, type ToChanger, type Verdict } from '../../src/contract/change.ts'
import { MessageReader } from '../../src/contract/message-reader.ts'
import { encodeMessage } from '../../src/contract/wire.ts'
import { MESSAGES_DESCRIPTOR } from '../../src/contract/worker.ts'
import { ChangeError, type PluginTarget, timedOut } from './plugin.ts'
import { PLUGINS } from './plugins.ts'

const cage = settle()
process.title = 'secret-changer'
const socket = new Socket({ fd: MESSAGES_DESCRIPTOR, readable: true, writable: true })
const reader = new MessageReader()

interface Running {
  id: number
  controller: AbortController
  fail: (error: ChangeError) => void
}
const jobs = new Map<number, Running>()
/** The job for which code runs, also in callbacks of libraries. */
const current = new AsyncLocalStorage<Running>()
const questions = new Map<number, (refusal: string | undefined) => void>()
let question = 0

const end = (): never => process.exit(0)
socket.on('close', end)
socket.on('error', end)
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
// A promise that is left behind fails none that a job waits for.
process.on('unhandledRejection', (error) => console.error('internal error', nameOf(error)))
// A fault in a callback ends the job that it ran for, or all if it is none's: each has an outcome. Errors may hold secrets.
process.on('uncaughtException', (error) => {
  console.error('internal error', nameOf(error))
  const running = current.getStore()
  for (const one of running ? [running] : jobs.values()) one.fail(faultOf(error))
  send({ type: 'faulted' })
})

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
      send({ type: 'ready', version: CHANGER_VERSION, cage })
      return
    case 'cancel':
      jobs.get(message.id)?.controller.abort()
      return
    case 'judged':
      questions.get(message.question)?.(message.refusal)
      return
    case 'job':
      void run(message.id, message.job, message.timeoutMs)
  }
}

async function run(id: number, job: ChangeJob, timeoutMs: number): Promise<void> {
  const controller = new AbortController()
  const { signal } = controller
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => undefined)
  const running = { id, controller, fail: failed.reject }
  const timer = setTimeout(() => controller.abort(), timeoutMs)
  jobs.set(id, running)
  try {
    const worked = current.run(running, () => work(id, job, signal))
    const verdict = await Promise.race([worked, failed.promise, aborted(signal)])
    send({ type: 'done', id, ...(verdict && { verdict }) })
  } catch (error) {
    const { code, message } = error instanceof ChangeError ? error : faultOf(error)
    send({ type: 'failed', id, code, message })
  } finally {
    clearTimeout(timer)
    // Ends what the plugin may have left open.
    controller.abort()
    jobs.delete(id)
  }
}

/** Returns the error with its kind only: its message may hold a secret. */
function faultOf(error: unknown): ChangeError {
  return new ChangeError('unclear', `the plugin failed: ${nameOf(error)}`)
}

/** Asks the broker about a host key. Never resolves if the job ends before. */
function judge(id: number, key: Buffer, signal: AbortSignal): Promise<string | undefined> {
  const number = question++
  return new Promise((resolve) => {
    const answered = (refusal: string | undefined) => {
      questions.delete(number)
      resolve(refusal)
    }
    questions.set(number, answered)
    signal.addEventListener('abort', () => questions.delete(number), { once: true })
    send({ type: 'host_key', id, question: number, key: key.toString('base64') })
  })
}

async function work(id: number, job: ChangeJob, signal: AbortSignal): Promise<Verdict | undefined> {
  const load = Object.hasOwn(PLUGINS, job.plugin) ? PLUGINS[job.plugin as keyof typeof PLUGINS] : undefined
  if (!load) throw new ChangeError('unsupported', 'there is no such plugin')
  const plugin = await load()
  const target: PluginTarget = {
    ...job.target,
    ...(job.target.trust.hostKeyPolicy && { judgeHostKey: (key) => judge(id, key, signal) }),
  }
  switch (job.work) {
    case 'verify':
      return await plugin.verify(target, job.as, signal)
    case 'change':
      await plugin.change(target, job.change, signal)
      return undefined
    case 'retire':
      await plugin.retire?.(target, job.retired, signal)
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
