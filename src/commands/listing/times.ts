/** Times as people type them: `2031-05-30T12:00:00Z`, `2031-05`, `2h` (ago), `yesterday`, `today`, `now`; in UTC. */
import { parseDuration } from '../../config/units.ts'
import { timeSpan } from '../../search/bind.ts'
import { UsageError } from '../command.ts'

const DAY = 86_400_000

/** Returns the span of the time that a text names, in milliseconds, `to` excluded. `now` is of the same kind. */
function spanNamed(text: string, now: number): { from: number; to: number } | undefined {
  const today = now - (now % DAY)
  if (text === 'now') return { from: now, to: now + 1 }
  if (text === 'today') return { from: today, to: today + DAY }
  if (text === 'yesterday') return { from: today - DAY, to: today }
  if (!/^\d+[smhd]$/.test(text)) return timeSpan(text)
  const ago = now - parseDuration(text)
  return { from: ago, to: ago + 1 }
}

/** Returns the times between which `--from` and `--to` are, both included. @throws UsageError */
export function timesBetween(
  given: { from: string | undefined; to: string | undefined },
  now: number,
): { from?: number; before?: number } {
  const spans = Object.entries(given).map(([name, text]) => {
    if (text === undefined) return undefined
    const span = spanNamed(text, now)
    if (span) return span
    throw new UsageError(
      `--${name}: expected a time such as 2031-05-30T12:00:00Z, 2031-05-30, 2h (ago), yesterday or now, got ${JSON.stringify(text)}`,
    )
  })
  const [from, to] = spans
  return { ...(from && { from: from.from }), ...(to && { before: to.to }) }
}
