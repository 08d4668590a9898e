/**
 * TCP's urgent data (RFC 9293 section 3.8.5), which Node's sockets do not support: Linux takes the urgent
 * byte out of the stream, and Node never reads it. The broker supplies the implementation.
 */
import type { Server, Socket } from 'node:net'

export interface UrgentData {
  /**
   * Keeps urgent bytes in the stream of this socket, which is connected and not yet read, or of every socket
   * that this listening server accepts.
   */
  keepInPlace(of: Server | Socket): void
  /**
   * Writes bytes of which the last is urgent. They are not urgent if earlier bytes still wait to be sent, or
   * through TLS.
   */
  write(socket: Socket, bytes: Uint8Array): void
  /** Whether the next read begins with an urgent byte. Called after each read. */
  isNext(socket: Socket): boolean
}

/** For systems without support: urgent bytes received are lost, and those sent are ordinary bytes. */
export const WITHOUT_URGENCY: UrgentData = {
  keepInPlace: () => undefined,
  write: (socket, bytes) => void socket.write(bytes),
  isNext: () => false,
}
