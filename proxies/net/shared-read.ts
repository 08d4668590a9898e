/**
 * Sockets that all read into one buffer. Node allocates 64 KiB for each read; at bulk the garbage collector then
 * takes a third of the relay's time, and makes other sessions wait. What is read is dealt with before the next
 * read, so one buffer serves them all; who keeps any of it has to copy it.
 */
import { Buffer } from 'node:buffer'
import { connect, type OnReadOpts, Socket, type TcpNetConnectOpts } from 'node:net'

/** Before what is read there is room for what had come before it. */
const HEADROOM = 64 * 1024
const SHARED = Buffer.allocUnsafeSlow(HEADROOM + 64 * 1024)
const READ_BUFFER = SHARED.subarray(HEADROOM)

type Take = (view: Buffer) => void

/** What takes each socket's data; without one it is emitted as `data`, as a copy. */
const takers = new WeakMap<Socket, Take>()

/** From now on `take` is called with what the socket reads: a view that the next read overwrites. */
export function takeReads(socket: Socket, take: Take): void {
  takers.set(socket, take)
}

/** As `net.connect`. */
export function connectShared(options: TcpNetConnectOpts & { signal?: AbortSignal }): Socket {
  const socket: Socket = connect({ ...options, onread: readsOf(() => socket) })
  return socket
}

/**
 * The accepted connection as a socket that reads into the shared buffer. The server must have been made with
 * `pauseOnConnect`, and the socket that it gave must not be used any more.
 */
export function acceptShared(accepted: Socket): Socket {
  // Node can only be told where to read when a socket is made: a new one takes over the accepted one's handle.
  const owner = accepted as unknown as { _handle: object | null }
  const handle = owner._handle
  owner._handle = null
  const options = { handle, onread: readsOf(() => socket) }
  const socket: Socket = new Socket(options as object)
  return socket
}

/** What came before, and the view that was just read, in one: where both are the next read writes again. */
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
