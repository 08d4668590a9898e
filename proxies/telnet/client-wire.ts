/** Telnet toward a user's client: maps its commands and options to a terminal. */
import { Buffer } from 'node:buffer'
import type { ClientSurroundings, ClientWire } from '../terminal/client-wire.ts'
import { UNKNOWN_TERMINAL } from '../terminal/client-wire.ts'
import type { Terminal } from '../terminal/wire.ts'
import { TelnetEndpoint } from './codec/endpoint.ts'
import { COMMAND, OPTION } from './codec/numbers.ts'
import type { Variable, WindowSize } from './codec/subnegotiations.ts'

/** Time for a client to name a user or not; a client without Telnet never replies. */
const USER_MS = 2_000

/** The keys for the commands of RFC 854 and 1184: the defaults of Unix systems. */
const KEYS: ReadonlyMap<number, number> = new Map([
  [COMMAND.IP, 0x03],
  [COMMAND.EOF, 0x04],
  [COMMAND.EL, 0x15],
  [COMMAND.SUSP, 0x1a],
  [COMMAND.ABORT, 0x1c],
  [COMMAND.EC, 0x7f],
])

const YES = Buffer.from('\r\n[sallyport: yes]\r\n')

export class TelnetClientWire implements ClientWire {
  readonly #around: ClientSurroundings
  readonly #endpoint: TelnetEndpoint
  readonly #user = Promise.withResolvers<string | undefined>()
  #timer: NodeJS.Timeout | undefined
  #terminal = UNKNOWN_TERMINAL

  constructor(around: ClientSurroundings) {
    this.#around = around
    this.#endpoint = new TelnetEndpoint({
      role: 'server',
      now: () => performance.now(),
      write: around.write,
      writeUrgent: around.writeUrgent,
      visitor: {
        data: around.typed,
        command: (code) => this.#command(code),
        windowSize: (size) => this.#resized(size),
        terminalType: (type) => {
          this.#terminal = { ...this.#terminal, type: type ?? UNKNOWN_TERMINAL.type }
        },
        environment: (variables) => this.#named(userOf(variables)),
      },
    })
  }

  start(): void {
    this.#endpoint.start()
    this.#timer = setTimeout(() => this.#named(undefined), USER_MS)
  }

  receive(bytes: Uint8Array): void {
    this.#endpoint.receive(bytes)
    const isOpen =
      this.#endpoint.isAsked('theirs', OPTION.NEW_ENVIRON) ||
      this.#endpoint.isOn('theirs', OPTION.NEW_ENVIRON)
    if (!isOpen) this.#named(undefined)
  }

  show(bytes: Uint8Array): void {
    this.#endpoint.send(bytes)
  }

  signedIn(): void {}

  stop(): void {
    this.#named(undefined)
  }

  get terminal(): Terminal {
    return this.#terminal
  }

  get user(): Promise<string | undefined> {
    return this.#user.promise
  }

  #named(user: string | undefined): void {
    clearTimeout(this.#timer)
    this.#user.resolve(user)
  }

  #command(code: number): void {
    const key = KEYS.get(code)
    if (key !== undefined) this.#around.typed(Uint8Array.of(key))
    else if (code === COMMAND.BRK) this.#around.break()
    else if (code === COMMAND.AYT) this.#endpoint.send(YES)
  }

  /** 0 means unknown (RFC 1073). */
  #resized({ columns, rows }: WindowSize): void {
    this.#terminal = {
      ...this.#terminal,
      columns: columns || UNKNOWN_TERMINAL.columns,
      rows: rows || UNKNOWN_TERMINAL.rows,
    }
    this.#around.resized(this.#terminal)
  }
}

/**
 * Returns the variable USER: by RFC 1572 the client's own account, in inetutils the user of its option -l.
 */
function userOf(variables: readonly Variable[]): string | undefined {
  const value = variables.find(({ name }) => name === 'USER')?.value
  return value === undefined ? undefined : Buffer.from(value, 'latin1').toString('utf8')
}

/** See `TerminalFrontOptions.refusal`. */
export function telnetRefusal(reason: string): string {
  return `${reason}\r\n`
}
