/** Telnet toward a target: sends a terminal's keys, sizes and signals. */
import type { Terminal, TerminalSize, Wire, WireSurroundings } from '../terminal/wire.ts'
import { TelnetEndpoint } from './codec/endpoint.ts'
import { COMMAND } from './codec/numbers.ts'
import type { WindowSize } from './codec/subnegotiations.ts'

/** NAWS has 16 bits for each number (RFC 1073), SSH has 32. */
const LARGEST = 0xffff

export class TelnetWire implements Wire {
  readonly #around: WireSurroundings
  #endpoint: TelnetEndpoint | undefined

  constructor(around: WireSurroundings) {
    this.#around = around
  }

  start(terminal: Terminal): void {
    const { write, writeUrgent, output } = this.#around
    this.#endpoint = new TelnetEndpoint({
      role: 'client',
      terminalType: terminal.type,
      windowSize: windowOf(terminal),
      now: () => performance.now(),
      write,
      writeUrgent,
      visitor: { data: output, command: () => undefined },
    })
    this.#endpoint.start()
  }

  receive(bytes: Uint8Array): void {
    this.#endpoint?.receive(bytes)
  }

  send(bytes: Uint8Array): void {
    this.#endpoint?.send(bytes)
  }

  resize(size: TerminalSize): void {
    if (this.#endpoint) this.#endpoint.windowSize = windowOf(size)
  }

  break(): boolean {
    this.#endpoint?.sendCommand(COMMAND.BRK)
    return true
  }

  interrupt(): void {
    this.#endpoint?.sendCommand(COMMAND.IP)
    this.#endpoint?.sendSynch()
  }
}

function windowOf({ columns, rows }: TerminalSize): WindowSize {
  return { columns: Math.min(columns, LARGEST), rows: Math.min(rows, LARGEST) }
}
