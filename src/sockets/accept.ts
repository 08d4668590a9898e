/**
 * Accepts TCP connections for the fronts, which get the handle of each: a front may be in this process or in a
 * session worker. No byte is read here.
 */
import { createServer, type Socket } from 'node:net'
import type { UrgentData } from '../contract/urgent-data.ts'

/** A TCP connection as the system has it. Its owner either makes a socket of it or closes it. */
export interface TcpHandle {
  /** The descriptor; negative once it is closed. */
  readonly fd: number
  /** Fills in the peer's address and port; returns an error number, or 0. See `claimPeer`. */
  getpeername: (into: { address?: string; port?: number }) => number
  close(): void
}

export interface ListenOptions {
  host: string
  port: number
  /** Present for protocols with urgent data. */
  urgent?: UrgentData
  onConnection: (handle: TcpHandle) => void
}

export interface Bound {
  address: string
  port: number
  /** Accepts no more connections. */
  close(): void
}

/** Resolves when the port is bound; rejects with the system's error. */
export function listenAt({ host, port, urgent, onConnection }: ListenOptions): Promise<Bound> {
  const server = createServer({ noDelay: true, keepAlive: true, pauseOnConnect: true }, (accepted) => {
    const handle = takeHandle(accepted)
    if (handle) onConnection(handle)
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      // Later errors come from accept(2), such as too many open files: they are temporary.
      server.on('error', () => undefined)
      const bound = server.address()
      if (bound === null || typeof bound === 'string') {
        reject(new Error('the listener has no address'))
        return
      }
      try {
        // Accepted sockets inherit the option from the listening one.
        urgent?.keepInPlace(server)
        resolve({ address: bound.address, port: bound.port, close: () => server.close() })
      } catch (error) {
        server.close()
        reject(error)
      }
    })
  })
}

/** Returns the socket's handle, or undefined if it is closed. The socket must not be used any more. */
export function takeHandle(socket: Socket): TcpHandle | undefined {
  const owner = socket as unknown as { _handle: TcpHandle | null }
  const handle = owner._handle
  owner._handle = null
  return handle ?? undefined
}
