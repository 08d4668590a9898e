/** The thread that draws a session's desktop for its guests. */
import { performance } from 'node:perf_hooks'
import { parentPort } from 'node:worker_threads'
import { giveWay } from '../../../src/threads/priority.ts'
import { GuestCompositor } from './compositor.ts'
import type { ToThread } from './messages.ts'

/** A nice value, 19 at most: the active users of a session come before its guests. */
const NICENESS = 5

giveWay(NICENESS)

const desk = new GuestCompositor({
  post: (message) => parentPort?.postMessage(message),
  after: (milliseconds, call) => void setTimeout(call, milliseconds),
  now: () => performance.now(),
})

parentPort?.on('message', (message: ToThread) => desk.take(message))
