/** One KDC, asked by UDP, and by TCP for what does not fit a datagram or gets no answer (RFC 4120 section 7.2). */
import { Buffer } from 'node:buffer'
import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { connect, isIP } from 'node:net'
import { provePassword } from '../../../kerberos/password.ts'
import { readErrorCode } from '../../../kerberos/requests.ts'

export const KDC_PORT = 88
/** Longest request that is sent as a datagram. */
const MAX_DATAGRAM = 1400
const MAX_ANSWER = 65_536
/** Milliseconds that UDP has, before TCP is tried. */
const UDP_MS = 1000
const RESPONSE_TOO_BIG = 52

/** A KDC that does not answer, or not as Kerberos wants it. */
export class KdcError extends Error {
  override name = 'KdcError'
}

export interface KdcOptions {
  host: string
  port: number
  /** Milliseconds for the address, and for each answer. */
  timeoutMs: number
}

interface Address {
  address: string
  family: number
}

export class Kdc {
  readonly name: string
  readonly #options: KdcOptions

  constructor(options: KdcOptions) {
    this.#options = options
    const { host, port } = options
    this.name = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  }

  /** Proves a password as `provePassword` does, with all its requests to this KDC. @throws KdcError too */
  async prove(proof: Omit<Parameters<typeof provePassword>[0], 'ask'>, signal: AbortSignal): Promise<void> {
    await provePassword({ ...proof, ask: (request) => this.ask(request, signal) })
  }

  /** Sends a request, and resolves with the answer. @throws KdcError */
  async ask(request: Uint8Array, signal: AbortSignal): Promise<Buffer> {
    const { timeoutMs } = this.#options
    const late = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    const to = await this.#within(late, this.#address())
    if (request.length <= MAX_DATAGRAM) {
      const soon = AbortSignal.any([late, AbortSignal.timeout(Math.min(UDP_MS, timeoutMs / 2))])
      const answer = await this.#within(soon, this.#byUdp(to, request, soon)).catch(() => undefined)
      if (answer && readErrorCode(answer) !== RESPONSE_TOO_BIG) return answer
    }
    return await this.#within(late, this.#byTcp(to, request, late))
  }

  async #address(): Promise<Address> {
    const { host } = this.#options
    return isIP(host) ? { address: host, family: isIP(host) } : await lookup(host)
  }

  #byUdp({ address, family }: Address, request: Uint8Array, signal: AbortSignal): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    const socket = createSocket({ type: family === 6 ? 'udp6' : 'udp4', signal })
    socket.once('message', resolve)
    socket.on('error', reject)
    // A connected socket takes datagrams of the KDC's address and port only.
    socket.connect(this.#options.port, address, () => socket.send(request))
    const close = () => {
      if (!signal.aborted) socket.close()
    }
    return promise.finally(close)
  }

  #byTcp({ address }: Address, request: Uint8Array, signal: AbortSignal): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    const socket = connect({ host: address, port: this.#options.port })
    const head = Buffer.alloc(4)
    head.writeUInt32BE(request.length)
    socket.write(Buffer.concat([head, request]))
    const chunks: Buffer[] = []
    let received = 0
    let length: number | undefined
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      received += chunk.length
      if (length === undefined && received >= 4) {
        length = Buffer.concat(chunks).readUInt32BE()
        if (length > MAX_ANSWER)
          reject(new Error(`an answer of at most ${MAX_ANSWER} bytes was expected, got ${length}`))
      }
      if (length !== undefined && received >= length + 4)
        resolve(Buffer.concat(chunks).subarray(4, length + 4))
    })
    socket.on('error', reject)
    // The caller has been told why.
    signal.addEventListener('abort', () => socket.destroy(), { once: true })
    socket.on('close', () => reject(new Error('it closed the connection without a whole answer')))
    return promise.finally(() => socket.destroy())
  }

  async #within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
    const stopped = Promise.withResolvers<never>()
    const onAbort = () => stopped.reject(new Error(`no answer within ${this.#options.timeoutMs} ms`))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    try {
      return await Promise.race([work, stopped.promise])
    } catch (error) {
      throw new KdcError(`${this.name}: ${(error as Error).message}`)
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }
}
