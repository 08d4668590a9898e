/** One TACACS+ server: connections to it, and the sessions on them. */
import type { Secret } from '../../../model/secret.ts'
import { allowedAddresses } from './addresses.ts'
import { TacacsConnection, type TacacsSession } from './connection.ts'
import { type PacketType, TacacsError } from './packet.ts'

export const TACACS_PORT = 49
/** Sessions at a time, dialogues that wait for a user among them. */
const MAX_SESSIONS = 256

export interface TacacsServerOptions {
  host: string
  port: number
  /** Absent or empty: nothing is sent. */
  sharedSecret: Secret | undefined
  singleConnect: boolean
  allowPublicNetworks: boolean
  /** Milliseconds for the address, the connection, and each answer. */
  timeoutMs: number
}

/** A session that has its first reply. */
export interface Begun {
  session: TacacsSession
  reply: Buffer
}

export class TacacsServer {
  readonly name: string
  readonly #options: TacacsServerOptions
  readonly #connections = new Set<TacacsConnection>()
  /** The connection on which the server has agreed to several sessions. */
  #shared: TacacsConnection | undefined
  #sessions = 0

  constructor(options: TacacsServerOptions) {
    this.#options = options
    const { host, port } = options
    this.name = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  }

  /**
   * Begins a session with its first packet. The caller closes it. `minor`: 1 for PAP, 0 else (RFC 8907 5.4.1).
   * @throws TacacsError
   */
  async begin(type: PacketType, minor: number, body: Uint8Array, signal: AbortSignal): Promise<Begun> {
    const shared = this.#shared
    if (shared?.isOpen) {
      try {
        return await this.#on(shared, type, minor, body, signal)
      } catch (error) {
        // A server may close an idle connection just when it is used: the request goes to a new one, once.
        if (shared.isOpen || signal.aborted) throw error
      }
    }
    return await this.#on(await this.#open(signal), type, minor, body, signal)
  }

  /** Asks once, in a session of its own. @throws TacacsError */
  async ask(type: PacketType, minor: number, body: Uint8Array, signal: AbortSignal): Promise<Buffer> {
    const { session, reply } = await this.begin(type, minor, body, signal)
    session.close()
    return reply
  }

  /** Sends a further packet of a session. @throws TacacsError */
  goOn(session: TacacsSession, body: Uint8Array, signal: AbortSignal): Promise<Buffer> {
    return session.ask(body, this.#options.timeoutMs, signal)
  }

  /** Connects, and returns the address that it was. @throws TacacsError */
  async reach(signal: AbortSignal): Promise<string> {
    if (this.#shared?.isOpen) return this.#shared.address
    const connection = await this.#open(signal)
    connection.close()
    return connection.address
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
    this.#connections.clear()
    this.#shared = undefined
  }

  async #on(
    connection: TacacsConnection,
    type: PacketType,
    minor: number,
    body: Uint8Array,
    signal: AbortSignal,
  ): Promise<Begun> {
    if (this.#sessions >= MAX_SESSIONS) {
      if (!connection.isShared) connection.close()
      throw new TacacsError(`${this.name}: more than ${MAX_SESSIONS} requests at a time`)
    }
    this.#sessions++
    const session = connection.session(type, minor, () => this.#sessions--)
    const reply = await session.ask(body, this.#options.timeoutMs, signal)
    return { session, reply }
  }

  async #open(signal: AbortSignal): Promise<TacacsConnection> {
    const { host, port, sharedSecret, singleConnect, allowPublicNetworks, timeoutMs } = this.#options
    if (!sharedSecret || sharedSecret.length === 0)
      throw new TacacsError(`${this.name}: expected a \`shared_secret\`, got none`)
    const late = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    const addresses = await unless(late, allowedAddresses(host, allowPublicNetworks), this.name)
    const failures: string[] = []
    for (const address of addresses) {
      try {
        const connection = await TacacsConnection.open(
          {
            name: this.name,
            address,
            port,
            key: sharedSecret.reveal(),
            singleConnect,
            timeoutMs,
            onShared: (agreed) => {
              if (this.#shared?.isOpen) return false
              this.#shared = agreed
              return true
            },
            onClosed: (closed) => this.#connections.delete(closed),
          },
          late,
        )
        this.#connections.add(connection)
        return connection
      } catch (error) {
        failures.push((error as Error).message)
      }
    }
    throw new TacacsError(failures.join('; '))
  }
}

async function unless<T>(signal: AbortSignal, work: Promise<T>, name: string): Promise<T> {
  const stopped = Promise.withResolvers<never>()
  const onAbort = () => stopped.reject(new TacacsError('its address was not found in time'))
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    return await Promise.race([work, stopped.promise])
  } catch (error) {
    throw new TacacsError(`${name}: ${(error as Error).message}`)
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
