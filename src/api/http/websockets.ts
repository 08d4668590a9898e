/**
 * WebSockets (RFC 6455) of the API. A request for one goes the way of every request: sign-in, rights, cross-site
 * check and errors are those of its route, which takes the connection over at the end, or answers like any other.
 */
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Api } from './deps.ts'
import { ApiError } from './errors.ts'
import { MAX_SOCKET_MESSAGE, SOCKET_CLOSE_MS, SOCKET_PING_MS } from './limits.ts'

interface Waiting {
  socket: Duplex
  head: Buffer
  response: ServerResponse<IncomingMessage>
}

/** The server closes (RFC 6455 7.4.1). */
const GOING_AWAY = 1001

/** For the server's options: every other request for another protocol is answered as if it did not ask for one. */
export function isWebSocketRequest({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
}

export class WebSockets {
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_SOCKET_MESSAGE,
    perMessageDeflate: false,
  })
  readonly #waiting = new WeakMap<IncomingMessage, Waiting>()
  /** Those that have been silent since they were last asked. */
  readonly #silent = new WeakSet<WebSocket>()
  #pings: NodeJS.Timeout | undefined

  /**
   * Hands requests for WebSockets to the routes of `app`, and closes what is open when it closes. `mayLeave`: whether
   * the connection has no other request's answer to give before.
   */
  attach(app: Api, mayLeave: (socket: Socket) => boolean): void {
    app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (!mayLeave(socket as Socket)) {
        socket.destroy()
        return
      }
      const response = new ServerResponse(request)
      this.#waiting.set(request, { socket, head, response })
      socket.on('error', () => socket.destroy())
      response.shouldKeepAlive = false
      response.assignSocket(socket as Parameters<typeof response.assignSocket>[0])
      // Not only ended: nobody reads it any more, so its client's end would not be seen.
      response.once('finish', () => (socket as Socket).destroySoon())
      app.routing(request, response)
    })
    this.#pings = setInterval(() => this.#ping(), SOCKET_PING_MS).unref()
    app.addHook('preClose', async () => {
      clearInterval(this.#pings)
      for (const socket of this.#server.clients) closeSocket(socket, GOING_AWAY, 'the bastion is stopping')
    })
  }

  /**
   * How the request becomes a WebSocket; undefined: the client has gone, or its handshake was none.
   * @throws ApiError `upgrade_required` for an ordinary request
   */
  prepare(request: FastifyRequest, reply: FastifyReply): () => Promise<WebSocket | undefined> {
    const waiting = this.#waiting.get(request.raw)
    if (!waiting) throw new ApiError('upgrade_required')
    const { socket, head, response } = waiting
    return async () => {
      reply.hijack()
      response.detachSocket(socket as Parameters<typeof response.detachSocket>[0])
      return await new Promise((resolve) => {
        if (socket.destroyed) resolve(undefined)
        socket.once('close', () => resolve(undefined))
        this.#server.handleUpgrade(request.raw, socket, head, (made) => {
          made.on('pong', () => this.#silent.delete(made))
          // The package has closed it with the code that says why; a client that does not answer is cut.
          made.on('error', () => setTimeout(() => made.terminate(), SOCKET_CLOSE_MS).unref())
          resolve(made)
        })
      })
    }
  }

  #ping(): void {
    for (const socket of this.#server.clients) {
      if (this.#silent.has(socket)) socket.terminate()
      else {
        this.#silent.add(socket)
        socket.ping()
      }
    }
  }
}

/** Says why, and closes; a client that does not answer is cut soon after. */
export function closeSocket(socket: WebSocket, code: number, reason: string): void {
  socket.close(code, reason)
  setTimeout(() => socket.terminate(), SOCKET_CLOSE_MS).unref()
}
