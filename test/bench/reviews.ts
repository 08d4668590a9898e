/**
 * What reviews cost the broker's loop at thousands of sessions: when nothing has changed, when one right goes and
 * when the rights of all go. The gate and the store are real; no client is connected.
 */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { REMINDER_INTERVAL_MS, REVIEW_INTERVAL_MS } from '../../src/gate/review.ts'
import { type Crowd, crowd, idOf } from '../gate/crowd.ts'
import { table } from './stats.ts'

const SETTLE_MS = 5_000
const IDLE_MS = 20_000
const RESOLUTION_MS = 10

export interface Reviews {
  what: string
  /** Until the last end was told and written, in milliseconds; absent where nothing ends. */
  took?: number
  /** Processor time of the loop, in milliseconds; of idle sessions for each second. */
  cpu: number
  /** Longest pause of the loop, in milliseconds. */
  pause: number
}

export async function measureReviews(sessions: number, progress: (what: string) => void): Promise<Reviews[]> {
  progress(`${sessions} sessions`)
  const all = await crowd(sessions)
  const { gate, temporary } = all
  const { store } = temporary
  try {
    await sleep(SETTLE_MS)
    progress('idle')
    const idle = await measured('idle, a second', async () => {
      const reviews = setInterval(() => void gate.review(), REVIEW_INTERVAL_MS)
      const reminders = setInterval(() => gate.remind(), REMINDER_INTERVAL_MS)
      await sleep(IDLE_MS)
      clearInterval(reviews)
      clearInterval(reminders)
    })
    idle.cpu /= IDLE_MS / 1000
    delete idle.took
    const points = [idle]
    progress('changes')
    points.push(
      await measured('a device is described anew', async () => {
        await store.devices.update(idOf('device', 5), { description: 'moved' })
        await gate.review()
      }),
      await measured('a user is disabled', async () => {
        await store.users.update(idOf('user', 7), { isDisabled: true })
        await gate.review()
      }),
    )
    expectStopped(all, 1)
    points.push(
      await measured('the authorization of all is withdrawn', async () => {
        await store.authorizations.update(idOf('grant'), { authorizeSessions: false })
        await gate.review()
      }),
    )
    expectStopped(all, sessions)
    return points
  } finally {
    await temporary.remove()
  }
}

function expectStopped({ stopped }: Crowd, count: number): void {
  if (stopped.size !== count) throw new Error(`expected ${count} sessions to be told, got ${stopped.size}`)
}

async function measured(what: string, work: () => Promise<void>): Promise<Reviews> {
  await sleep(SETTLE_MS)
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  const before = process.threadCpuUsage()
  const begin = performance.now()
  await work()
  const took = performance.now() - begin
  const { user, system } = process.threadCpuUsage(before)
  await sleep(2 * RESOLUTION_MS)
  delay.disable()
  return { what, took, cpu: (user + system) / 1000, pause: delay.max / 1e6 - RESOLUTION_MS }
}

export function showReviews(points: readonly Reviews[], sessions: number): string {
  return table([
    [`reviews of ${sessions} sessions, ms`, 'until the last', 'processor', 'longest pause'],
    ...points.map(({ what, took, cpu, pause }) => [
      what,
      took?.toFixed(0) ?? '',
      cpu.toFixed(2),
      pause.toFixed(1),
    ]),
  ])
}
