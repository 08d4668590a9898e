/** Encodes the frames of one channel. */
import { Buffer } from 'node:buffer'
import { MAX_VARINT_LENGTH, writeVarint } from '../../../recordings/container/format/varint.ts'
import type {
  ChannelOpen,
  Command,
  Denied,
  Exit,
  FileOperation,
  FrameSink,
  Unrecorded,
} from '../../../recordings/container/frames.ts'
import { FRAME } from '../../../recordings/container/frames.ts'
import { type ContentHash, type Hashing, hashHere, type NewHash } from '../../session/hash/content-hash.ts'

export type StreamFrame = typeof FRAME.output | typeof FRAME.errorOutput | typeof FRAME.input

const NOTHING = new Uint8Array(0)

export class ChannelFrames {
  /** Hashes contents that frames name by their hash. */
  readonly newHash: NewHash
  readonly #sink: FrameSink
  readonly #channel: number
  readonly #onClosed: () => void
  #hashes = 0
  #isEnded = false

  /** `channel` is the channel's number in the recording. */
  constructor(sink: FrameSink, channel: number, hashing: Partial<Hashing> = {}) {
    this.#sink = sink
    this.#channel = channel
    this.newHash = hashing.newHash ?? hashHere
    this.#onClosed = hashing.onClosed ?? (() => undefined)
  }

  /** Writes a frame once its hash is computed; the channel's last frame waits for it. */
  hashed(hash: ContentHash, write: (sha256: string | undefined) => void): void {
    this.#hashes++
    hash.digest((sha256) => {
      this.#hashes--
      write(sha256)
      if (this.#isEnded) this.close()
    })
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
    this.#isEnded = true
    if (this.#hashes > 0) return
    this.#sink.write(FRAME.channelClose, this.#channel, NOTHING)
    this.#onClosed()
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
