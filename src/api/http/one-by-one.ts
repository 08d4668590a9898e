/**
 * Requests of a connection, one after the other. Node hands over all that have arrived at once (pipelining, RFC 9112
 * 9.3.2), so that one connection could have any number of passwords checked, events written and lists read side by
 * side. Here the next one begins when the answer to the one before is over; meanwhile the connection is not read.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { peerOf } from './connections.ts'

/** Sent ahead; what comes beyond them is dropped, and the connection ends with their answers. */
export const MAX_REQUESTS_AHEAD = 64

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** A connection with a request in work. */
interface Work {
  peer: string
  /** Those that wait. */
  ahead: [IncomingMessage, ServerResponse][]
  isOver: boolean
}

export class OneByOne {
  readonly #works = new WeakMap<Socket, Work>()
  /** Peers of the connections that have one. */
  readonly #busy = new Set<string>()
  readonly #handler: Handler

  constructor(handler: Handler) {
    this.#handler = handler
  }

  /** Takes what the server's parser has read. */
  readonly take: Handler = (request, response) => {
    const { socket } = request
    const work = this.#works.get(socket)
    if (!work) {
      const fresh: Work = { peer: peerOf(socket), ahead: [], isOver: false }
      this.#works.set(socket, fresh)
      this.#busy.add(fresh.peer)
      this.#begin(request, response, fresh)
      return
    }
    socket.pause()
    if (work.ahead.length < MAX_REQUESTS_AHEAD && !work.isOver) work.ahead.push([request, response])
    else work.isOver = true
  }

  /** The connection goes to another protocol; false: there are answers to be given on it before. */
  leave(socket: Socket): boolean {
    if (this.#works.has(socket)) return false
    const peer = peerOf(socket)
    this.#busy.add(peer)
    socket.once('close', () => this.#busy.delete(peer))
    return true
  }

  /** The connection ends with the answer to the request that is in work; what was sent ahead is dropped. */
  end(socket: Socket): void {
    const work = this.#works.get(socket)
    if (!work) return
    work.isOver = true
    work.ahead.length = 0
  }

  /** Whether the connection of this peer has a request in work, or has gone to another protocol. */
  readonly isBusy = (peer: string): boolean => this.#busy.has(peer)

  #begin(request: IncomingMessage, response: ServerResponse, work: Work): void {
    const { socket } = request
    // also when the client, or we, give the connection up
    response.once('close', () => {
      const next = response.shouldKeepAlive && !socket.destroyed ? work.ahead.shift() : undefined
      if (next) this.#begin(...next, work)
      else {
        this.#busy.delete(work.peer)
        // what else is read from a connection that is being closed has no turn any more
        if (work.isOver || !response.shouldKeepAlive) socket.destroySoon()
        else this.#works.delete(socket)
      }
      if (work.ahead.length === 0 && !work.isOver) socket.resume()
    })
    this.#handler(request, response)
  }
}
