/**
 * The PROXY headers of load balancers, ahead of every protocol. A connection from one of their networks has to begin
 * with one; from anywhere else nothing is read, and the same bytes are the protocol's.
 */
import { isTrusted } from '../balancers/forwarded.ts'
import type { TcpHandle } from './accept.ts'
import { claimPeer, type Peer, peerOf } from './claimed.ts'
import { HeaderRead, type Refusal } from './header-read.ts'

/** Connections that wait for their header; one more takes the place of the oldest, since balancers send it at once. */
const MAX_WAITING = 1_000
/** Milliseconds for the header. */
export const HEADER_MS = 5_000

export interface ProxyHeadersOptions {
  /** Networks of the balancers; without any, no header is read. */
  from: readonly string[]
  /** Milliseconds for a header. */
  timeMs: number
  /** Connections that wait; default: MAX_WAITING. */
  maxWaiting?: number
  /** Called for each connection whose client the balancer has named. */
  onClaimed: (listener: string, balancer: Peer, client: Peer) => void
  /** Called for each connection that was closed, unless the balancer closed it without a byte. */
  onRefused: (listener: string, balancer: Peer, refusal: Refusal, reason: string) => void
}

export class ProxyHeaders {
  readonly #options: ProxyHeadersOptions
  /** In the order of arrival. */
  readonly #waiting = new Set<HeaderRead>()
  /** Applies to new connections. */
  from: readonly string[]

  constructor(options: ProxyHeadersOptions) {
    this.#options = options
    this.from = options.from
  }

  /** Whether the connection has to begin with a header. */
  isExpected(handle: TcpHandle): boolean {
    const peer = this.from.length > 0 ? peerOf(handle) : undefined
    return peer !== undefined && isTrusted(peer.address, this.from)
  }

  /**
   * Reads the header of a connection of which nothing has been read. Resolves to its handle, which reports the
   * client as its peer and has the first byte behind the header still to be read, or to undefined if the connection
   * was closed.
   */
  async read(listener: string, handle: TcpHandle): Promise<TcpHandle | undefined> {
    const balancer = peerOf(handle)
    if (!balancer) {
      handle.close()
      return undefined
    }
    const { timeMs, maxWaiting = MAX_WAITING, onClaimed, onRefused } = this.#options
    const [oldest] = this.#waiting
    if (oldest && this.#waiting.size >= maxWaiting) {
      this.#waiting.delete(oldest)
      oldest.refuse(
        'slow',
        `expected a PROXY header at once, since ${maxWaiting} connections wait for theirs`,
      )
    }
    return await new Promise((resolve) => {
      const reader = new HeaderRead(handle, timeMs, (outcome) => {
        this.#waiting.delete(reader)
        if (outcome === 'gone') resolve(undefined)
        else if ('refusal' in outcome) {
          onRefused(listener, balancer, outcome.refusal, outcome.reason)
          resolve(undefined)
        } else {
          const { client } = outcome.claim
          if (client) {
            claimPeer(handle, client)
            onClaimed(listener, balancer, client)
          }
          resolve(handle)
        }
      })
      this.#waiting.add(reader)
    })
  }

  /** Closes the connections that wait. */
  close(): void {
    for (const reader of this.#waiting) reader.close()
  }
}
