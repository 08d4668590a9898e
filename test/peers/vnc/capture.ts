/** A viewer for tests without a window: it stores the server's drawing like a recording. */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import {
  encodePointer,
  encodeSetEncodings,
  encodeSetPixelFormat,
  encodeUpdateRequest,
} from '../../../proxies/vnc/codec/client-encoder.ts'
import {
  encodePixelFormat,
  PIXEL_FORMAT_BYTES,
  type PixelFormat,
  parsePixelFormat,
} from '../../../proxies/vnc/codec/pixel-format.ts'
import { ServerStream, type ServerUnit } from '../../../proxies/vnc/codec/server-stream.ts'
import { FRAME, type Frame } from '../../../recordings/container/frames.ts'

const INIT_LENGTH = 24

export interface CaptureOptions {
  port: number
  encodings: readonly number[]
  /** Absent: the server's own. */
  format?: PixelFormat
}

/** Connects to a server without a password (RFC 6143 7.1.2: None). */
export class Capture {
  readonly frames: Pick<Frame, 'type' | 'payload'>[] = []
  readonly width: number
  readonly height: number
  readonly #socket: Socket
  readonly #stream: ServerStream
  readonly #format: PixelFormat
  #updates = 0
  #told: (() => void)[] = []

  private constructor(socket: Socket, init: Buffer, { encodings, format }: CaptureOptions) {
    this.#socket = socket
    this.width = init.readUInt16BE(0)
    this.height = init.readUInt16BE(2)
    this.#format = format ?? parsePixelFormat(init, 4)
    this.frames.push({ type: FRAME.pixelFormat, payload: encodePixelFormat(this.#format) })
    let unit: ServerUnit['kind'] = 'bell'
    this.#stream = new ServerStream(
      { width: this.width, height: this.height, format: this.#format },
      {
        begin: ({ kind }) => {
          unit = kind
        },
        bytes: (piece) => {
          if (unit !== 'update' && unit !== 'rectangle' && unit !== 'colour-map') return
          this.frames.push({ type: FRAME.graphics, payload: Buffer.from(piece) })
        },
        updateEnd: () => {
          this.#updates++
          this.request(true)
          for (const tell of this.#told.splice(0)) tell()
        },
      },
    )
    this.#stream.ask(encodings)
    socket.on('data', (data: Buffer) => this.#stream.feed(data))
    socket.write(
      Buffer.concat([...(format ? [encodeSetPixelFormat(format)] : []), encodeSetEncodings(encodings)]),
    )
    this.request(false)
  }

  static async open(options: CaptureOptions): Promise<Capture> {
    const socket = connect(options.port, '127.0.0.1')
    const read = reader(socket)
    await read(12)
    socket.write('RFB 003.008\n')
    const [types] = await read(1)
    await read(types!)
    socket.write(Buffer.of(1))
    await read(4)
    socket.write(Buffer.of(1))
    const init = await read(INIT_LENGTH)
    await read(init.readUInt32BE(4 + PIXEL_FORMAT_BYTES))
    return new Capture(socket, init, options)
  }

  /** Updates that are complete. */
  get updates(): number {
    return this.#updates
  }

  request(isIncremental: boolean): void {
    const { width, height } = this.#stream
    this.#socket.write(encodeUpdateRequest(isIncremental, { x: 0, y: 0, width, height }))
  }

  pointer(x: number, y: number): void {
    this.#socket.write(encodePointer(x, y, 0))
  }

  /** Resolves after the next update. */
  updated(): Promise<void> {
    return new Promise((resolve) => this.#told.push(resolve))
  }

  async close(): Promise<void> {
    this.#socket.destroy()
    if (!this.#socket.closed) await once(this.#socket, 'close')
  }
}

/** Reads this many bytes, while no other listener is attached. */
function reader(socket: Socket): (count: number) => Promise<Buffer> {
  return async (count) => {
    if (count === 0) return Buffer.alloc(0)
    for (;;) {
      const bytes = socket.read(count) as Buffer | null
      if (bytes) return bytes
      await once(socket, 'readable')
    }
  }
}
