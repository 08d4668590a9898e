/** A target that shows a terminal and does with its connection what a test says. */
import { Buffer } from 'node:buffer'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { until } from '../until.ts'

export interface FalseTerminal {
  port: number
  /** All that has come on the last connection. */
  received(): Buffer
  /** The other end's port of each connection. */
  ports: number[]
  stop(): Promise<void>
}

/** What it does with a connection; `heard` waits until something has come. */
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
    // A connection that goes away in the middle is what some tests are about.
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
