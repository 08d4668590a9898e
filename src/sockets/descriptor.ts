import type { Server, Socket } from 'node:net'

/**
 * Returns the descriptor, which Node does not publish, or undefined if the socket is closed or not connected
 * yet.
 */
export function descriptorOf(of: Server | Socket): number | undefined {
  const { _handle: handle } = of as unknown as { _handle?: { fd?: number } | null }
  const descriptor = handle?.fd
  return descriptor !== undefined && descriptor >= 0 ? descriptor : undefined
}
