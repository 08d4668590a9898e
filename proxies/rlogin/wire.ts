/** Rlogin toward a target (RFC 1282): the handshake, the window's size on request, and bytes unchanged. */
import type { Terminal, TerminalSize, Wire, WireSurroundings } from '../terminal/wire.ts'
import { buildWindowSize } from './codec/client-stream.ts'
import { CONTROL } from './codec/control.ts'
import { AnswerReader, buildHandshake } from './codec/handshake.ts'
import { ServerStream } from './codec/server-stream.ts'

const LARGEST = 0xffff
/** The speed to which servers set the line, without a meaning today. */
const SPEED = 38_400
/** The only way to interrupt: the terminal's driver at the target handles it. */
const CTRL_C = Uint8Array.of(0x03)

export interface RloginNames {
  clientUser: string
  serverUser: string
}

export class RloginWire implements Wire {
  readonly #around: WireSurroundings
  readonly #names: RloginNames
  readonly #answer = new AnswerReader()
  readonly #stream: ServerStream
  #size: TerminalSize = { columns: 0, rows: 0, widthPixels: 0, heightPixels: 0 }
  #isAccepted = false
  #wantsSize = false

  constructor(around: WireSurroundings, names: RloginNames) {
    this.#around = around
    this.#names = names
    this.#stream = new ServerStream({
      data: (bytes) => around.output(bytes),
      control: (byte) => this.#control(byte),
    })
  }

  start(terminal: Terminal): void {
    this.#size = terminal
    this.#around.write(buildHandshake({ ...this.#names, terminal: terminal.type, speed: SPEED }))
  }

  receive(bytes: Uint8Array, isUrgent: boolean): void {
    const rest = this.#isAccepted ? bytes : this.#answer.feed(bytes)
    if (rest === undefined) return
    const isFirst = !this.#isAccepted
    this.#isAccepted = true
    this.#stream.feed(rest, isUrgent && !isFirst)
  }

  send(bytes: Uint8Array): void {
    this.#around.write(bytes)
  }

  resize(size: TerminalSize): void {
    this.#size = size
    if (this.#wantsSize) this.#tellSize()
  }

  break(): boolean {
    return false
  }

  interrupt(): void {
    this.#around.write(CTRL_C)
  }

  get refusal(): string | undefined {
    return this.#answer.refusal
  }

  #control(byte: number): void {
    if ((byte & CONTROL.WINDOW) === 0) return
    this.#wantsSize = true
    this.#tellSize()
  }

  #tellSize(): void {
    const { columns, rows, widthPixels, heightPixels } = this.#size
    const [width, height] = [Math.min(widthPixels, LARGEST), Math.min(heightPixels, LARGEST)]
    this.#around.write(
      buildWindowSize({
        columns: Math.min(columns, LARGEST),
        rows: Math.min(rows, LARGEST),
        pixelWidth: width,
        pixelHeight: height,
      }),
    )
  }
}
