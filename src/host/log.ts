/**
 * The broker's log: one JSON object a line, on standard output or in a file. Its own messages obey the level;
 * the events of the audit are written whatever the level is (audit/sinks/jsonlog.ts).
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
  /** Writes what is buffered; to be called before the process ends. */
  flush(): void
  /** Why the last line could not be written; undefined: it was. */
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
      // an error's message may repeat what a peer has said
      hooks: { streamWrite: escapedJson },
    },
    stream,
  )
}

/**
 * Opens the log; a file is created 0600 and appended to. `onFailure` hears of lines that could not be written
 * (a full disk, a closed pipe). Throws when the file cannot be opened.
 */
export function openLog({ level, file }: LogOptions, onFailure: (error: Error) => void): LogOutput {
  // written at once and not by a thread, so that the lines before a crash are there
  const stream = destination({ dest: file === '-' ? 1 : file, sync: true, append: true, mode: 0o600 })
  let failure: Error | undefined
  stream.on('error', (error) => {
    failure = error
    onFailure(error)
  })
  stream.on('write', () => {
    failure = undefined
  })
  return { logger: loggerTo(level, stream), flush: () => stream.flushSync(), failure: () => failure }
}
