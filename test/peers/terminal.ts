/** A program on a terminal, with a user's input and output. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { findProgram } from './program.ts'

const DEFAULT_TIMEOUT_MS = 60_000

export interface TerminalOptions {
  env?: NodeJS.ProcessEnv
  cwd?: string
  columns?: number
  lines?: number
}

export interface Terminal {
  /** The pid of the driver; the program is its child. */
  pid: number
  /** Types text unchanged: Enter is `\r`. */
  send(text: string | Uint8Array): void
  /**
   * Waits until the output since the last match has `pattern`, and returns all up to its end. Rejects with
   * the output after `timeout` milliseconds, or if the program ends first.
   */
  expect(pattern: RegExp | string, timeout?: number): Promise<string>
  resize(columns: number, lines: number): void
  /** Sends a signal to the program (to ssh, not through it). */
  signal(number: number): void
  /** Returns all output since the start. */
  output(): string
  /** Returns all output since the start, as bytes. */
  bytes(): Buffer
  /** Waits for the end: returns the exit code, or 128 + signal. */
  exit(timeout?: number): Promise<number>
  /** Closes the terminal as if its window had been closed, and waits for the end. */
  close(): Promise<void>
}

/** Starts a program on a terminal, by default of 80 × 24. */
export function openTerminal(
  command: string,
  args: readonly string[],
  options: TerminalOptions = {},
): Terminal {
  const driver = join(import.meta.dirname, 'terminal.py')
  const size = [String(options.columns ?? 80), String(options.lines ?? 24)]
  const child = spawn(findProgram('python3'), [driver, ...size, command, ...args], {
    env: { ...(options.env ?? process.env), TERM: options.env?.TERM ?? 'xterm-256color' },
    ...(options.cwd ? { cwd: options.cwd } : {}),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const chunks: Buffer[] = []
  const decoder = new TextDecoder()
  let text = ''
  let matched = 0
  let errors = ''
  let code: number | undefined
  const waiting = new Set<() => void>()
  const wake = (): void => {
    for (const check of waiting) check()
  }
  child.stdout.on('data', (data: Buffer) => {
    chunks.push(data)
    text += decoder.decode(data, { stream: true })
    wake()
  })
  child.stderr.on('data', (data: Buffer) => {
    errors += data
  })
  child.stdin.on('error', () => {})
  child.on('error', (error) => {
    errors += error.message
    code = 127
    wake()
  })
  child.on('close', (status) => {
    code = status ?? 128
    wake()
  })
  const tell = (value: object): void => {
    child.stdin.write(`${JSON.stringify(value)}\n`)
  }

  /** Resolves when `probe` returns a value; rejects at the timeout or when the program has ended. */
  function until<T>(probe: () => T | undefined, what: string, timeout: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const finish = (): void => {
        clearTimeout(timer)
        waiting.delete(check)
      }
      const seen = (): string => `${JSON.stringify(text.slice(matched))}${errors && `, stderr: ${errors}`}`
      const check = (): void => {
        const value = probe()
        if (value !== undefined) {
          finish()
          resolve(value)
        } else if (code !== undefined) {
          finish()
          reject(new Error(`ended with ${code} while waiting for ${what}; came: ${seen()}`))
        }
      }
      const timer = setTimeout(() => {
        finish()
        reject(new Error(`waited ${timeout} ms for ${what}; came: ${seen()}`))
      }, timeout)
      waiting.add(check)
      check()
    })
  }

  const exit = (timeout = DEFAULT_TIMEOUT_MS): Promise<number> => until(() => code, 'the end', timeout)
  return {
    pid: child.pid ?? 0,
    send: (data) => tell({ send: Buffer.from(data).toString('base64') }),
    expect: (pattern, timeout = DEFAULT_TIMEOUT_MS) =>
      until(
        () => {
          const rest = text.slice(matched)
          const end = matchEnd(rest, pattern)
          if (end === undefined) return undefined
          matched += end
          return rest.slice(0, end)
        },
        String(pattern),
        timeout,
      ),
    resize: (columns, lines) => tell({ resize: [columns, lines] }),
    signal: (number) => tell({ signal: number }),
    output: () => text,
    bytes: () => Buffer.concat(chunks),
    exit,
    close: async () => {
      child.stdin.end()
      await exit()
    },
  }
}

function matchEnd(text: string, pattern: RegExp | string): number | undefined {
  if (typeof pattern === 'string') {
    const at = text.indexOf(pattern)
    return at < 0 ? undefined : at + pattern.length
  }
  const match = pattern.exec(text)
  return match === null ? undefined : match.index + match[0].length
}
