/**
 * The connections that there are: so many in all, and no address, user or API key has more than its share of them.
 * Nobody is known before their first request, so until then a connection is its network's (an address; of IPv6 one
 * /64). One that has its share gives up its oldest for a newcomer, or whoever is silent there would keep its
 * administrators out; when there is no room left, the one that has most does. From then on it is its user's and its
 * key's. A part of the room is kept for those who administrate. Connections are known by the client's address and
 * port, for TLS has another socket than TCP.
 */
import type { Server, Socket } from 'node:net'
import { networkOf } from '../../model/networks.ts'

export interface ConnectionLimits {
  /** Of all kinds together. */
  total: number
  /** On which nobody has signed in yet, in all and of one network. */
  anonymous: number
  perNetwork: number
  /** Of one user, and of one key. */
  perHolder: number
  /** Of the total, for those who administrate alone. */
  kept: number
  /** Requests refused on one connection since somebody signed in, the last of which ends it. */
  refusals: number
}

/** Whose a connection, or a long answer, is: of a connection none while nobody has signed in. */
export interface Holder {
  /** Of the user and of the key. */
  ids: readonly string[]
  isAdministrator: boolean
}

interface Connection {
  socket: Socket
  network: string
  holder: Holder | undefined
  refusals: number
}

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>

export class Connections {
  readonly #limits: ConnectionLimits
  readonly #isBusy: (peer: string) => boolean
  /** By peer; in the order of their coming. */
  readonly #all = new Map<string, Connection>()
  /** Connections by network, of those without a holder, and by holder. */
  readonly #networks = new Map<string, number>()
  readonly #holders = new Map<string, number>()
  #anonymous = 0
  /** Held by those who do not administrate. */
  #common = 0

  /** `isBusy`: whether a request of this connection is in work; others may be closed at any time. */
  constructor(limits: ConnectionLimits, isBusy: (peer: string) => boolean) {
    this.#limits = limits
    this.#isBusy = isBusy
  }

  /** Watches what a server accepts. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#accept(socket))
  }

  /** Whoever is at the other end is known now; false: there is no room for one more of theirs. */
  signedIn(peer: Peer, holder: Holder): boolean {
    const key = peerOf(peer)
    const connection = this.#all.get(key)
    // a request that came by no connection of this server, or by one that has gone
    if (!connection) return true
    connection.refusals = 0
    if (isSame(connection.holder, holder)) return true
    if (!this.#hasRoomFor(holder, connection)) return false
    this.#uncount(connection)
    connection.holder = holder
    this.#count(connection)
    return true
  }

  /** One more request refused for which nobody has signed in; true: it was the last. */
  refused(peer: Peer): boolean {
    const connection = this.#all.get(peerOf(peer))
    if (!connection) return false
    connection.refusals++
    return this.#limits.refusals <= connection.refusals
  }

  /** Connections in all, and of those the ones without a holder. */
  get size(): { all: number; anonymous: number } {
    return { all: this.#all.size, anonymous: this.#anonymous }
  }

  #accept(socket: Socket): void {
    const { remoteAddress } = socket
    const network = remoteAddress === undefined ? undefined : networkOf(remoteAddress)
    if (network === undefined || !this.#makeRoom(network)) {
      socket.destroy()
      return
    }
    const key = peerOf(socket)
    const connection: Connection = { socket, network, holder: undefined, refusals: 0 }
    this.#all.set(key, connection)
    this.#count(connection)
    socket.once('close', () => this.#release(key, connection))
  }

  /** For one more connection of a network. */
  #makeRoom(network: string): boolean {
    const { total, anonymous, perNetwork } = this.#limits
    const own = this.#networks.get(network) ?? 0
    if (perNetwork <= own) return this.#closeStranger(network)
    if (this.#anonymous < anonymous && this.#all.size < total) return true
    const [most, count] = largest(this.#networks)
    if (own < count) return this.#close((one) => !one.holder && one.network === most)
    return this.#anonymous < anonymous && this.#closeIdle()
  }

  /** The network's oldest without a holder, those that wait for an answer last: somebody may be signing in there. */
  #closeStranger(network: string): boolean {
    const isMeant = (one: Connection) => !one.holder && one.network === network
    return this.#close((one, key) => isMeant(one) && !this.#isBusy(key)) || this.#close(isMeant)
  }

  #hasRoomFor(holder: Holder, own: Connection): boolean {
    for (const id of holder.ids) {
      const isFull = this.#limits.perHolder <= (this.#holders.get(id) ?? 0)
      if (isFull && !own.holder?.ids.includes(id) && !this.#close((one, key) => this.#isIdleOf(id, one, key)))
        return false
    }
    const isCommon = !holder.isAdministrator && (own.holder === undefined || own.holder.isAdministrator)
    const isFull = this.#limits.total - this.#limits.kept <= this.#common
    return !isCommon || !isFull || this.#closeIdle()
  }

  /** Of whoever holds most, without those who administrate. */
  #closeIdle(): boolean {
    const common = new Map<string, number>()
    for (const { holder } of this.#all.values()) {
      if (holder && !holder.isAdministrator)
        for (const id of holder.ids) common.set(id, this.#holders.get(id) ?? 0)
    }
    const ids = [...common].toSorted((a, b) => b[1] - a[1])
    return ids.some(([id]) => this.#close((one, key) => this.#isIdleOf(id, one, key)))
  }

  #isIdleOf(id: string, { holder }: Connection, key: string): boolean {
    return holder?.ids.includes(id) === true && !this.#isBusy(key)
  }

  /** Closes the oldest that is meant; false: there is none. */
  #close(isMeant: (connection: Connection, key: string) => boolean): boolean {
    for (const [key, connection] of this.#all) {
      if (!isMeant(connection, key)) continue
      this.#release(key, connection)
      connection.socket.destroy()
      return true
    }
    return false
  }

  #release(key: string, connection: Connection): void {
    if (this.#all.get(key) !== connection) return
    this.#all.delete(key)
    this.#uncount(connection)
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

/** How a connection is known. */
export function peerOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`
}

function isSame(a: Holder | undefined, b: Holder): boolean {
  return (
    a !== undefined &&
    a.isAdministrator === b.isAdministrator &&
    a.ids.length === b.ids.length &&
    a.ids.every((id, index) => id === b.ids[index])
  )
}

/** Counts; whoever has none is not kept. */
export function addTo(counts: Map<string, number>, key: string, more: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + more
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
}

function largest(counts: ReadonlyMap<string, number>): [string, number] {
  return [...counts].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0])
}
