/** Questions at the terminal, or answers that come line by line from elsewhere. */
import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import { plain } from './output.ts'

export class Prompts {
  readonly #lines: Interface
  readonly #waiting: string[] = []
  #next: ((line: string | undefined) => void) | undefined
  #hasEnded = false
  #echoes = false

  /** Prompts go to stderr: stdout may be read by a program. */
  constructor(input: NodeJS.ReadStream = process.stdin) {
    // Echoes answers that may be seen, in place of the terminal.
    const echo = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        if (this.#echoes) process.stderr.write(chunk)
        done()
      },
    })
    this.#lines = createInterface({ input, output: echo, terminal: input.isTTY === true, historySize: 0 })
    this.#lines.on('line', (line) => this.#hear(line))
    this.#lines.on('close', () => {
      this.#hasEnded = true
      this.#next?.(undefined)
    })
    // ^C, which the terminal's raw mode has kept from the process.
    this.#lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  }

  /** Shows text that another machine has chosen. */
  show(text: string): void {
    if (text !== '') process.stderr.write(`${plain(text)}\n`)
  }

  /** Asks; `echo`: whether the answer is shown while it is typed. @throws Error if the input has ended */
  async ask(text: string, echo: boolean): Promise<string> {
    process.stderr.write(plain(text))
    this.#echoes = echo
    const line = this.#waiting.shift() ?? (await this.#line())
    if (!echo) process.stderr.write('\n')
    this.#echoes = false
    if (line === undefined) throw new Error('the input has ended before all was answered')
    return line
  }

  close(): void {
    this.#lines.close()
  }

  #line(): Promise<string | undefined> {
    if (this.#hasEnded) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      this.#next = resolve
    })
  }

  #hear(line: string): void {
    const next = this.#next
    this.#next = undefined
    if (next) next(line)
    else this.#waiting.push(line)
  }
}
