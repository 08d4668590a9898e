/**
 * The connections of a front: keeps clients that do not sign in from exhausting the places. The counts are of
 * sockets that have not signed in yet.
 */
import type { Socket } from 'node:net'
import { networkOf } from '../../src/model/networks.ts'
import { acceptShared } from './shared-read.ts'

export interface ArrivalOptions {
  /**
   * Sockets without a sign-in, in all and from one address (of IPv6: one /64). One too many from an address
   * is closed at once; one too many in all replaces the oldest one from the address that has most.
   */
  maxHalfOpen?: number
  maxHalfOpenPerAddress?: number
  /** Milliseconds from the TCP connection to the sign-in. */
  graceMs: number
  onSocket: (socket: Socket) => void
}

const MAX_HALF_OPEN = 2_000
const MAX_HALF_OPEN_PER_ADDRESS = 250

export class Arrivals {
  readonly #options: ArrivalOptions
  readonly #halfOpen = new Map<Socket, { address: string; timer: NodeJS.Timeout }>()
  readonly #byAddress = new Map<string, number>()
  readonly #sockets = new Set<Socket>()

  #isClosed = false

  constructor(options: ArrivalOptions) {
    this.#options = options
  }

  /** Takes over an accepted connection, of which nothing has been read, and returns its socket. */
  accept(handle: object): Socket {
    const socket = acceptShared(handle)
    if (this.#isClosed) socket.destroy()
    else this.#welcome(socket)
    return socket
  }

  /** Ends the grace time of a socket that has signed in, and removes it from the counts. */
  signedIn(socket: Socket): void {
    this.#release(socket)
  }

  /** Begins the grace time of a socket anew: its person is somewhere else, and comes back within these milliseconds. */
  waits(socket: Socket, milliseconds: number): void {
    const entry = this.#halfOpen.get(socket)
    if (!entry) return
    clearTimeout(entry.timer)
    entry.timer = setTimeout(() => socket.destroy(), milliseconds)
  }

  /** Takes no more connections, and drops those that have not signed in. */
  close(): void {
    this.#isClosed = true
    for (const socket of [...this.#halfOpen.keys()]) socket.destroy()
  }

  /** Drops every remaining connection. */
  destroy(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #welcome(socket: Socket): void {
    const { remoteAddress } = socket
    const {
      graceMs,
      maxHalfOpen = MAX_HALF_OPEN,
      maxHalfOpenPerAddress = MAX_HALF_OPEN_PER_ADDRESS,
    } = this.#options
    if (remoteAddress === undefined) {
      socket.destroy()
      return
    }
    const address = networkOf(remoteAddress)
    const ofAddress = this.#byAddress.get(address) ?? 0
    if (
      ofAddress >= maxHalfOpenPerAddress ||
      (this.#halfOpen.size >= maxHalfOpen && !this.#makeRoom(ofAddress))
    ) {
      socket.destroy()
      return
    }
    this.#byAddress.set(address, ofAddress + 1)
    this.#halfOpen.set(socket, { address, timer: setTimeout(() => socket.destroy(), graceMs) })
    this.#sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => {
      this.#release(socket)
      this.#sockets.delete(socket)
    })
    this.#options.onSocket(socket)
  }

  /** Closes a socket of the address that has most. Returns false if no address has more than `than`. */
  #makeRoom(than: number): boolean {
    const [most, count] = [...this.#byAddress].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0])
    if (count <= than) return false
    for (const [socket, { address }] of this.#halfOpen) {
      if (address !== most) continue
      this.#release(socket)
      socket.destroy()
      return true
    }
    return false
  }

  #release(socket: Socket): void {
    const entry = this.#halfOpen.get(socket)
    if (!entry) return
    clearTimeout(entry.timer)
    this.#halfOpen.delete(socket)
    const rest = (this.#byAddress.get(entry.address) ?? 1) - 1
    if (rest > 0) this.#byAddress.set(entry.address, rest)
    else this.#byAddress.delete(entry.address)
  }
}
