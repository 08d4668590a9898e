/** Connects from a local port below 1024, which only privileged programs may use: hosts that trust others ask for it. */
import { connect } from 'node:net'
import { type TcpHandle, takeHandle } from './accept.ts'

const [LOWEST, HIGHEST] = [512, 1023]
/** The port is in use, by a listener or by a connection to the same address that has just closed. */
const TAKEN: ReadonlySet<string | undefined> = new Set(['EADDRINUSE', 'EADDRNOTAVAIL'])

/** No local port is free. */
export class NoPortError extends Error {
  override readonly name = 'NoPortError'
}

/** Nothing of the connection is read. Rejects with the system's error, NoPortError, or an error after the time. */
export async function connectPrivileged(host: string, port: number, timeoutMs: number): Promise<TcpHandle> {
  const until = performance.now() + timeoutMs
  for (let from = HIGHEST; from >= LOWEST; from--) {
    try {
      return await connectFrom(from, host, port, Math.max(1, until - performance.now()))
    } catch (error) {
      if (!TAKEN.has((error as NodeJS.ErrnoException).code)) throw error
    }
  }
  throw new NoPortError(`no local port from ${LOWEST} to ${HIGHEST} is free`)
}

function connectFrom(localPort: number, host: string, port: number, timeoutMs: number): Promise<TcpHandle> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, localPort, noDelay: true })
    // Otherwise it reads ahead.
    socket.pause()
    const late = () => socket.destroy(new Error(`no answer in ${Math.round(timeoutMs / 1000)} s`))
    const timer = setTimeout(late, timeoutMs)
    socket.once('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    socket.once('connect', () => {
      clearTimeout(timer)
      const handle = takeHandle(socket)
      if (handle) resolve(handle)
      else reject(new Error('the connection was closed at once'))
    })
  })
}
