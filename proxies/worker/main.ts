/**
 * A session worker: the process that serves clients. It has no database, no master key and no files; all that it
 * knows of the broker comes through its descriptors, and without the broker it ends (invariant 1).
 */
import type { Buffer } from 'node:buffer'
import { Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { settle } from '../../src/confine/settle.ts'
import { MessageReader } from '../../src/contract/message-reader.ts'
import { WITHOUT_URGENCY } from '../../src/contract/urgent-data.ts'
import {
  LOOP_LOOK_MS,
  MAX_LOOP_DELAY_MS,
  MESSAGES_DESCRIPTOR,
  type PassedConnection,
  type PassedTarget,
  RECORDINGS_DESCRIPTOR,
  type ToWorker,
  WORKER_VERSION,
} from '../../src/contract/worker.ts'
import { Slack } from '../../src/memory/slack.ts'
import type { TcpHandle } from '../../src/sockets/accept.ts'
import { claimPeer } from '../../src/sockets/claimed.ts'
import { arrive } from '../../src/sockets/dialled.ts'
import { openUrgentData } from '../../src/sockets/urgent.ts'
import { sealInto } from '../session/sealing.ts'
import { Fronts } from './fronts.ts'
import { GateClient } from './gate-client.ts'

// Before anything of a client is read.
const cage = settle()
// In ps and top. It does not contain the broker's name: a signal to that one by its name would cut the sessions off.
process.title = 'session-worker'
const opened = await openUrgentData()
const urgent = 'urgent' in opened ? opened.urgent : WITHOUT_URGENCY
const slack = await Slack.open()
const socket = new Socket({ fd: MESSAGES_DESCRIPTOR, readable: true, writable: true })
const sealer = sealInto({ descriptor: RECORDINGS_DESCRIPTOR, onTorn: () => process.exit(1) })
const gate = new GateClient(socket, sealer)
const reader = new MessageReader()
let fronts: Fronts | undefined
const delays = monitorEventLoopDelay({ resolution: LOOP_LOOK_MS })
delays.enable()

/** Without the broker nothing can be recorded or audited: no session may go on (invariant 2). */
const end = (): never => process.exit(0)
socket.on('close', end)
socket.on('error', end)
process.on('disconnect', end)
// The broker ends its workers when their sessions have had their time.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
// A fault after the end of one connection must not cut the others off; the broker logs what is on stderr.
process.on('unhandledRejection', (error) => console.error('internal error', error))

process.on('message', (message: PassedConnection | PassedTarget, handle: TcpHandle) => {
  if ('dialled' in message) {
    arrive(message.dialled, handle)
    return
  }
  const { front, connection, source } = message
  claimPeer(handle, source)
  const onClosed = () => gate.send({ type: 'closed', connection })
  const accepted = fronts?.accept(front, handle)
  if (accepted) accepted.once('close', onClosed)
  else onClosed()
})

socket.on('data', (piece: Buffer) => {
  for (const message of reader.read(piece)) take(message as ToWorker)
})

function take(message: ToWorker): void {
  if (gate.take(message)) return
  switch (message.type) {
    case 'begin':
      if (message.version !== WORKER_VERSION) end()
      fronts = new Fronts(message.settings, gate, urgent)
      slack.release()
      slack.watch(() => fronts?.connections ?? 0)
      gate.send({ type: 'ready', version: WORKER_VERSION, cage })
      return
    case 'settings':
      fronts?.change(message.settings)
      return
    case 'ping':
      gate.send({ type: 'pong', number: message.number, delayMs: takeDelay() })
      return
    case 'drain':
      void fronts?.drain(message.graceMs, message.reason).then(() => gate.send({ type: 'drained' }))
  }
}

/** Returns the longest delay of this loop since the last call, in milliseconds. */
function takeDelay(): number {
  const longest = delays.max / 1e6
  delays.reset()
  return Math.min(longest, MAX_LOOP_DELAY_MS)
}
