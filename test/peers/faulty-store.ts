/** Stands in front of an object store and does to requests what networks and stores do on bad days. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

export type Fault =
  /** This answer, without the store being asked. */
  | { status: number }
  /** The connection ends in the middle of what is sent. */
  | 'cut'
  /** The store does it, and its answer never arrives. */
  | 'no-answer'
  /** A bit of what is sent up is another when it arrives. */
  | 'bad-up'
  /** A bit of what comes back is another when it arrives. */
  | 'bad-down'
  /** The answer's bytes come after so many milliseconds. */
  | { slow: number }

export interface Seen {
  method: string
  /** Path and query. */
  url: string
  bytes: number
}

export interface FaultyStore {
  endpoint: string
  /** All that was asked for, in its order. */
  seen: Seen[]
  /** Asked for each request. */
  fault: (request: { method: string; url: string }) => Fault | undefined
  stop(): Promise<void>
}

/** Before the store at `port`; with a certificate it is spoken to over TLS. */
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
  // Swift answers HEAD for what is not there with a body; `once` tells of an error before the answer.
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
