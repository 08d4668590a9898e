import { beforeEach, expect, test } from 'vitest'
import { countStep } from '../../src/broker/durations.ts'
import { type Step, Steps } from '../../src/gate/steps.ts'
import { metricsOf } from '../broker/parts-of-metrics.ts'

let now: number
let reported: Step[]
let steps: Steps
beforeEach(() => {
  now = 1000
  reported = []
  steps = new Steps({ monotonic: () => now, onStep: (step) => void reported.push(step) })
})

test('a step has its time and its result, and gives the answer back', async () => {
  const answer = await steps.time(
    'sign_in',
    async () => {
      now += 40
      return 'accepted'
    },
    (result = 'failed') => ({ result, protocol: 'SSH' }),
  )
  expect(answer).toBe('accepted')
  expect(reported).toEqual([{ name: 'sign_in', begin: 1000, end: 1040, result: 'accepted', protocol: 'SSH' }])
})

test('a step that fails is reported, and goes on to fail', async () => {
  const failing = steps.time(
    'recording_open',
    (): Promise<string> => Promise.reject(new Error('no room')),
    (result = 'failed') => ({ result }),
  )
  await expect(failing).rejects.toThrow('no room')
  expect(reported).toMatchObject([{ name: 'recording_open', result: 'failed' }])
})

test('a target is reached once, or not at all', () => {
  steps.granted('a', 'SSH')
  steps.granted('b', 'RDP')
  now += 25
  steps.reached('a')
  steps.reached('a')
  steps.closed('a')
  steps.closed('b')
  steps.reached('unknown')
  expect(reported.map(({ session, result, begin, end }) => [session, result, end - begin])).toEqual([
    ['a', 'connected', 25],
    ['b', 'failed', 25],
  ])
})

test('steps are counted by protocol and result', async () => {
  const { durations, registry } = metricsOf()
  const at = { begin: 0, end: 250, protocol: 'SSH', session: 'x' } as const
  countStep(durations, { name: 'sign_in', result: 'accepted', ...at })
  countStep(durations, { name: 'authorization', result: 'opened', ...at })
  countStep(durations, { name: 'target_connect', result: 'connected', ...at })
  countStep(durations, { name: 'recording_append', result: 'appended', ...at })
  const text = await registry.metrics()
  for (const series of [
    'sallyport_sign_in_duration_seconds_bucket{le="0.3",protocol="SSH",result="accepted"} 1',
    'sallyport_sign_in_duration_seconds_bucket{le="0.1",protocol="SSH",result="accepted"} 0',
    'sallyport_session_authorization_duration_seconds_sum{protocol="SSH",result="opened"} 0.25',
    'sallyport_target_connect_duration_seconds_count{protocol="SSH",result="connected"} 1',
    'sallyport_recording_lag_seconds_count{result="appended"} 1',
  ]) {
    expect(text).toContain(series)
  }
})
