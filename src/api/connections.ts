/**
 * Connections on which nobody has signed in yet: a bounded number from one address (of IPv6: one /64), so that
 * nobody takes the room of those who do. They are known by the client's address and port, for TLS has another
 * socket than TCP.
 */
import type { Server, Socket } from 'node:net'
import { networkOf } from '../model/networks.ts'

export interface ConnectionLimits {
  perAddress: number
  /** From all addresses; one more takes the place of the oldest from the address that has most. */
  total: number
}

interface Anonymous {
  network: string
  socket: Socket
}

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>

export class Connections {
  readonly #limits: ConnectionLimits
  /** In the order of their coming. */
  readonly #anonymous = new Map<string, Anonymous>()
  readonly #counts = new Map<string, number>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** Watches what a server accepts. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#accept(socket))
  }

  /** Whoever is at the other end is known now. */
  signedIn(peer: Peer): void {
    this.#release(keyOf(peer))
  }

  get size(): number {
    return this.#anonymous.size
  }

  #accept(socket: Socket): void {
    const { remoteAddress } = socket
    const key = keyOf(socket)
    if (remoteAddress === undefined) {
      socket.destroy()
      return
    }
    const network = networkOf(remoteAddress)
    const own = this.#counts.get(network) ?? 0
    const isFull = this.#anonymous.size >= this.#limits.total
    if (own >= this.#limits.perAddress || (isFull && !this.#makeRoom(own))) {
      socket.destroy()
      return
    }
    this.#anonymous.set(key, { network, socket })
    this.#counts.set(network, own + 1)
    socket.once('close', () => this.#release(key))
  }

  /** False: no address has more than `than`. */
  #makeRoom(than: number): boolean {
    const [most, count] = [...this.#counts].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0])
    if (count <= than) return false
    for (const [key, { network, socket }] of this.#anonymous) {
      if (network !== most) continue
      this.#release(key)
      socket.destroy()
      return true
    }
    return false
  }

  #release(key: string): void {
    const one = this.#anonymous.get(key)
    if (!one) return
    this.#anonymous.delete(key)
    const rest = (this.#counts.get(one.network) ?? 1) - 1
    if (rest > 0) this.#counts.set(one.network, rest)
    else this.#counts.delete(one.network)
  }
}

function keyOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`
}
