/**
 * WebSockets (RFC 6455) of the API. A request for one is handled like any other: sign-in, rights, cross-site
 * check and errors are those of its route, which finally takes the connection over, or returns an ordinary
 * answer.
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

/** Close code if the server stops (RFC 6455 7.4.1). */
const GOING_AWAY = 1001

/** For the server's options: other requests for an upgrade are answered as if they had not asked for it. */
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
  /** WebSockets that have not answered the last ping. */
  readonly #silent = new WeakSet<WebSocket>()
  #pings: NodeJS.Timeout | undefined

  /**
   * Routes requests for WebSockets through `app`, and closes open ones when it closes. `mayLeave`: whether no
   * earlier answer is still to be sent on the connection.
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
      // Destroyed, not just ended: the socket is no longer read, so that the client's end would not be
      // noticed.
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
   * Returns a function that makes the WebSocket; it resolves with undefined if the client has disconnected or
   * sent an invalid handshake.
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
          // The package has sent the close code; a client that does not answer is disconnected.
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

/** Closes with code and reason; a client that does not answer is disconnected soon after. */
export function closeSocket(socket: WebSocket, code: number, reason: string): void {
  socket.close(code, reason)
  setTimeout(() => socket.terminate(), SOCKET_CLOSE_MS).unref()
}
