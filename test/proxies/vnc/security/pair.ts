/** The two ends of a connection in memory, for handshakes. TLS is requested and omitted. */
import { EndedError } from '../../../../proxies/bytes/ended.ts'
import type { ClientChannel, ServerChannel, TlsIdentity } from '../../../../proxies/vnc/security/channel.ts'
import type { FrameOpener, FrameSealer } from '../../../../proxies/vnc/security/frames.ts'

/** The server's certificate. */
export const CERTIFICATE = Buffer.from('a certificate')

export class MemoryChannel implements ServerChannel, ClientChannel {
  /** The identity with which TLS was started, if it was. */
  tls: TlsIdentity | undefined
  /** The largest number of bytes requested at once. */
  largestRead = 0
  written = 0
  onWrite: ((bytes: Uint8Array) => void) | undefined
  #ahead = Buffer.alloc(0)
  #frames: { sealer: FrameSealer; opener: FrameOpener } | undefined
  #wanted: { bytes: number; resolve: (bytes: Buffer) => void; reject: (error: Error) => void } | undefined
  #ended = false

  receive(bytes: Uint8Array): void {
    try {
      this.#ahead = Buffer.concat([this.#ahead, this.#frames ? this.#frames.opener.open(bytes) : bytes])
    } catch (error) {
      this.#wanted?.reject(error as Error)
      return
    }
    this.#serve()
  }

  end(): void {
    this.#ended = true
    this.#serve()
  }

  read(bytes: number): Promise<Buffer> {
    this.largestRead = Math.max(this.largestRead, bytes)
    return new Promise((resolve, reject) => {
      this.#wanted = { bytes, resolve, reject }
      this.#serve()
    })
  }

  write(bytes: Uint8Array): void {
    this.written += bytes.length
    this.onWrite?.(this.#frames ? this.#frames.sealer.seal(bytes) : Buffer.from(bytes))
  }

  startFrames(sealer: FrameSealer, opener: FrameOpener): void {
    const ahead = this.#ahead
    this.#ahead = Buffer.alloc(0)
    this.#frames = { sealer, opener }
    if (ahead.length > 0) this.receive(ahead)
  }

  async startTls(identity: TlsIdentity): Promise<Uint8Array | undefined> {
    this.tls = identity
    return identity === 'certificate' ? CERTIFICATE : undefined
  }

  #serve(): void {
    const wanted = this.#wanted
    if (!wanted) return
    if (wanted.bytes <= this.#ahead.length) {
      this.#wanted = undefined
      const bytes = Buffer.from(this.#ahead.subarray(0, wanted.bytes))
      this.#ahead = this.#ahead.subarray(wanted.bytes)
      wanted.resolve(bytes)
    } else if (this.#ended) {
      this.#wanted = undefined
      wanted.reject(new EndedError('the connection was closed'))
    }
  }
}

/** Connects two channels. */
export function channelPair(): { server: MemoryChannel; client: MemoryChannel } {
  const [server, client] = [new MemoryChannel(), new MemoryChannel()]
  server.onWrite = (bytes) => client.receive(bytes)
  client.onWrite = (bytes) => server.receive(bytes)
  return { server, client }
}
