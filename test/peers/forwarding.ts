/** Both ends of forwarded connections: listeners that echo, clients that send, and an ssh that only forwards. */
import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net'
import type { Home, Login } from './home.ts'
import { sshArguments } from './openssh.ts'
import { type Daemon, startDaemon } from './process.ts'
import { findProgram } from './program.ts'

export interface Listener {
  /** TCP port; 0 for a Unix socket. */
  port: number
  /** Connections accepted since the start. */
  readonly accepted: number
  stop(): void
}

/** Echoes received data, and its end: `path` for a Unix socket, else a port of 127.0.0.1. */
export async function startEcho(path?: string): Promise<Listener> {
  const sockets = new Set<Socket>()
  let accepted = 0
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted++
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.pipe(socket)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    if (path === undefined) server.listen(0, '127.0.0.1', resolve)
    else server.listen(path, resolve)
  })
  const address = server.address()
  return {
    port: address !== null && typeof address === 'object' ? address.port : 0,
    get accepted() {
      return accepted
    },
    stop: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/**
 * Connects, sends, closes its own direction, and resolves to all received data up to the other's end. With
 * several pieces, each is sent after the answer to the one before.
 */
export function exchange(
  to: NetConnectOpts,
  data: Uint8Array | string | Uint8Array[],
  timeoutMs = 15_000,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...to, allowHalfOpen: true })
    const received: Buffer[] = []
    const timer = setTimeout(() => socket.destroy(new Error('no end came in time')), timeoutMs)
    socket.on('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    const pieces = Array.isArray(data) ? [...data] : [data]
    const sendNext = (): void => {
      const next = pieces.shift()
      if (next === undefined) return
      if (pieces.length === 0) socket.end(next)
      else socket.write(next)
    }
    socket.on('data', (piece) => {
      received.push(piece)
      sendNext()
    })
    socket.on('end', () => {
      clearTimeout(timer)
      socket.destroy()
      resolve(Buffer.concat(received))
    })
    socket.on('connect', sendNext)
  })
}

/** Whether a connection is accepted. */
export function isListening(to: NetConnectOpts): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(to)
    const done = (taken: boolean) => () => {
      socket.destroy()
      resolve(taken)
    }
    socket.on('error', done(false))
    socket.on('connect', done(true))
  })
}

/** Starts `ssh -N FLAGS`, ready when `ready` returns true; ends if a forwarding fails. */
export function startForwarding(
  home: Home,
  login: Login,
  flags: string[],
  ready: RegExp | (() => boolean | Promise<boolean>),
  env: NodeJS.ProcessEnv = {},
): Promise<Daemon> {
  const options = ['ExitOnForwardFailure=yes', 'StreamLocalBindUnlink=yes', 'LogLevel=VERBOSE']
  const args = [
    '-N',
    ...flags,
    ...sshArguments(home, { ...login, options: [...(login.options ?? []), ...options] }),
  ]
  return startDaemon(findProgram('ssh'), args, ready, { env: { ...home.env(login.password), ...env } })
}
