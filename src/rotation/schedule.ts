/** Cron expressions of policies, in their time zones. */
import { Cron } from 'croner'

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
