/** The session workers of a broker: how they are started, what is logged of them, and the events of their ends. */
import type { Audit } from '../audit/events/catalogue.ts'
import type { Config } from '../config/config.ts'
import { boundaryOf, type CageReport } from '../confine/report.ts'
import type { Logger } from '../host/log.ts'
import { openPass } from '../sockets/pass.ts'
import { workerCommand } from '../workers/command.ts'
import type { WorkerEnd } from '../workers/process.ts'
import type { SeatGate } from '../workers/seat.ts'
import { LOOP_LENGTH, type WorkersOptions } from '../workers/workers.ts'

/** Milliseconds between two alerts: a loop that goes on is one to look after, and no reason to fill the log. */
const LOOP_ALERT_MS = 15 * 60_000

export interface WorkerParts {
  gate: SeatGate
  audit: Audit
  logger: Logger
  onDelay: (delayMs: number) => void
}

/** Throws an error with the remedy if this system cannot have session workers, or their user does not exist. */
export async function workerOptions(
  { workers, runAs }: Config,
  { gate, audit, logger, onDelay }: WorkerParts,
): Promise<Omit<WorkersOptions, 'settings'>> {
  const opened = await openPass()
  if ('missing' in opened) {
    throw new Error(
      `connections cannot be passed to session workers (${opened.missing}): set workers: 0, which gives up the boundary between clients and keys`,
    )
  }
  const { command, memory, warning } = workerCommand(workers, runAs)
  if (warning !== undefined) logger.warn(warning)
  return {
    count: workers,
    command,
    gate,
    pass: opened.pass,
    maxMemory: memory,
    onBegun: boundaryLog(logger),
    onDelay,
    warn: (message, details) => logger.warn(details, message),
    onLost: lossLog(audit, logger),
  }
}

/** Returns a function that logs once what the boundary is made of, and again when that has changed. */
export function boundaryLog(
  logger: Pick<Logger, 'info' | 'warn'>,
  processes?: string,
): (report: CageReport) => void {
  let logged: string | undefined
  return (report) => {
    const { text, isWhole } = boundaryOf(report, process.getuid?.() ?? -1, processes)
    if (text === logged) return
    logged = text
    if (isWhole) logger.info(text)
    else logger.warn(text)
  }
}

/** Returns a function that writes the event of each loss, and an alert when workers die in a loop. */
export function lossLog(
  audit: Audit,
  logger: Pick<Logger, 'error'>,
  monotonic: () => number = () => performance.now(),
): (end: WorkerEnd, early: number) => void {
  let alerted = Number.NEGATIVE_INFINITY
  return ({ pid, reason, sessions }, early) => {
    const told = { object_type: 'worker', object: String(pid), reason }
    const failed = (error: unknown) => logger.error({ error, reason }, 'a session worker is gone')
    audit.record('worker.lost', { ...told, count: sessions }).catch(failed)
    if (early < LOOP_LENGTH || monotonic() - alerted < LOOP_ALERT_MS) return
    alerted = monotonic()
    audit.record('worker.loop', { ...told, count: early }).catch(failed)
  }
}
