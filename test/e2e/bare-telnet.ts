/** A Telnet client without a terminal, which sends and reads as a test directs. */
import { Buffer } from 'node:buffer'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { TelnetEndpoint } from '../../proxies/telnet/codec/endpoint.ts'
import { until } from '../until.ts'

export interface BareOptions {
  port: number
  /** Source address: 127.0.0.2 and so on are different clients. */
  from?: string
  /** Connect inside TLS, with this certificate. */
  certificate?: Buffer
  /** An existing connection for TLS, instead of a new one. */
  over?: Socket
}

export interface BareTelnet {
  socket: Socket
  /** Sends the bytes without escaping. */
  raw(bytes: Uint8Array): void
  /** Sends typed text; Enter is `\r`. */
  type(data: string | Uint8Array): void
  /** Returns all received bytes, one character for each. */
  shown(): string
  /** Waits for the text, some seconds or `withinMs`. */
  sees(text: string, withinMs?: number): Promise<void>
  /** Waits until the other side has closed. */
  closed(): Promise<void>
  isClosed(): boolean
}

const open: Socket[] = []

/** Closes the sockets of a test. */
export function hangUp(): void {
  for (const socket of open.splice(0)) socket.destroy()
}

export async function bareTelnet({ port, from, certificate, over }: BareOptions): Promise<BareTelnet> {
  const to = { host: '127.0.0.1', port, ...(from !== undefined && { localAddress: from }) }
  // The self-signed certificate names the host, not this address.
  const socket = certificate
    ? connectTls({ ...(over ? { socket: over } : to), ca: certificate, checkServerIdentity: () => undefined })
    : connect(to)
  open.push(socket)
  let shown = ''
  let isClosed = false
  const endpoint = new TelnetEndpoint({
    role: 'client',
    terminalType: 'xterm',
    windowSize: { columns: 132, rows: 43 },
    now: () => performance.now(),
    write: (bytes) => void socket.write(bytes),
    writeUrgent: (bytes) => void socket.write(bytes),
    visitor: {
      data: (bytes) => {
        shown += Buffer.from(bytes).toString('latin1')
      },
      command: () => undefined,
    },
  })
  socket.on('data', (bytes) => endpoint.receive(bytes))
  socket.on('close', () => {
    isClosed = true
  })
  await new Promise<void>((resolve, reject) => {
    socket.once(certificate ? 'secureConnect' : 'connect', resolve)
    socket.once('error', reject)
  })
  socket.on('error', () => undefined)
  return {
    socket,
    raw: (bytes) => void socket.write(bytes),
    type: (data) => endpoint.send(Buffer.from(data as Uint8Array)),
    shown: () => shown,
    sees: async (text, withinMs) => {
      await until(
        () => `${JSON.stringify(text)}; came: ${JSON.stringify(shown.slice(-2000))}`,
        () => shown.includes(text) || undefined,
        withinMs,
      )
    },
    closed: async () => {
      await until(
        () => `the end; came: ${JSON.stringify(shown.slice(-2000))}`,
        () => isClosed || undefined,
      )
    },
    isClosed: () => isClosed,
  }
}
