/** Sends events to a syslog receiver: RFC 5424, with any of the formats in it, over UDP, TCP or TLS. */
import { readFileSync } from 'node:fs'
import { isIPv6, type Socket } from 'node:net'
import type { SyslogFormat, SyslogTarget } from '../../config/config.ts'
import { type After, type Connection, type ConnectionListener, type Sink, systemAfter } from '../sink.ts'
import { type SyslogOrigin, syslogMessage } from './formats/message.ts'
import { type Carrier, openStream } from './stream.ts'
import { openUdp } from './udp.ts'

export interface SyslogOptions {
  target: SyslogTarget
  origin: SyslogOrigin
  after?: After
  /**
   * Returns the bytes that a socket's peer has not acknowledged. Absent if this system does not report them.
   */
  unacknowledged?: ((socket: Socket) => number | undefined) | undefined
}

export class SyslogSink implements Sink {
  readonly type = 'syslog'
  readonly address: string
  readonly identity: string
  readonly #origin: SyslogOrigin
  readonly #format: SyslogFormat
  readonly #open: (listener: ConnectionListener) => Promise<Carrier>

  /** Throws if a file of a certificate or a key cannot be read. */
  constructor({ target, origin, after = systemAfter, unacknowledged }: SyslogOptions) {
    const { host, port, transport, format, ca, client } = target
    this.address = `${transport}://${isIPv6(host) ? `[${host}]` : host}:${port}`
    this.identity = `syslog ${this.address} ${format}`
    this.#origin = origin
    this.#format = format
    const tls = {
      ...(ca === undefined ? {} : { ca: readFileSync(ca, 'utf8') }),
      ...(client && { cert: readFileSync(client.certificate, 'utf8'), key: readFileSync(client.key) }),
    }
    const common = { host, port, after }
    const stream = { ...common, ...(unacknowledged && { unacknowledged }) }
    this.#open =
      transport === 'udp'
        ? (listener) => openUdp(common, listener)
        : (listener) => openStream(transport === 'tls' ? { ...stream, tls } : stream, listener)
  }

  wants(): boolean {
    return true
  }

  async connect(listener: ConnectionListener): Promise<Connection> {
    const carrier = await this.#open(listener)
    return {
      send: (events) =>
        carrier.send(
          events.map((event) => ({
            sequence: event.sequence,
            bytes: syslogMessage(event, this.#origin, this.#format),
          })),
        ),
      close: () => carrier.close(),
    }
  }
}
