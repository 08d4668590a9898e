/**
 * Code of an attacker inside a session worker, for takeover.test.ts: `node --import` loads it ahead of the worker's own
 * program, with which it shares the process, the cage and the connection to the broker. It does what the test tells it
 * by a TCP connection of its own: the worker may connect to targets.
 */
import { Buffer } from 'node:buffer'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { constants } from 'node:os'
import { openKernel } from '../../src/confine/kernel.ts'
import { CALLS, FORBIDDEN, type NumberOf, PROGRAMS } from '../../src/confine/system-calls.ts'
import { MessageReader } from '../../src/contract/message-reader.ts'
import { encodeMessage } from '../../src/contract/wire.ts'
import { MESSAGES_DESCRIPTOR, type ToWorker } from '../../src/contract/worker.ts'

/** An order of the test, answered by `{ id, result }`. */
export type Order =
  /** The gate's answer, or the text of its refusal. */
  | { id: number; do: 'ask'; method: string; request: object }
  /** Sends any message to the broker, without an answer. */
  | { id: number; do: 'send'; message: object }
  /** Sends this request again and again, each when the one before is answered. Returns how many were. */
  | { id: number; do: 'repeat'; method: string; request: object; milliseconds: number }
  /** `done`, or the error's name. */
  | { id: number; do: 'try'; what: keyof typeof ATTEMPTS; on: string }

export const CONTROL_VARIABLE = 'TAKEOVER_CONTROL'
/** The worker's own requests have lower numbers. */
const FIRST_REQUEST = 1_000_000

const OPENAT: NumberOf = { x64: 257, arm64: 56 }
const AT_FDCWD = -100
const O_WRONLY_CREAT = 0o101
const PTRACE_SEIZE = 0x4206
const AF_INET = 2
const SOCK_STREAM = 1
const NAMES = new Map(Object.entries(constants.errno).map(([name, number]) => [number as number, name]))

const opened = openKernel()
const call = 'kernel' in opened ? opened.kernel.call : () => -constants.errno.ENOSYS
const named = (result: number): string => (result < 0 ? (NAMES.get(-result) ?? String(result)) : 'done')
const path = (text: string): Uint8Array => Buffer.from(`${text}\0`)
const byNode = (work: () => unknown): string => {
  try {
    work()
    return 'done'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
}

/** By system calls, past Node's own permissions; `by Node` through those. */
const ATTEMPTS = {
  read: (file: string) => named(call(OPENAT, AT_FDCWD, path(file), 0, 0)),
  'read by Node': (file: string) => byNode(() => readFileSync(file)),
  write: (file: string) => named(call(OPENAT, AT_FDCWD, path(file), O_WRONLY_CREAT, 0o600)),
  trace: (pid: string) => named(call(FORBIDDEN.ptrace, PTRACE_SEIZE, Number(pid), 0, 0)),
  signal: (pid: string) => named(call(CALLS.kill, Number(pid), constants.signals.SIGCONT)),
  'become another program': (file: string) => named(call(PROGRAMS.execve, path(file), 0, 0)),
  'start a program by Node': (file: string) =>
    byNode(() => {
      const { error } = spawnSync(file)
      if (error) throw error
    }),
  listen: () => named(call(CALLS.listen, call(CALLS.socket, AF_INET, SOCK_STREAM, 0), 1)),
  'listen by Node': (host: string) =>
    new Promise<string>((resolve) => {
      const server = createServer()
      server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? String(error)))
      server.listen(0, host, () => server.close(() => resolve('done')))
    }),
}

let asked = FIRST_REQUEST
const answers = new Map<number, (answer: unknown) => void>()
let broker: Socket | undefined

/** Finds the worker's connection to the broker, among all that is open in this process, before a message has come. */
function takeOver(): void {
  const handles = (
    process as unknown as { _getActiveHandles(): { _handle?: { fd?: number } }[] }
  )._getActiveHandles()
  broker = handles.find((one) => one._handle?.fd === MESSAGES_DESCRIPTOR) as Socket | undefined
  if (!broker) {
    setImmediate(takeOver)
    return
  }
  const reader = new MessageReader()
  broker.on('data', (piece) => {
    for (const message of reader.read(piece) as ToWorker[]) {
      if (message.type === 'answer') answers.get(message.id)?.(message.answer)
      if (message.type === 'failure') answers.get(message.id)?.(message.message)
    }
  })
  serveTest()
}

function serveTest(): void {
  const control = connect(Number(process.env[CONTROL_VARIABLE]), '127.0.0.1')
  const reader = new MessageReader()
  control.on('error', () => undefined)
  control.on('data', (piece) => {
    for (const order of reader.read(piece) as Order[]) {
      void carryOut(order).then((result) =>
        control.write(Buffer.concat(encodeMessage({ id: order.id, result }))),
      )
    }
  })
}

async function carryOut(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'ask':
      return await ask(order.method, order.request)
    case 'repeat': {
      const end = performance.now() + order.milliseconds
      const late = new Promise<'late'>((resolve) => setTimeout(resolve, order.milliseconds, 'late'))
      let answered = 0
      while (performance.now() < end) {
        if ((await Promise.race([ask(order.method, order.request), late])) === 'late') break
        answered++
      }
      return answered
    }
    case 'send':
      send(order.message)
      return 'sent'
    case 'try':
      return await ATTEMPTS[order.what](order.on)
  }
}

function ask(method: string, request: object): Promise<unknown> {
  const id = asked++
  send({ type: 'ask', id, method, request })
  return new Promise((resolve) => answers.set(id, resolve))
}

function send(message: object): void {
  broker!.write(Buffer.concat(encodeMessage(message)))
}

// It survives what it can: only the kernel ends it.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
setImmediate(takeOver)
