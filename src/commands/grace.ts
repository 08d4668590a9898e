/** The option `--grace`: how long running sessions may go on. */
import { parseDuration } from '../config/units.ts'
import { MAX_GRACE_MS } from '../control/messages.ts'
import { type Invocation, textOption, UsageError } from './command.ts'

/** Returns milliseconds, or undefined if the option is absent. Throws UsageError for anything but a duration. */
export function graceOption(invocation: Invocation): number | undefined {
  const text = textOption(invocation, 'grace')
  if (text === undefined) return undefined
  const grace = text === '0' ? 0 : durationOf(text)
  if (grace > MAX_GRACE_MS)
    throw new UsageError(`expected --grace of at most 24h, got ${JSON.stringify(text)}`)
  return grace
}

function durationOf(text: string): number {
  try {
    return parseDuration(text)
  } catch (error) {
    throw new UsageError(`--grace: ${(error as Error).message}`)
  }
}
