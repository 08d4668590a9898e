/** A server of accounting, as its sink (sink.ts) uses it. */
import type { ServerOrder } from '../identity/methods/servers.ts'
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

/** Asks the servers in order until one answers. Rejects with the reasons of all if none does. */
export async function firstOf<S, T>(
  order: ServerOrder<S>,
  ask: (server: S) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const reasons: string[] = []
  const answer = await order.first(
    async (server) => ({ of: await ask(server) }),
    (_server, error) => reasons.push(error.message),
    signal,
  )
  if (!answer) throw new Error(reasons.join('; ') || 'no server answered a moment ago')
  return answer.of
}

/** Returns the text with what could break a line of a server's log written out, as `\\u{a}`. */
export function plain(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  )
}

/** Returns the beginning of a text that fits, and no half character. */
export function short(text: string, bytes: number): string {
  if (text.length * 3 <= bytes) return text
  let kept = ''
  let used = 0
  for (const character of text) {
    used += Buffer.byteLength(character)
    if (used > bytes) break
    kept += character
  }
  return kept
}
