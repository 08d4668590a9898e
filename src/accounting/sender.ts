/** A server of accounting, as its sink (sink.ts) uses it. */
import type { AccountingRecord } from './record.ts'

export interface AccountingSender {
  /** Kinds of records that the server gets. */
  readonly kinds: readonly AccountingRecord['kind'][]
  /** Resolves when one of the servers can be asked. Rejects with the reason if none can. */
  reach(signal: AbortSignal): Promise<void>
  /**
   * Resolves when a server has confirmed the record. Rejects with `RecordRefused` if one answered that it does not take
   * it, and with any other error if none answered. A record may be sent again, after a hard stop or a lost answer.
   */
  send(record: AccountingRecord, signal: AbortSignal): Promise<void>
  /** Closes the connections; the servers may be reached again later. */
  close(): Promise<void>
}

/** An answer of the server: it does not take this record. */
export class RecordRefused extends Error {}
