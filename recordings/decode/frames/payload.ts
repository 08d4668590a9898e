/** What stands in frames' payloads. A recording may hold anything: nothing here throws. */
import { TextDecoder } from 'node:util'
import { jsonText } from '../../../src/model/json-text.ts'
import { readVarint } from '../../container/format/varint.ts'

/** A JSON payload; undefined when it is none. */
export function jsonOf(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload))
  } catch {
    return undefined
  }
}

/** Rows and columns are at most this: what an exporter hands to other programs stays sane. */
export const MAX_SIDE = 10_000

export interface TerminalSize {
  columns: number
  rows: number
}

/** A `resize` payload; undefined when it is malformed. */
export function sizeOf(payload: Uint8Array): TerminalSize | undefined {
  const columns = readVarint(payload, 0, MAX_SIDE)
  const rows = columns && readVarint(payload, columns.offset, MAX_SIDE)
  return columns && rows && { columns: columns.value, rows: rows.value }
}

/** An `inputWithheld` payload; undefined when it is malformed. */
export function countOf(payload: Uint8Array): number | undefined {
  return readVarint(payload, 0)?.value
}

/** A line of JSON that is harmless in a terminal, too. */
export function jsonLine(value: unknown): string {
  return `${jsonText(value)}\n`
}

/** UTF-8 decoders, one a stream, for a character may be cut between two frames. */
export class StreamDecoders {
  readonly #decoders = new Map<string, TextDecoder>()

  /** The text of this piece; bytes that are no UTF-8 become U+FFFD. */
  decode(channel: number, type: number, payload: Uint8Array): string {
    const name = `${channel}/${type}`
    let decoder = this.#decoders.get(name)
    if (!decoder) {
      decoder = new TextDecoder('utf-8', { ignoreBOM: true })
      this.#decoders.set(name, decoder)
    }
    return decoder.decode(payload, { stream: true })
  }

  /** Ends all streams: U+FFFD for each that was cut in the middle of a character. */
  finish(): string {
    return [...this.#decoders.values()].map((decoder) => decoder.decode()).join('')
  }

  /** Forgets a channel that is closed. */
  close(channel: number): void {
    for (const name of this.#decoders.keys()) if (name.startsWith(`${channel}/`)) this.#decoders.delete(name)
  }
}
