/** The frames of one channel, encoded. */
import { Buffer } from 'node:buffer'
import { MAX_VARINT_LENGTH, writeVarint } from '../../../recordings/format/varint.ts'
import type {
  ChannelOpen,
  Command,
  Denied,
  Exit,
  FileOperation,
  FrameSink,
  Unrecorded,
} from '../../../recordings/frames.ts'
import { FRAME } from '../../../recordings/frames.ts'

export type StreamFrame = typeof FRAME.output | typeof FRAME.errorOutput | typeof FRAME.input

const NOTHING = new Uint8Array(0)

export class ChannelFrames {
  readonly #sink: FrameSink
  readonly #channel: number

  /** `channel` is the channel's number in the recording. */
  constructor(sink: FrameSink, channel: number) {
    this.#sink = sink
    this.#channel = channel
  }

  stream(type: StreamFrame, data: Uint8Array): void {
    if (data.length > 0) this.#sink.write(type, this.#channel, data)
  }

  open(open: ChannelOpen): void {
    this.#json(FRAME.channelOpen, open)
  }

  command(command: Command): void {
    this.#json(FRAME.command, command)
  }

  file(operation: FileOperation): void {
    this.#json(FRAME.file, operation)
  }

  unrecorded(gap: Unrecorded): void {
    this.#json(FRAME.unrecorded, gap)
  }

  denied(denied: Denied): void {
    this.#json(FRAME.denied, denied)
  }

  exit(exit: Exit): void {
    this.#json(FRAME.exit, exit)
  }

  withheld(bytes: number): void {
    this.#sink.write(FRAME.inputWithheld, this.#channel, varints(bytes))
  }

  resize(columns: number, rows: number): void {
    this.#sink.write(FRAME.resize, this.#channel, varints(columns, rows))
  }

  close(): void {
    this.#sink.write(FRAME.channelClose, this.#channel, NOTHING)
  }

  #json(type: (typeof FRAME)[keyof typeof FRAME], value: object): void {
    this.#sink.write(type, this.#channel, Buffer.from(JSON.stringify(value), 'utf8'))
  }
}

function varints(...values: number[]): Uint8Array {
  const bytes = new Uint8Array(values.length * MAX_VARINT_LENGTH)
  let length = 0
  for (const value of values) length = writeVarint(bytes, length, value)
  return bytes.subarray(0, length)
}
