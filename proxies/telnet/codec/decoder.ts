/**
 * Splits the bytes of a Telnet peer (RFC 854, 855) into data, commands, negotiations and subnegotiations.
 * Data is returned with its IACs unescaped, and otherwise unchanged.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { COMMAND, type Verb } from './numbers.ts'

/** Bytes between the option and IAC SE: the longest in use is an environment of some variables. */
export const SUBNEGOTIATION_LIMIT = 4096

export interface TelnetVisitor {
  /** Receives the data that stands together in one chunk in one call. Valid during the call only. */
  data(bytes: Uint8Array): void
  /** Receives commands of one byte after IAC: those of COMMAND that stand alone, and undefined codes. */
  command(code: number): void
  negotiation(verb: Verb, option: number): void
  /** Valid during the call only. */
  subnegotiation(option: number, body: Uint8Array): void
}

const NOTHING = new Uint8Array(0)

type State = 'data' | 'command' | 'option' | 'subnegotiation' | 'body' | 'body-command'

/** Ignored without an event: some devices send a Go Ahead after all output, and data stays in one piece. */
const WITHOUT_MEANING: ReadonlySet<number> = new Set([COMMAND.NOP, COMMAND.GA, COMMAND.EOR, COMMAND.SE])

const isVerb = (code: number): code is Verb => COMMAND.WILL <= code && code <= COMMAND.DONT

export class TelnetDecoder {
  readonly #visitor: TelnetVisitor
  #state: State = 'data'
  #verb: Verb = COMMAND.WILL
  #option = 0
  #body: Buffer | undefined
  #length = 0
  readonly #run = new DataRun()

  constructor(visitor: TelnetVisitor) {
    this.#visitor = visitor
  }

  /** Throws MalformedError and errors of the visitor; the stream cannot be read after that. */
  feed(chunk: Uint8Array): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#state === 'data') at = this.#readData(chunk, at)
      else if (this.#state === 'body') at = this.#readBody(chunk, at)
      else this.#readByte(chunk, at++)
    }
    this.#tellData()
  }

  /** Reads up to the next IAC, or to the end. */
  #readData(chunk: Uint8Array, from: number): number {
    const iac = chunk[from] === COMMAND.IAC ? from : chunk.indexOf(COMMAND.IAC, from)
    const end = iac < 0 ? chunk.length : iac
    if (from < end) this.#run.add(chunk, from, end)
    if (iac < 0) return end
    this.#state = 'command'
    return iac + 1
  }

  #readBody(chunk: Uint8Array, from: number): number {
    const iac = chunk.indexOf(COMMAND.IAC, from)
    const end = iac < 0 ? chunk.length : iac
    this.#collect(chunk.subarray(from, end))
    if (iac < 0) return end
    this.#state = 'body-command'
    return iac + 1
  }

  #readByte(chunk: Uint8Array, at: number): void {
    const byte = chunk[at]!
    switch (this.#state) {
      case 'command':
        this.#command(chunk, at)
        return
      case 'option':
        this.#state = 'data'
        this.#visitor.negotiation(this.#verb, byte)
        return
      case 'subnegotiation':
        this.#option = byte
        this.#length = 0
        this.#state = 'body'
        return
      case 'body-command':
        this.#bodyCommand(chunk, at)
    }
  }

  #command(chunk: Uint8Array, at: number): void {
    const code = chunk[at]!
    this.#state = 'data'
    if (code === COMMAND.IAC) {
      this.#run.add(chunk, at, at + 1)
      return
    }
    if (WITHOUT_MEANING.has(code)) return
    this.#tellData()
    if (code === COMMAND.SB) this.#state = 'subnegotiation'
    else if (isVerb(code)) {
      this.#verb = code
      this.#state = 'option'
    } else this.#visitor.command(code)
  }

  #bodyCommand(chunk: Uint8Array, at: number): void {
    const code = chunk[at]!
    if (code === COMMAND.IAC) {
      this.#collect(chunk.subarray(at, at + 1))
      this.#state = 'body'
      return
    }
    if (code === COMMAND.SE) {
      this.#state = 'data'
      this.#visitor.subnegotiation(this.#option, (this.#body ?? Buffer.alloc(0)).subarray(0, this.#length))
      return
    }
    // Like BSD's programs: takes the end as forgotten, and this as the next command.
    this.#command(chunk, at)
  }

  #collect(piece: Uint8Array): void {
    if (SUBNEGOTIATION_LIMIT < this.#length + piece.length) {
      throw new MalformedError(
        `telnet: a subnegotiation of at most ${SUBNEGOTIATION_LIMIT} bytes was expected, found more (option ${this.#option})`,
      )
    }
    this.#body ??= Buffer.alloc(SUBNEGOTIATION_LIMIT)
    this.#body.set(piece, this.#length)
    this.#length += piece.length
  }

  #tellData(): void {
    const data = this.#run.take()
    if (data) this.#visitor.data(data)
  }
}

/** From this length on a piece is copied by the system, which costs more than a loop for a few bytes. */
const LONG = 32

/**
 * The data of one chunk between two commands: a view while it is in one piece, else a copy, because a flood
 * of doubled IACs comes in pieces of one byte.
 */
class DataRun {
  #chunk: Uint8Array = NOTHING
  #from = 0
  #to = 0
  #copy: Uint8Array = NOTHING
  #length = 0

  add(chunk: Uint8Array, from: number, to: number): void {
    if (this.#from === this.#to) {
      this.#chunk = chunk
      this.#from = from
      this.#to = to
      return
    }
    if (this.#length === 0) {
      // Large enough: the rest comes from the same chunk.
      this.#copy = Buffer.allocUnsafe(chunk.length - this.#from)
      this.#append(this.#chunk, this.#from, this.#to)
    }
    this.#append(chunk, from, to)
  }

  /** Returns the data since the last call, or undefined if there is none. */
  take(): Uint8Array | undefined {
    if (this.#from === this.#to) return undefined
    const all =
      this.#length > 0 ? this.#copy.subarray(0, this.#length) : this.#chunk.subarray(this.#from, this.#to)
    this.#chunk = NOTHING
    this.#copy = NOTHING
    this.#from = this.#to = this.#length = 0
    return all
  }

  #append(chunk: Uint8Array, from: number, to: number): void {
    if (LONG < to - from) {
      this.#copy.set(chunk.subarray(from, to), this.#length)
      this.#length += to - from
    } else {
      for (let at = from; at < to; at++) this.#copy[this.#length++] = chunk[at]!
    }
  }
}
