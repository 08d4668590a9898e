/**
 * An attacker between a client and a server of RDP, with a certificate that the client accepts, who reads the
 * traffic.
 */
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import { connect, createSecureContext, TLSSocket } from 'node:tls'
import { generate } from 'selfsigned'

export interface Tap {
  port: number
  /** Returns the server's bytes so far, and the client's, without TLS. */
  down(): Buffer
  up(): Buffer
  stop(): void
}

/** Starts between clients and `port` of loopback. It supports TLS only: NLA would detect it. */
export async function startTap(port: number): Promise<Tap> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'tap' }], { keySize: 2048 })
  const context = createSecureContext({ cert, key })
  const [down, up]: [Buffer[], Buffer[]] = [[], []]
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  }
  const server = createServer((socket) => {
    const client = keep(socket)
    const target = keep(connectTcp(port, '127.0.0.1'))
    // A request and its answer in clear text, and then TLS. Each comes in one piece on loopback.
    client.once('data', (request) => {
      up.push(request)
      client.pause()
      target.write(request)
    })
    target.once('data', (answer) => {
      down.push(answer)
      target.pause()
      const inner = keep(connect({ socket: target, rejectUnauthorized: false }))
      const outer = keep(new TLSSocket(client, { isServer: true, secureContext: context }))
      client.write(answer)
      client.resume()
      join(outer, inner, up)
      join(inner, outer, down)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    down: () => Buffer.concat(down),
    up: () => Buffer.concat(up),
    stop: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function join(from: Socket, to: Socket, seen: Buffer[]): void {
  from.on('data', (chunk: Buffer) => {
    seen.push(chunk)
    if (!to.write(chunk)) {
      from.pause()
      to.once('drain', () => from.resume())
    }
  })
  from.on('end', () => to.end())
  from.on('close', () => to.destroy())
}
