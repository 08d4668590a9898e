/** One RADIUS server: its address, and the sockets on which it is asked. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Secret } from '../../../model/secret.ts'
import { CODES, RadiusError, type Reply } from './packet.ts'
import { type Question, RadiusSocket } from './socket.ts'

export const RADIUS_PORT = 1812
/** Requests under way to one server. */
const MAX_ASKING = 1024

export interface RadiusServerOptions {
  host: string
  port: number
  /** Absent or empty: nothing is sent. */
  sharedSecret: Secret | undefined
  requireMessageAuthenticator: boolean
  /** Milliseconds for the address, and for each answer. */
  timeoutMs: number
  tries: number
}

export class RadiusServer {
  readonly name: string
  readonly #options: RadiusServerOptions
  readonly #sockets = new Set<RadiusSocket>()
  #asking = 0
  #isClosed = false

  constructor(options: RadiusServerOptions) {
    this.#options = options
    const { host, port } = options
    this.name = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  }

  /** Asks, and returns the proved reply. @throws RadiusError */
  async ask(question: Question, signal: AbortSignal): Promise<Reply> {
    const { sharedSecret, timeoutMs, tries } = this.#options
    // No right hangs on the answers to Status-Server and to accounting, which older servers never sign.
    const requireMessageAuthenticator =
      this.#options.requireMessageAuthenticator && question.code === CODES.accessRequest
    if (!sharedSecret || sharedSecret.length === 0)
      throw new RadiusError(`${this.name}: expected a \`shared_secret\`, got none`)
    if (this.#asking >= MAX_ASKING)
      throw new RadiusError(`${this.name}: more than ${MAX_ASKING} requests at a time`)
    this.#asking++
    try {
      const address = await this.address(signal)
      const socket = this.#current(address) ?? (await this.#open(address))
      const secret = sharedSecret.reveal()
      return await socket.ask(question, { secret, requireMessageAuthenticator, timeoutMs, tries, signal })
    } catch (error) {
      throw new RadiusError(`${this.name}: ${(error as Error).message}`)
    } finally {
      this.#asking--
    }
  }

  /** Returns the address that the name has now. @throws Error */
  async address(signal: AbortSignal): Promise<string> {
    const { host, timeoutMs } = this.#options
    if (isIP(host)) return host
    const late = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    const stopped = Promise.withResolvers<never>()
    const onAbort = () => stopped.reject(new RadiusError('its address was not found in time'))
    late.addEventListener('abort', onAbort, { once: true })
    try {
      if (late.aborted) onAbort()
      return (await Promise.race([lookup(host), stopped.promise])).address
    } finally {
      late.removeEventListener('abort', onAbort)
    }
  }

  close(): void {
    this.#isClosed = true
    this.drop()
  }

  /** Ends the requests under way, and closes the sockets: the server may be asked again. */
  drop(): void {
    for (const socket of [...this.#sockets]) socket.close()
  }

  #current(address: string): RadiusSocket | undefined {
    return [...this.#sockets].find((socket) => socket.address === address && socket.hasRoom)
  }

  async #open(address: string): Promise<RadiusSocket> {
    const socket: RadiusSocket = await RadiusSocket.open(address, this.#options.port, () =>
      this.#sockets.delete(socket),
    )
    if (this.#isClosed) {
      socket.close()
      throw new RadiusError('the method was closed')
    }
    this.#sockets.add(socket)
    return socket
  }
}
