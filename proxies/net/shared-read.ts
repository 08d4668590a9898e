/**
 * Sockets that share one read buffer. Node allocates 64 KiB for each read; in bulk transfers the garbage
 * collector then takes a third of the relay's time, and delays other sessions. Each read is handled before
 * the next one, so one buffer serves all; code that keeps bytes has to copy them.
 */
import { Buffer } from 'node:buffer'
import { connect, type OnReadOpts, Socket, type TcpNetConnectOpts } from 'node:net'

/** Room before the read bytes, for bytes left over from the previous read. */
const HEADROOM = 64 * 1024
/** The most that one read takes: a read of fewer bytes has emptied the socket. */
export const READ_SIZE = 64 * 1024
const SHARED = Buffer.allocUnsafeSlow(HEADROOM + READ_SIZE)
const READ_BUFFER = SHARED.subarray(HEADROOM)

type Take = (view: Buffer) => void

/** The function that receives each socket's data; without one, the data is emitted as `data`, as a copy. */
const takers = new WeakMap<Socket, Take>()

/** Calls `take` from now on with the bytes that the socket reads: a view that the next read overwrites. */
export function takeReads(socket: Socket, take: Take): void {
  takers.set(socket, take)
}

/** Like `net.connect`. */
export function connectShared(options: TcpNetConnectOpts & { signal?: AbortSignal }): Socket {
  const socket: Socket = connect({ ...options, onread: readsOf(() => socket) })
  return socket
}

/**
 * Returns an accepted connection as a socket that reads into the shared buffer. `handle`: Node's own, which
 * nothing else reads.
 */
export function acceptShared(handle: object): Socket {
  const options = { handle, onread: readsOf(() => socket) }
  const socket: Socket = new Socket(options as object)
  return socket
}

/**
 * Joins leftover bytes and the view just read, in the shared buffer if there is room before the view: the
 * next read overwrites the result.
 */
export function prepended(before: Buffer, view: Buffer): Buffer {
  const begin = view.byteOffset - before.length
  if (view.buffer !== SHARED.buffer || begin < SHARED.byteOffset) return Buffer.concat([before, view])
  before.copy(SHARED, begin - SHARED.byteOffset)
  return SHARED.subarray(begin - SHARED.byteOffset, begin - SHARED.byteOffset + before.length + view.length)
}

function readsOf(socket: () => Socket): OnReadOpts {
  return {
    buffer: READ_BUFFER,
    callback: (bytes) => {
      const view = READ_BUFFER.subarray(0, bytes)
      const take = takers.get(socket())
      if (take) take(view)
      else socket().emit('data', Buffer.from(view))
      return true
    },
  }
}
