/** Parses frames' payloads. Nothing here throws, since a recording may hold any bytes. */
import { TextDecoder } from 'node:util'
import { jsonText } from '../../../src/model/json-text.ts'
import { readVarint } from '../../container/format/varint.ts'

/** Parses a JSON payload. Returns undefined if it is malformed. */
export function jsonOf(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload))
  } catch {
    return undefined
  }
}

/** Upper limit of rows and columns, which keeps the input of other programs sane. */
export const MAX_SIDE = 10_000

export interface TerminalSize {
  columns: number
  rows: number
}

/** Parses a `resize` payload. Returns undefined if it is malformed. */
export function sizeOf(payload: Uint8Array): TerminalSize | undefined {
  const columns = readVarint(payload, 0, MAX_SIDE)
  const rows = columns && readVarint(payload, columns.offset, MAX_SIDE)
  return columns && rows && { columns: columns.value, rows: rows.value }
}

/** Parses an `inputWithheld` payload. Returns undefined if it is malformed. */
export function countOf(payload: Uint8Array): number | undefined {
  return readVarint(payload, 0)?.value
}

/** Returns a line of JSON that is also safe in a terminal. */
export function jsonLine(value: unknown): string {
  return `${jsonText(value)}\n`
}

/** UTF-8 decoders, one per stream, since a character may be cut between two frames. */
export class StreamDecoders {
  readonly #decoders = new Map<string, TextDecoder>()

  /** Decodes a piece; invalid bytes become U+FFFD. */
  decode(channel: number, type: number, payload: Uint8Array): string {
    const name = `${channel}/${type}`
    let decoder = this.#decoders.get(name)
    if (!decoder) {
      decoder = new TextDecoder('utf-8', { ignoreBOM: true })
      this.#decoders.set(name, decoder)
    }
    return decoder.decode(payload, { stream: true })
  }

  /** Ends all streams: returns U+FFFD for each stream that was cut within a character. */
  finish(): string {
    return [...this.#decoders.values()].map((decoder) => decoder.decode()).join('')
  }

  /** Removes the decoders of a closed channel. */
  close(channel: number): void {
    for (const name of this.#decoders.keys()) if (name.startsWith(`${channel}/`)) this.#decoders.delete(name)
  }
}
