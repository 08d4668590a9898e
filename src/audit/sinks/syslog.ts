/** Events to a syslog receiver: RFC 5424 over UDP, TCP or TLS. */
import { readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import type { SyslogTarget } from '../../config/config.ts'
import type { StoredEvent } from '../chain.ts'
import { type After, type Sink, type SinkDown, systemAfter } from '../sink.ts'
import { rfc5424, type SyslogOrigin } from './rfc5424.ts'
import { StreamSender } from './stream.ts'
import { UdpSender } from './udp.ts'

/** Carries messages to one receiver. */
export interface Sender {
  send(message: Buffer): void
  readonly queued: number
  readonly lost: number
  close(): Promise<void>
}

export interface SyslogOptions {
  target: SyslogTarget
  origin: SyslogOrigin
  onDown: SinkDown
  after?: After
}

export class SyslogSink implements Sink {
  readonly type = 'syslog'
  readonly address: string
  readonly #sender: Sender
  readonly #origin: SyslogOrigin

  /** Begins to connect. Throws when the certificate file of `ca` cannot be read. */
  constructor({ target, origin, onDown, after = systemAfter }: SyslogOptions) {
    const { host, port, transport, ca } = target
    this.address = `${transport}://${isIPv6(host) ? `[${host}]` : host}:${port}`
    this.#origin = origin
    const common = { host, port, after, onDown: (reason: string) => onDown(this, reason) }
    const trusted = ca === undefined ? {} : { ca: readFileSync(ca, 'utf8') }
    this.#sender =
      transport === 'udp'
        ? new UdpSender(common)
        : new StreamSender(transport === 'tls' ? { ...common, tls: trusted } : common)
  }

  get queued(): number {
    return this.#sender.queued
  }

  get lost(): number {
    return this.#sender.lost
  }

  send(event: StoredEvent): void {
    this.#sender.send(rfc5424(event, this.#origin))
  }

  close(): Promise<void> {
    return this.#sender.close()
  }
}
