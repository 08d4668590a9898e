/** Events as lines of the broker's log: `{"level":"info","time":…,"event":"auth.success","user":…,"msg":…}`. */
import type { Logger } from 'pino'
import type { StoredEvent } from '../chain.ts'
import { severityOf } from '../events/catalogue.ts'
import type { Severity } from '../events/fields.ts'
import { sentenceOf, timestampOf } from '../sentence.ts'
import type { Connection, ConnectionListener, Sink } from '../sink.ts'

const LEVELS = { notice: 'info', warning: 'warn', alert: 'error' } as const satisfies Record<Severity, string>

/** A line counts as received when it was written. */
export class JsonLogSink implements Sink {
  readonly type = 'log'
  readonly address = 'log'
  readonly identity = 'log'
  readonly #logger: Logger
  readonly #failure: () => Error | undefined

  /**
   * Lines go to the logger's output, whatever its level is. `failure`: returns the error of the last write,
   * unless one has succeeded since.
   */
  constructor(logger: Logger, failure: () => Error | undefined = () => undefined) {
    this.#logger = logger.child({}, { level: 'trace' })
    this.#failure = failure
  }

  wants(): boolean {
    return true
  }

  async connect({ settled }: ConnectionListener): Promise<Connection> {
    return {
      send: async (events) => {
        for (const event of events) {
          this.#write(event)
          const failure = this.#failure()
          if (failure) throw failure
          settled(event.sequence)
        }
      },
      close: async () => {},
    }
  }

  #write(event: StoredEvent): void {
    const severity = severityOf(event)
    const { code, sequence, fields } = event
    // `occurred` is the event's own time; `time` is the time of writing.
    this.#logger[LEVELS[severity]](
      { event: code, severity, sequence, occurred: timestampOf(event), ...fields },
      sentenceOf(event),
    )
  }
}
