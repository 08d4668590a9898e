/** Histograms for Prometheus: how long users wait, and for what. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Histogram, type Registry } from 'prom-client'
import { LOOP_LOOK_MS } from '../contract/worker.ts'
import type { Step } from '../gate/steps.ts'

/** Seconds: of answers by this machine, and of those that wait for other machines or for a person's hash. */
const SHORT = [0.001, 0.005, 0.02, 0.1, 0.5, 2]
const LONG = [0.02, 0.1, 0.3, 1, 3, 10, 30]
/** Delays of an event loop: users notice those from 0.1 on. */
const DELAYS = [0.015, 0.03, 0.1, 0.3, 1, 3]
const LOOK_MS = 1000

export type Durations = ReturnType<typeof durations>

export function durations(registers: Registry[]) {
  const histogram = <L extends string>(name: string, help: string, buckets: number[], labelNames: L[]) =>
    new Histogram({ name: `sallyport_${name}_seconds`, help, buckets, labelNames, registers })
  return {
    signIns: histogram('sign_in_duration', 'Proofs at the fronts, judged, by result.', LONG, [
      'protocol',
      'result',
    ]),
    authorizations: histogram(
      'session_authorization_duration',
      'Answers to clients that open a session: rights, credential, and preparation of the recording.',
      LONG,
      ['protocol', 'result'],
    ),
    targetConnects: histogram(
      'target_connect_duration',
      "From the grant of a session to the target's host key, or else to the first channel.",
      LONG,
      ['protocol', 'result'],
    ),
    recordingLag: histogram(
      'recording_lag',
      'From the coming of recorded bytes to the broker until they are on the disk.',
      SHORT,
      ['result'],
    ),
    checkouts: histogram('checkout_duration', 'Requests to check a secret out, by status.', SHORT, [
      'status',
    ]),
    loopDelays: histogram(
      'eventloop_delay',
      'The longest delay of an event loop in each second, of the broker and of all session workers.',
      DELAYS,
      ['process'],
    ),
  }
}

/** Counts a step of a session. */
export function countStep(durations: Durations, { name, begin, end, result, ...step }: Step): void {
  const protocol: string = step.protocol ?? ''
  const seconds = (end - begin) / 1000
  if (name === 'sign_in') durations.signIns.observe({ protocol, result }, seconds)
  else if (name === 'authorization') durations.authorizations.observe({ protocol, result }, seconds)
  else if (name === 'target_connect') durations.targetConnects.observe({ protocol, result }, seconds)
  else if (name === 'recording_append') durations.recordingLag.observe({ result }, seconds)
}

/** Looks at the broker's own event loop until the returned function is called. */
export function watchLoop({ loopDelays }: Durations): () => void {
  const delays = monitorEventLoopDelay({ resolution: LOOP_LOOK_MS })
  delays.enable()
  const look = setInterval(() => {
    loopDelays.observe({ process: 'broker' }, delays.max / 1e9)
    delays.reset()
  }, LOOK_MS).unref()
  return () => {
    clearInterval(look)
    delays.disable()
  }
}
