/**
 * The broker's log: one JSON object per line, on standard output or in a file. The level applies to its own
 * messages; audit events are always written (audit/sinks/jsonlog.ts).
 */
import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from 'pino'
import type { LogLevel } from '../config/config.ts'
import { escapedJson } from '../model/json-text.ts'

export type { Logger } from 'pino'

export interface LogOptions {
  level: LogLevel
  /** `-`: standard output. */
  file: string
}

/** A logger and what it writes to. */
export interface LogOutput {
  logger: Logger
  /** Writes the buffered lines; call it before the process ends. */
  flush(): void
  /** Opens the file by its name again: it may have been moved away. Keeps the old one if it cannot, which `onFailure` is told. */
  reopen(): void
  /** Returns why the last line could not be written, or undefined if it was. */
  failure(): Error | undefined
}

/** Logs to any stream: for tests, and for commands that log to stderr. */
export function loggerTo(level: LogLevel, stream: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      errorKey: 'error',
      // an error's message may repeat a peer's text
      hooks: { streamWrite: escapedJson },
    },
    stream,
  )
}

/**
 * Opens the log; a file is created with mode 0600 and appended to. Calls `onFailure` for lines that could not
 * be written (a full disk, a closed pipe). Throws if the file cannot be opened.
 */
export function openLog({ level, file }: LogOptions, onFailure: (error: Error) => void): LogOutput {
  if (file === '-') waitForReader()
  // synchronous, not by a thread, so that the lines before a crash are written
  const stream = destination({ dest: file === '-' ? 1 : file, sync: true, append: true, mode: 0o600 })
  let failure: Error | undefined
  stream.on('error', (error) => {
    failure = error
    onFailure(error)
  })
  stream.on('write', () => {
    failure = undefined
  })
  const reopen = (): void => {
    try {
      if (file !== '-') stream.reopen()
    } catch (error) {
      onFailure(error as Error)
    }
  }
  return { logger: loggerTo(level, stream), flush: () => stream.flushSync(), reopen, failure: () => failure }
}

/**
 * Has writes to standard output wait for the reader of a full pipe, which takes it a moment. Node does not block there,
 * and pino then sleeps for a tenth of a second, in which no session goes on.
 */
function waitForReader(): void {
  const { _handle: handle } = process.stdout as { _handle?: { setBlocking?(isBlocking: boolean): void } }
  handle?.setBlocking?.(true)
}
