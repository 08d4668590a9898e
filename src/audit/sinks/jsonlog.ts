/** Events as lines of the broker's log: `{"level":"info","time":…,"event":"auth.success","user":…,"msg":…}`. */
import type { Logger } from 'pino'
import { severityOf } from '../catalogue.ts'
import type { StoredEvent } from '../chain.ts'
import type { Severity } from '../fields.ts'
import { sentenceOf, timestampOf } from '../sentence.ts'
import type { Sink } from '../sink.ts'

const LEVELS = { notice: 'info', warning: 'warn', alert: 'error' } as const satisfies Record<Severity, string>

export class JsonLogSink implements Sink {
  readonly type = 'log'
  readonly address = 'log'
  readonly queued = 0
  readonly lost = 0
  readonly #logger: Logger

  /** Lines go where the logger's lines go, whatever its level is. */
  constructor(logger: Logger) {
    this.#logger = logger.child({}, { level: 'trace' })
  }

  send(event: StoredEvent): void {
    const severity = severityOf(event)
    const { code, sequence, fields } = event
    // `occurred` is the event's own time; the line's `time` is when it was written
    this.#logger[LEVELS[severity]](
      { event: code, severity, sequence, occurred: timestampOf(event), ...fields },
      sentenceOf(event),
    )
  }

  async close(): Promise<void> {}
}
