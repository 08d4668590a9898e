/** A target with a terminal that does with its connection as a test directs. */
import { Buffer } from 'node:buffer'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { until } from '../until.ts'

export interface FalseTerminal {
  port: number
  /** Returns all data of the last connection. */
  received(): Buffer
  /** The remote port of each connection. */
  ports: number[]
  stop(): Promise<void>
}

/** Handles a connection; `heard` waits until the text has come. */
export type Manner = (socket: Socket, heard: (text: string) => Promise<unknown>) => unknown

export async function startFalseTerminal(manner: Manner): Promise<FalseTerminal> {
  const sockets = new Set<Socket>()
  const ports: number[] = []
  let chunks: Buffer[] = []
  const received = () => Buffer.concat(chunks)
  const server = createServer((socket) => {
    sockets.add(socket)
    ports.push(socket.remotePort ?? 0)
    const own: Buffer[] = []
    chunks = own
    socket.on('data', (chunk: Buffer) => own.push(chunk))
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    const heard = (text: string) => until(text, () => Buffer.concat(own).includes(text) || undefined)
    // Some tests are about a connection that breaks.
    Promise.resolve(manner(socket, heard)).catch(() => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    received,
    ports,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
