/** A proxy in front of an object store that injects the faults of networks and stores. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

export type Fault =
  /** Returns this status, without a request to the store. */
  | { status: number }
  /** Closes the connection in the middle of the upload. */
  | 'cut'
  /** The store handles the request, and its response is lost. */
  | 'no-answer'
  /** One bit of the upload changes on the way. */
  | 'bad-up'
  /** One bit of the response changes on the way. */
  | 'bad-down'
  /** Delays the response's bytes by this many milliseconds. */
  | { slow: number }

export interface Seen {
  method: string
  /** Path and query. */
  url: string
  bytes: number
}

export interface FaultyStore {
  endpoint: string
  /** All requests, in order. */
  seen: Seen[]
  /** Called for each request. */
  fault: (request: { method: string; url: string }) => Fault | undefined
  stop(): Promise<void>
}

/** Starts before the store at `port`; with a certificate it listens with TLS. */
export async function startFaultyStore(
  port: number,
  tls?: { cert: string; key: string },
): Promise<FaultyStore> {
  const store: FaultyStore = { endpoint: '', seen: [], fault: () => undefined, stop: async () => undefined }
  const listener = (incoming: IncomingMessage, response: ServerResponse): void => {
    handle(store, port, incoming, response).catch(() => incoming.socket.destroy())
  }
  const server = tls ? createTlsServer(tls, listener) : createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  store.endpoint = `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  store.stop = async () => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  return store
}

async function handle(
  store: FaultyStore,
  port: number,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = '', url = '' } = incoming
  const fault = store.fault({ method, url })
  if (fault === 'cut') {
    await once(incoming, 'readable')
    store.seen.push({ method, url, bytes: 0 })
    incoming.socket.destroy()
    return
  }
  const body = await collect(incoming)
  store.seen.push({ method, url, bytes: body.length })
  if (typeof fault === 'object' && 'status' in fault) {
    response.writeHead(fault.status).end()
    return
  }
  if (fault === 'bad-up' && body.length > 0) body[body.length >> 1]! ^= 1
  const forwarded = request({ host: '127.0.0.1', port, method, path: url, headers: incoming.headers })
  // Swift answers HEAD for a missing object with a body; `once` reports an error before the response.
  forwarded.on('error', () => undefined)
  forwarded.end(body)
  const [answer] = (await once(forwarded, 'response')) as [IncomingMessage]
  const bytes = await collect(answer)
  if (fault === 'no-answer') {
    incoming.socket.destroy()
    return
  }
  if (fault === 'bad-down' && bytes.length > 0) bytes[bytes.length >> 1]! ^= 1
  if (typeof fault === 'object' && 'slow' in fault) await new Promise((done) => setTimeout(done, fault.slow))
  response.writeHead(answer.statusCode ?? 500, answer.headers)
  response.end(bytes)
}

async function collect(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
