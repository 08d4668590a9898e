/**
 * One end of a Telnet connection without its socket: bytes in, data and events out, and the reverse. It
 * negotiates the options of its role; a peer that negotiates without end is an error.
 */
import { Bucket } from '../../bytes/bucket.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { TelnetDecoder } from './decoder.ts'
import { buildCommand, buildNegotiation, buildSubnegotiation, escapeData } from './encoder.ts'
import { COMMAND, OPTION, type Verb } from './numbers.ts'
import { type Answer, OptionState } from './option-state.ts'
import { KeyReturns, OutputReturns, ShownReturns, type Translation, TypedReturns } from './returns.ts'
import { CLIENT, type Role, SERVER, type Side } from './roles.ts'
import {
  asksForTerminalType,
  buildTerminalType,
  buildWindowSize,
  ENVIRONMENT_SEND_USER,
  parseEnvironment,
  parseTerminalType,
  parseWindowSize,
  TERMINAL_TYPE_SEND,
  type Variable,
  type WindowSize,
} from './subnegotiations.ts'

/**
 * Negotiations, subnegotiations and commands of a peer: the burst, and the rate per second. A session begins
 * with thirty; resizing a window or holding a key causes some tens a second.
 */
export const CONTROL_BURST = 1_000
export const CONTROL_RATE = 100

export interface EndpointVisitor {
  /** Data in a terminal's form: Return is CR. Valid during the call only. */
  data(bytes: Uint8Array): void
  /** A command for a program: BRK, IP, AYT … */
  command(code: number): void
  /** Called when an option is switched on or off. */
  option?(side: Side, option: number, isOn: boolean): void
  windowSize?(size: WindowSize): void
  /** Undefined if the peer has no type, or an invalid one. */
  terminalType?(name: string | undefined): void
  environment?(variables: Variable[]): void
}

export interface EndpointOptions {
  role: 'server' | 'client'
  visitor: EndpointVisitor
  write: (bytes: Uint8Array) => void
  /** Writes with the last byte marked as urgent if possible, else like `write`. */
  writeUrgent: (bytes: Uint8Array) => void
  /** Milliseconds, never decreasing. */
  now: () => number
  /** The type reported to the target, for a client. */
  terminalType?: string
  windowSize?: WindowSize
}

const states = (options: ReadonlySet<number>) =>
  new Map([...options].map((option) => [option, new OptionState()]))

export class TelnetEndpoint {
  readonly #options: EndpointOptions
  readonly #role: Role
  readonly #states: Readonly<Record<Side, ReadonlyMap<number, OptionState>>>
  readonly #decoder: TelnetDecoder
  readonly #budget: Bucket
  readonly #incoming: Translation
  readonly #outgoing: Translation
  #windowSize: WindowSize | undefined

