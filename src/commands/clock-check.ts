/** The findings of `sallyport check` about the clock: by itself, by the kernel, and beside that of the database's server. */
import type { Config } from '../config/config.ts'
import { openKernel } from '../confine/kernel.ts'
import { databaseClock } from '../store/open.ts'
import type { Finding } from './finding.ts'

/** With an earlier clock the broker would show certificates and signatures that clients reject. */
const EARLIEST_CLOCK = Date.UTC(2026, 0, 1)
/** Milliseconds between two clocks: leases and locks of several brokers, one-time codes. */
const APART_MS = 2_000
const FAR_APART_MS = 30_000

const ADJTIMEX = { x64: 159, arm64: 171 } as const
/** adjtimex(2): bytes of `struct timex`, and its answer for a clock that nothing keeps in step. */
const TIMEX_LENGTH = 208
const TIME_ERROR = 5

const subject = 'clock'

/** `now`: milliseconds since the epoch. */
export async function clock(config: Config, now: () => number = Date.now): Promise<Finding[]> {
  return [here(now()), ...inStep(), ...(await besideDatabase(config, now))]
}

function here(time: number): Finding {
  const sane = time > EARLIEST_CLOCK
  return {
    level: sane ? 'ok' : 'error',
    subject,
    text: `${new Date(time).toISOString()}${sane ? '' : ': set the clock'}`,
  }
}

/** Asks the kernel, without a change, whether a program keeps its clock in step with others. */
function inStep(): Finding[] {
  const opened = openKernel()
  if ('missing' in opened) return []
  const state = opened.kernel.call(ADJTIMEX, new Uint8Array(TIMEX_LENGTH))
  // A container may forbid the question.
  if (state < 0) return []
  if (state !== TIME_ERROR) return [{ level: 'ok', subject, text: 'kept in step by NTP or another source' }]
  const text =
    'the kernel knows of nothing that keeps it in step: one-time codes, Kerberos and the order of events rest on it; install chrony, or systemd-timesyncd'
  return [{ level: 'warning', subject, text }]
}

async function besideDatabase({ database }: Config, now: () => number): Promise<Finding[]> {
  if ('file' in database) return []
  try {
    const begin = now()
    const theirs = await databaseClock(database.postgres)
    const end = now()
    // The answer was made between the two.
    const apart = Math.round(theirs < begin ? begin - theirs : Math.max(0, theirs - end))
    const level = apart > FAR_APART_MS ? 'error' : apart > APART_MS ? 'warning' : 'ok'
    const remedy = level === 'ok' ? '' : ': keep both in step by NTP'
    return [{ level, subject, text: `${apart} ms apart from the clock of the database's server${remedy}` }]
  } catch {
    // The finding about the store says why.
    return []
  }
}
