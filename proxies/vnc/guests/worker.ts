/** The thread that draws a session's desktop for its guests. */
import { setPriority } from 'node:os'
import { performance } from 'node:perf_hooks'
import { parentPort } from 'node:worker_threads'
import { GuestCompositor } from './compositor.ts'
import type { ToThread } from './messages.ts'

/** A nice value, 19 at most: the active users of a session come before its guests. */
const NICENESS = 5

// On Linux 0 is the calling thread (setpriority(2), C library/kernel differences), elsewhere the whole process.
if (process.platform === 'linux') setPriority(0, NICENESS)

const desk = new GuestCompositor({
  post: (message) => parentPort?.postMessage(message),
  after: (milliseconds, call) => void setTimeout(call, milliseconds),
  now: () => performance.now(),
})

parentPort?.on('message', (message: ToThread) => desk.take(message))
