/**
 * A terminal in memory (xterm.js without a screen) for replaying and indexing, never in a proxy. A
 * recording's output passes the filter first, so it holds no titles, links or strings, and every number is
 * limited.
 */
import { createRequire } from 'node:module'
import type { IBufferLine, Terminal } from '@xterm/headless'
import { FOR_EMULATOR, MAX_ROWS, TerminalFilter } from './filter.ts'
import { internalsOf } from './internals.ts'
import { canSnapshot, snapshotOf } from './snapshot.ts'

// The module is CommonJS, and Node does not see the names that it exports.
const { Terminal: Xterm } = createRequire(import.meta.url)(
  '@xterm/headless',
) as typeof import('@xterm/headless')

/**
 * A larger terminal is emulated in this size, or in MAX_ROWS: a cell costs 24 bytes, and a sequence that
 * clears the screen costs as many cells as there are.
 */
export const MAX_COLUMNS = 500
/** Pending characters above which `push` returns a promise. */
const MAX_PENDING = 64 * 1024

export interface Size {
  columns: number
  rows: number
}

export interface Cursor {
  x: number
  y: number
  isHidden: boolean
}

export class Emulator {
  readonly #terminal: Terminal
  readonly #filter = new TerminalFilter(FOR_EMULATOR)
  #pending = ''

  /** `convertEol`: line feeds also return the carriage, for output that did not pass a terminal driver. */
  constructor(size: Size, options: { convertEol?: boolean } = {}) {
    const { columns, rows } = bounded(size)
    this.#terminal = new Xterm({
      cols: columns,
      rows,
      scrollback: 0,
      allowProposedApi: true,
      convertEol: options.convertEol === true,
    })
  }

  get size(): Size {
    return { columns: this.#terminal.cols, rows: this.#terminal.rows }
  }

  /** True if a snapshot would contain all the pushed text. */
  get isBetweenSequences(): boolean {
    return this.#filter.isBetweenSequences
  }

  /** True if the state has a snapshot; read after `settle`. */
  get canSnapshot(): boolean {
    return canSnapshot(this.#terminal)
  }

  /** Writes output. A returned promise must be awaited before the next push. */
  push(text: string): Promise<void> | undefined {
    this.#pending += this.#filter.push(text)
    return this.#pending.length > MAX_PENDING ? this.settle() : undefined
  }

  /** Resolves when all the pushed text is on the screen. */
  settle(): Promise<void> {
    const text = this.#pending
    this.#pending = ''
    if (text === '') return Promise.resolve()
    return new Promise((resolve) => this.#terminal.write(text, resolve))
  }

  async resize(size: Size): Promise<void> {
    await this.settle()
    const { columns, rows } = bounded(size)
    this.#terminal.resize(columns, rows)
  }

  /** Puts a fresh emulator of the same size into the state of a snapshot. */
  async restore(snapshot: string): Promise<void> {
    await new Promise<void>((resolve) => this.#terminal.write(snapshot, resolve))
  }

  /** Returns the state as text; call after `settle`. */
  snapshot(): string {
    return snapshotOf(this.#terminal)
  }

  /** Returns row `y` of the screen, from 0; call after `settle`. */
  line(y: number): IBufferLine | undefined {
    const { active } = this.#terminal.buffer
    return active.getLine(active.baseY + y)
  }

  get cursor(): Cursor {
    const { x, y } = internalsOf(this.#terminal).active
    return {
      x: Math.min(x, this.#terminal.cols - 1),
      y,
      isHidden: internalsOf(this.#terminal).isCursorHidden,
    }
  }

  /** Returns the screen's rows as text, without spaces at their ends. */
  text(): string[] {
    return Array.from({ length: this.#terminal.rows }, (_, y) => this.line(y)?.translateToString(true) ?? '')
  }

  destroy(): void {
    this.#terminal.dispose()
  }
}

function bounded({ columns, rows }: Size): Size {
  // xterm.js has at least two columns.
  return { columns: Math.max(2, Math.min(MAX_COLUMNS, columns)), rows: Math.max(1, Math.min(MAX_ROWS, rows)) }
}
