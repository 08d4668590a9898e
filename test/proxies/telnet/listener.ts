/**
 * Telnet's server end behind the listener of a front, for real clients: it echoes the input, and keeps the
 * events.
 */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { Arrivals } from '../../../proxies/net/arrivals.ts'
import { takeReads } from '../../../proxies/net/shared-read.ts'
import { TelnetEndpoint } from '../../../proxies/telnet/codec/endpoint.ts'
import type { UrgentData } from '../../../src/contract/urgent-data.ts'
import { listening } from '../listening.ts'
import { type Event, keep } from '../stream-events.ts'

export interface EchoServer {
  port: number
  /** The events of all connections. */
  events: Event[]
  /** Returns all input, one character for each byte. */
  typed(): string
  /** Returns the endpoint of the latest connection. */
  endpoint(): TelnetEndpoint
  close(): void
}

export async function startEchoServer(urgent: UrgentData): Promise<EchoServer> {
  const events: Event[] = []
  let typed = ''
  let last: TelnetEndpoint | undefined

  const welcome = (socket: Socket) => {
    const write = (bytes: Uint8Array) => void socket.write(bytes)
    const endpoint = new TelnetEndpoint({
      role: 'server',
      now: () => performance.now(),
      write,
      writeUrgent: (bytes) => urgent.write(socket, bytes),
      visitor: {
        data: (bytes) => {
          const text = Buffer.from(bytes).toString('latin1')
          typed += text
          endpoint.send(Buffer.from(text.replaceAll('\r', '\r\n'), 'latin1'))
        },
        command: (code) => keep(events, 'command', code),
        option: (side, option, isOn) => keep(events, 'option', side, option, isOn),
        windowSize: (size) => keep(events, 'windowSize', size),
        terminalType: (name) => keep(events, 'terminalType', name),
        environment: (variables) => keep(events, 'environment', variables),
      },
    })
    last = endpoint
    takeReads(socket, (view) => endpoint.receive(view))
    socket.on('end', () => socket.destroy())
    socket.resume()
    endpoint.start()
    endpoint.send(Buffer.from('welcome\r\n'))
  }

  const arrivals = new Arrivals({ graceMs: 60_000, onSocket: welcome })
  const bound = await listening(arrivals, urgent)
  const { port } = bound
  return {
    port,
    events,
    typed: () => typed,
    endpoint: () => last!,
    close: () => {
      bound.close()
      arrivals.close()
      arrivals.destroy()
    },
  }
}