  constructor(options: EndpointOptions) {
    const isServer = options.role === 'server'
    this.#options = options
    this.#windowSize = options.windowSize
    this.#role = isServer ? SERVER : CLIENT
    this.#states = { ours: states(this.#role.ours), theirs: states(this.#role.theirs) }
    this.#budget = new Bucket(CONTROL_BURST, CONTROL_RATE, options.now)
    this.#incoming = isServer ? new TypedReturns() : new ShownReturns()
    this.#outgoing = isServer ? new OutputReturns() : new KeyReturns()
    this.#decoder = new TelnetDecoder({
      data: (bytes) => this.#data(bytes),
      command: (code) => this.#command(code),
      negotiation: (verb, option) => this.#negotiation(verb, option),
      subnegotiation: (option, body) => this.#subnegotiation(option, body),
    })
  }

  /** Requests the options of the role. */
  start(): void {
    for (const { side, option } of this.#role.offers) {
      this.#answer(side, option, this.#states[side].get(option)!.ask(true))
    }
  }

  /** Throws MalformedError: the connection cannot continue. */
  receive(chunk: Uint8Array): void {
    this.#decoder.feed(chunk)
  }

  /** Sends data in a terminal's form. */
  send(bytes: Uint8Array): void {
    const translated = this.isOn('ours', OPTION.BINARY) ? bytes : this.#outgoing.translate(bytes)
    if (translated.length > 0) this.#options.write(escapeData(translated))
  }

  sendCommand(code: number): void {
    this.#options.write(buildCommand(code))
  }

  /** Sends the Synch of RFC 854: the peer handles the input up to here at once. */
  sendSynch(): void {
    this.#options.writeUrgent(buildCommand(COMMAND.DM))
  }

  isOn(side: Side, option: number): boolean {
    return this.#states[side].get(option)?.isOn === true
  }

  /** True if this end has requested the option, and the peer has not replied yet. */
  isAsked(side: Side, option: number): boolean {
    return this.#states[side].get(option)?.isAsked === true
  }

  /** The new size of the user's window, for a client. */
  set windowSize(size: WindowSize) {
    this.#windowSize = size
    if (this.isOn('ours', OPTION.NAWS)) this.#tellWindowSize()
  }

  #data(bytes: Uint8Array): void {
    const { visitor, role } = this.#options
    // A client's Return has every form in BINARY too: inetutils sends LF then, others their usual form.
    const isRaw = role === 'client' && this.isOn('theirs', OPTION.BINARY)
    const translated = isRaw ? bytes : this.#incoming.translate(bytes)
    if (translated.length > 0) visitor.data(translated)
  }

  #command(code: number): void {
    this.#spend()
    this.#options.visitor.command(code)
  }

  #negotiation(verb: Verb, option: number): void {
    this.#spend()
    const side = verb === COMMAND.DO || verb === COMMAND.DONT ? 'ours' : 'theirs'
    const positive = verb === COMMAND.DO || verb === COMMAND.WILL
    const state = this.#states[side].get(option)
    if (!state) {
      if (positive) this.#answer(side, option, false)
      return
    }
    const was = state.isOn
    this.#answer(side, option, state.received(positive))
    if (state.isOn !== was) this.#switched(side, option, state.isOn)
  }

  #answer(side: Side, option: number, answer: Answer): void {
    if (answer === undefined) return
    const [yes, no] = side === 'ours' ? [COMMAND.WILL, COMMAND.WONT] : [COMMAND.DO, COMMAND.DONT]
    this.#options.write(buildNegotiation(answer ? yes : no, option))
  }

  #switched(side: Side, option: number, isOn: boolean): void {
    if (isOn && side === 'theirs' && option === OPTION.TTYPE) this.#tell(option, TERMINAL_TYPE_SEND)
    if (isOn && side === 'theirs' && option === OPTION.NEW_ENVIRON) this.#tell(option, ENVIRONMENT_SEND_USER)
    if (isOn && side === 'ours' && option === OPTION.NAWS) this.#tellWindowSize()
    this.#options.visitor.option?.(side, option, isOn)
  }

  #subnegotiation(option: number, body: Uint8Array): void {
    this.#spend()
    const { visitor, terminalType = '' } = this.#options
    if (this.isOn('ours', option)) {
      if (option === OPTION.TTYPE && asksForTerminalType(body)) {
        this.#tell(option, buildTerminalType(terminalType))
      }
      return
    }
    if (!this.isOn('theirs', option)) return
    if (option === OPTION.NAWS) visitor.windowSize?.(parseWindowSize(body))
    else if (option === OPTION.TTYPE) visitor.terminalType?.(parseTerminalType(body))
    else if (option === OPTION.NEW_ENVIRON) visitor.environment?.(parseEnvironment(body))
  }

  #tellWindowSize(): void {
    if (this.#windowSize) this.#tell(OPTION.NAWS, buildWindowSize(this.#windowSize))
  }

  #tell(option: number, body: Uint8Array): void {
    this.#options.write(buildSubnegotiation(option, body))
  }

  #spend(): void {
    if (this.#budget.take(1)) return
    throw new MalformedError(
      `telnet: at most ${CONTROL_RATE} negotiations and commands a second were expected, found more`,
    )
  }
}
