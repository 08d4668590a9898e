/**
 * Handles a connection's requests one after the other. Node hands over all that have arrived (pipelining, RFC
 * 9112 9.3.2), so that one connection could check passwords, write events and read lists any number of times
 * at once. Here the next request begins when the previous answer has ended; until then the connection is not
 * read.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { connectionOf } from './connections.ts'

/**
 * Limit of requests sent ahead; further ones are dropped, and the connection closes after the answers to the
 * others.
 */
export const MAX_REQUESTS_AHEAD = 64

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** A connection that handles a request. */
interface Work {
  connection: Socket
  /** Requests that wait. */
  ahead: [IncomingMessage, ServerResponse][]
  isOver: boolean
}

export class OneByOne {
  readonly #works = new WeakMap<Socket, Work>()
  /** The connections that handle a request. */
  readonly #busy = new Set<Socket>()
  readonly #handler: Handler

  constructor(handler: Handler) {
    this.#handler = handler
  }

  /** Accepts a request from the server's parser. */
  readonly take: Handler = (request, response) => {
    const { socket } = request
    const work = this.#works.get(socket)
    if (!work) {
      const fresh: Work = { connection: connectionOf(socket), ahead: [], isOver: false }
      this.#works.set(socket, fresh)
      this.#busy.add(fresh.connection)
      this.#begin(request, response, fresh)
      return
    }
    socket.pause()
    if (work.ahead.length < MAX_REQUESTS_AHEAD && !work.isOver) work.ahead.push([request, response])
    else work.isOver = true
  }

  /** Hands the connection over to another protocol. Returns false if earlier answers are still to be sent. */
  leave(socket: Socket): boolean {
    if (this.#works.has(socket)) return false
    const connection = connectionOf(socket)
    this.#busy.add(connection)
    socket.once('close', () => this.#busy.delete(connection))
    return true
  }

  /** Closes the connection after the answer in progress; drops requests sent ahead. */
  end(socket: Socket): void {
    const work = this.#works.get(socket)
    if (!work) return
    work.isOver = true
    work.ahead.length = 0
  }

  /** Whether this connection handles a request, or has changed to another protocol. */
  readonly isBusy = (connection: Socket): boolean => this.#busy.has(connection)

  #begin(request: IncomingMessage, response: ServerResponse, work: Work): void {
    const { socket } = request
    // Also emitted if either side closes the connection early.
    response.once('close', () => {
      const next = response.shouldKeepAlive && !socket.destroyed ? work.ahead.shift() : undefined
      if (next) this.#begin(...next, work)
      else {
        this.#busy.delete(work.connection)
        // No further request is read from a connection that is closing.
        if (work.isOver || !response.shouldKeepAlive) socket.destroySoon()
        else this.#works.delete(socket)
      }
      if (work.ahead.length === 0 && !work.isOver) socket.resume()
    })
    this.#handler(request, response)
  }
}
