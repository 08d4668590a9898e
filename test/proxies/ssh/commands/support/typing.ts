/** Real programs on a real terminal, read by the reader of command lines. */
import { Buffer } from 'node:buffer'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type CommandLine,
  CommandReader,
  type UnreadLine,
} from '../../../../../proxies/ssh/commands/reader.ts'

/** The awaited text, then the keys to type or the terminal's new size. */
export type TypingStep = readonly [wait: string, then: string | readonly [columns: number, rows: number]]

export type Passed =
  | { from: 'client' | 'target'; data: Buffer }
  | { from: 'resize'; size: readonly [number, number] }

export interface TypingOptions {
  columns?: number
  rows?: number
  env?: Record<string, string>
}

export class Desk {
  readonly folder = mkdtempSync(join(tmpdir(), 'sallyport-typing-'))
  #count = 0

  clean(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Types into a program. Throws if the awaited text does not appear. */
  type(
    steps: readonly TypingStep[],
    [program, ...args]: readonly string[],
    options: TypingOptions = {},
  ): Passed[] {
    const log = join(this.folder, `typed-${this.#count++}`)
    const { columns = 80, rows = 24, env = {} } = options
    const script = join(import.meta.dirname, 'typing.py')
    const words = [log, String(columns), String(rows), JSON.stringify(steps), program ?? '', ...args]
    const { status, stderr } = spawnSync('/usr/bin/python3', [script, ...words], {
      env: {
        PATH: process.env['PATH'] ?? '',
        PS1: 'ready$ ',
        TERM: 'xterm-256color',
        HOME: this.folder,
        LC_ALL: 'C.UTF-8',
        INPUTRC: '/dev/null',
        ...env,
      },
      cwd: this.folder,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(stderr || `ended with ${status}`)
    return readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => {
        const [who, what] = JSON.parse(line)
        if (who === 'resize') return { from: 'resize', size: what }
        return { from: who, data: Buffer.from(what, 'base64') }
      })
  }
}

export interface Heard {
  lines: CommandLine[]
  unread: UnreadLine[]
  reader: CommandReader
  time: { now: number }
}

export function listen(columns = 80, rows = 24): Heard {
  const lines: CommandLine[] = []
  const time = { now: 0 }
  const onCommand = (line: CommandLine) => void lines.push(line)
  const unread: UnreadLine[] = []
  const onUnread = (line: UnreadLine) => void unread.push(line)
  const reader = new CommandReader({ columns, rows, now: () => time.now, onCommand, onUnread })
  return { lines, unread, time, reader }
}

/** Passes the session to the reader in pieces of this size, with a moment between two pieces. */
export function read(
  passed: readonly Passed[],
  { columns = 80, rows = 24 }: TypingOptions = {},
  size = 32_768,
): CommandLine[] {
  const { lines, reader, time } = listen(columns, rows)
  for (const piece of passed) {
    time.now += 100
    if (piece.from === 'resize') reader.resize(...piece.size)
    else
      for (let at = 0; at < piece.data.length; at += size) {
        const part = piece.data.subarray(at, at + size)
        if (piece.from === 'client') reader.input(part)
        else reader.output(part)
      }
  }
  return lines
}

export const told = (lines: readonly CommandLine[]) => lines.map(({ text, confidence }) => [text, confidence])
