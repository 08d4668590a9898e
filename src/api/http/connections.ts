/**
 * Limits of connections: in all, and per address, user and API key. Before its first request is
 * authenticated, a connection counts for its network (an address; for IPv6 a /64), afterwards for its user
 * and key. A network at its limit loses its oldest connection to a new one, as silent connections would
 * otherwise lock out its administrators; if there is no room at all, the network with the most connections
 * loses one. Some connections are reserved for administrators. A connection is its TCP socket: its address and
 * port are what a balancer says, and several may be said to have the same.
 */
import type { Server, Socket } from 'node:net'
import { networkOf } from '../../model/networks.ts'

export interface ConnectionLimits {
  /** All kinds together. */
  total: number
  /** Connections without sign-in, in all and per network. */
  anonymous: number
  perNetwork: number
  /** Connections per user, and per key. */
  perHolder: number
  /** Part of the total that is reserved for administrators. */
  kept: number
  /** Refused requests on one connection since the last sign-in; the last one closes it. */
  refusals: number
}

/** User and key to which a connection or a long answer is counted. A connection without sign-in has none. */
export interface Holder {
  /** Ids of the user and of the key. */
  ids: readonly string[]
  isAdministrator: boolean
}

interface Connection {
  socket: Socket
  network: string
  holder: Holder | undefined
  refusals: number
}

export class Connections {
  readonly #limits: ConnectionLimits
  readonly #isBusy: (connection: Socket) => boolean
  readonly #isShared: (address: string) => boolean
  /** By their TCP sockets, in the order of arrival. */
  readonly #all = new Map<Socket, Connection>()
  /** Numbers of connections without a holder by network, and of all others by holder. */
  readonly #networks = new Map<string, number>()
  readonly #holders = new Map<string, number>()
  #anonymous = 0
  /** Connections held by callers that are not administrators. */
  #common = 0

  /**
   * `isBusy`: whether the connection is handling a request; others may be closed at any time. `isShared`:
   * whether many clients have this address, a proxy's, so that the limit of one network is not for it.
   */
  constructor(
    limits: ConnectionLimits,
    isBusy: (connection: Socket) => boolean,
    isShared: (address: string) => boolean = () => false,
  ) {
    this.#limits = limits
    this.#isBusy = isBusy
    this.#isShared = isShared
  }

  /** Counts the connections that a server accepts. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#accept(socket))
  }

  /** Sets the holder of a connection. Returns false if the holder has no room for another one. */
  signedIn(socket: Socket, holder: Holder): boolean {
    const connection = this.#all.get(connectionOf(socket))
    // The request came without a connection of this server, or it has closed already.
    if (!connection) return true
    connection.refusals = 0
    if (isSame(connection.holder, holder)) return true
    if (!this.#hasRoomFor(holder, connection)) return false
    this.#uncount(connection)
    connection.holder = holder
    this.#count(connection)
    return true
  }

  /** Counts a refused request without sign-in. Returns true if it was the last one allowed. */
  refused(socket: Socket): boolean {
    const connection = this.#all.get(connectionOf(socket))
    if (!connection) return false
    connection.refusals++
    return this.#limits.refusals <= connection.refusals
  }

  /** Numbers of all connections, and of those without a holder. */
  get size(): { all: number; anonymous: number } {
    return { all: this.#all.size, anonymous: this.#anonymous }
  }

  #accept(socket: Socket): void {
    const { remoteAddress } = socket
    const network = remoteAddress === undefined ? undefined : networkOf(remoteAddress)
    if (network === undefined || !this.#makeRoom(network, this.#isShared(remoteAddress ?? ''))) {
      socket.destroy()
      return
    }
    const connection: Connection = { socket, network, holder: undefined, refusals: 0 }
    this.#all.set(socket, connection)
    this.#count(connection)
    socket.once('close', () => this.#release(connection))
  }

  /** Makes room for another connection of a network. */
  #makeRoom(network: string, isShared: boolean): boolean {
    const { total, anonymous, perNetwork } = this.#limits
    const own = this.#networks.get(network) ?? 0
    if (perNetwork <= own && !isShared) return this.#closeStranger(network)
    if (this.#anonymous < anonymous && this.#all.size < total) return true
    const [most, count] = largest(this.#networks)
    if (own < count) return this.#close((one) => !one.holder && one.network === most)
    return this.#anonymous < anonymous && this.#closeIdle()
  }

  /**
   * Closes the network's oldest connection without a holder. One that handles a request comes last: it may be
   * signing in.
   */
  #closeStranger(network: string): boolean {
    const isMeant = (one: Connection) => !one.holder && one.network === network
    return this.#close((one) => isMeant(one) && !this.#isBusy(one.socket)) || this.#close(isMeant)
  }

  #hasRoomFor(holder: Holder, own: Connection): boolean {
    for (const id of holder.ids) {
      const isFull = this.#limits.perHolder <= (this.#holders.get(id) ?? 0)
      if (isFull && !own.holder?.ids.includes(id) && !this.#close((one) => this.#isIdleOf(id, one)))
        return false
    }
    const isCommon = !holder.isAdministrator && (own.holder === undefined || own.holder.isAdministrator)
    const isFull = this.#limits.total - this.#limits.kept <= this.#common
    return !isCommon || !isFull || this.#closeIdle()
  }

  /** Closes the oldest idle connection of the holder with the most, except administrators. */
  #closeIdle(): boolean {
    const common = new Map<string, number>()
    for (const { holder } of this.#all.values()) {
      if (holder && !holder.isAdministrator)
        for (const id of holder.ids) common.set(id, this.#holders.get(id) ?? 0)
    }
    const ids = [...common].toSorted((a, b) => b[1] - a[1])
    return ids.some(([id]) => this.#close((one) => this.#isIdleOf(id, one)))
  }

  #isIdleOf(id: string, { holder, socket }: Connection): boolean {
    return holder?.ids.includes(id) === true && !this.#isBusy(socket)
  }

  /** Closes the oldest matching connection. Returns false if there is none. */
  #close(isMeant: (connection: Connection) => boolean): boolean {
    for (const connection of this.#all.values()) {
      if (!isMeant(connection)) continue
      this.#release(connection)
      connection.socket.destroy()
      return true
    }
    return false
  }

  #release(connection: Connection): void {
    if (this.#all.delete(connection.socket)) this.#uncount(connection)
  }

  #count({ network, holder }: Connection): void {
    if (!holder) {
      this.#anonymous++
      addTo(this.#networks, network, 1)
      return
    }
    if (!holder.isAdministrator) this.#common++
    for (const id of holder.ids) addTo(this.#holders, id, 1)
  }

  #uncount({ network, holder }: Connection): void {
    if (!holder) {
      this.#anonymous--
      addTo(this.#networks, network, -1)
      return
    }
    if (!holder.isAdministrator) this.#common--
    for (const id of holder.ids) addTo(this.#holders, id, -1)
  }
}

/** Returns the TCP socket below a request's socket, which TLS has made anew. */
export function connectionOf(socket: Socket): Socket {
  return (socket as { _parent?: Socket })._parent ?? socket
}

function isSame(a: Holder | undefined, b: Holder): boolean {
  return (
    a !== undefined &&
    a.isAdministrator === b.isAdministrator &&
    a.ids.length === b.ids.length &&
    a.ids.every((id, index) => id === b.ids[index])
  )
}

/** Changes a count; a count of zero is removed. */
export function addTo(counts: Map<string, number>, key: string, more: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + more
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
}

function largest(counts: ReadonlyMap<string, number>): [string, number] {
  return [...counts].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0])
}
