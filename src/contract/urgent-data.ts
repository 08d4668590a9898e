/**
 * TCP's urgent data (RFC 9293 section 3.8.5), which Node's sockets do not know: Linux takes the urgent byte out of what
 * a program reads, and Node never asks for it. The broker hands this in.
 */
import type { Server, Socket } from 'node:net'

export interface UrgentData {
  /**
   * Urgent bytes are read in their place among the others: by this socket, which is connected and has not been read,
   * or by all that this listening server accepts.
   */
  keepInPlace(of: Server | Socket): void
  /** Writes bytes of which the last is urgent; where others still wait to be sent, or through TLS, without urgency. */
  write(socket: Socket, bytes: Uint8Array): void
  /** Asked after each read: whether the next one begins with an urgent byte. */
  isNext(socket: Socket): boolean
}

/** Where the system offers no way: urgent bytes of others are lost, and ours are like the rest. */
export const WITHOUT_URGENCY: UrgentData = {
  keepInPlace: () => undefined,
  write: (socket, bytes) => void socket.write(bytes),
  isNext: () => false,
}
