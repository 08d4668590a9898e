/** Cron expressions of policies, in their time zones, and the runs that they ask for. */
import { Cron } from 'croner'
import type { SecretSchedule } from '../model/password-change.ts'
import type { Store } from '../store/store.ts'
import { kindOf } from './place.ts'

/** Schedules read at a time. */
const READ_AT_ONCE = 500

/** Returns why the expression or the time zone is none, or undefined if both are. */
export function scheduleFlaw(expression: string, timeZone: string): string | undefined {
  try {
    const next = new Cron(expression, { timezone: timeZone, paused: true, mode: '5-part' }).nextRun()
    return next === null ? 'this time never comes' : undefined
  } catch (error) {
    return (error as Error).message.replace(/^CronPattern: /, '')
  }
}

/** Returns the first time after `after` that the expression names, in milliseconds since the epoch. */
export function nextRun(expression: string, timeZone: string, after: number): number {
  const cron = new Cron(expression, { timezone: timeZone, paused: true, mode: '5-part' })
  return cron.nextRun(new Date(after))?.getTime() ?? Number.POSITIVE_INFINITY
}

/**
 * Asks for the changes and checks that are due by the schedules of domains, and finds their next runs. A schedule that is new,
 * or was changed, begins now: it makes no run for a time that has passed. Several times that have passed while no broker ran
 * make one run.
 */
export async function runSchedules({ secretJobs }: Pick<Store, 'secretJobs'>, now: number): Promise<void> {
  await secretJobs.forgetSchedules()
  const nexts = new Map<string, number>()
  const nextOf = (period: string, timeZone: string): number => {
    const key = `${timeZone} ${period}`
    const next = nexts.get(key) ?? Math.min(nextRun(period, timeZone, now), Number.MAX_SAFE_INTEGER)
    nexts.set(key, next)
    return next
  }
  for (;;) {
    const found = await secretJobs.schedules(now, READ_AT_ONCE)
    const begun: SecretSchedule[] = []
    for (const { plugin, isDue, ...named } of found) {
      const schedule = { ...named, since: now, next: nextOf(named.period, named.timeZone) }
      const types = kindOf(plugin)?.credentials
      if (!isDue || !types) begun.push(schedule)
      else {
        const asked = { kind: named.kind, cause: 'schedule', user: '', isForced: false } as const
        await secretJobs.addForDomain(named.domainId, schedule, types, { ...asked, due: now, created: now })
      }
    }
    if (begun.length > 0) await secretJobs.setSchedules(begun)
    if (found.length < READ_AT_ONCE) return
  }
}
