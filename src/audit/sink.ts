/** What a receiver of events looks like to the audit log. */
import type { StoredEvent } from './chain.ts'

export interface Sink {
  readonly type: 'log' | 'syslog' | 'snmp'
  /** For people: `syslog tcp://siem:514`. */
  readonly address: string
  /** Takes the event and returns at once; never throws. */
  send(event: StoredEvent): void
  /** Messages that wait for the receiver. */
  readonly queued: number
  /** Messages that were given up since the start. */
  readonly lost: number
  /** Sends what can still be sent within a moment, and frees what it holds. */
  close(): Promise<void>
}

/** Called once when a sink's receiver cannot be reached, and again only after it was back. */
export type SinkDown = (sink: Pick<Sink, 'type' | 'address'>, reason: string) => void
