/** PROXY headers ahead of a TLS server of Node's, which reads a connection from its event `connection` on. */
import { Socket } from 'node:net'
import type { Server } from 'node:tls'
import { takeHandle } from './accept.ts'
import type { ProxyHeaders } from './proxy-headers.ts'

/**
 * From now on the server's `connection` event comes when the header was read, with a socket that reports the client
 * as its peer; of connections that need no header as before.
 */
export function admitByHeader(server: Server, listener: string, headers: ProxyHeaders): void {
  const emit: (event: string | symbol, ...rest: unknown[]) => boolean = server.emit.bind(server)
  const admit = async (accepted: Socket): Promise<void> => {
    const handle = takeHandle(accepted)
    // The server counts the accepted socket, and closes when all of those are destroyed.
    const release = () => void accepted.destroy()
    const admitted = handle && (await headers.read(listener, handle))
    if (!admitted) {
      release()
      return
    }
    const { allowHalfOpen } = accepted
    const socket = new Socket({ handle: admitted, allowHalfOpen } as object)
    socket.once('close', release)
    emit('connection', socket)
  }
  server.emit = (event: string | symbol, ...rest: unknown[]): boolean => {
    const [accepted] = rest
    if (event !== 'connection' || !(accepted instanceof Socket)) return emit(event, ...rest)
    const { _handle: handle } = accepted as unknown as {
      _handle: Parameters<typeof headers.isExpected>[0] | null
    }
    if (!handle || !headers.isExpected(handle)) return emit(event, ...rest)
    void admit(accepted)
    return true
  }
}
