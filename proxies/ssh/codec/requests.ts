/**
 * The type-specific data of channel requests (RFC 4254 section 6). Each parser reads the data of a
 * ChannelRequest and throws MalformedError, also if bytes remain.
 */
import { latin1 } from '../../bytes/text.ts'
import { Reader } from './reader.ts'

/** Terminal names in use have under 32 characters; this is a bound, not a rule. */
const TERMINAL_NAME_LIMIT = 256
/** RFC 4254 section 8 defines under 160 opcodes of 5 bytes each. */
const TERMINAL_MODES_LIMIT = 4096

export interface PtyRequest {
  /** The exact bytes, one character each. */
  terminal: string
  columns: number
  rows: number
  widthPixels: number
  heightPixels: number
  /** Encoded terminal modes (section 8), unchanged. */
  modes: Uint8Array
}

/** string TERM, uint32 columns, uint32 rows, uint32 width, uint32 height, string modes (6.2). */
export function parsePtyRequest(data: Uint8Array): PtyRequest {
  const reader = new Reader(data, 'pty-req')
  const request = {
    terminal: latin1(reader.string(TERMINAL_NAME_LIMIT)),
    columns: reader.uint32(),
    rows: reader.uint32(),
    widthPixels: reader.uint32(),
    heightPixels: reader.uint32(),
    modes: reader.string(TERMINAL_MODES_LIMIT),
  }
  reader.end()
  return request
}

export interface WindowChange {
  columns: number
  rows: number
  widthPixels: number
  heightPixels: number
}

/** uint32 columns, uint32 rows, uint32 width in pixels, uint32 height in pixels (6.7). */
export function parseWindowChange(data: Uint8Array): WindowChange {
  const reader = new Reader(data, 'window-change')
  const change = {
    columns: reader.uint32(),
    rows: reader.uint32(),
    widthPixels: reader.uint32(),
    heightPixels: reader.uint32(),
  }
  reader.end()
  return change
}

/** string command (6.5): the bytes for the target's shell. */
export function parseExec(data: Uint8Array): Uint8Array {
  return onlyString(data, 'exec')
}

/** string subsystem name (6.5), byte for byte. */
export function parseSubsystem(data: Uint8Array): Uint8Array {
  return onlyString(data, 'subsystem')
}

/** string signal name without "SIG" (6.9). */
export function parseSignal(data: Uint8Array): string {
  return latin1(onlyString(data, 'signal'))
}

/** string variable name, string variable value (6.4). */
export function parseEnv(data: Uint8Array): { name: string; value: Uint8Array } {
  const reader = new Reader(data, 'env')
  const variable = { name: latin1(reader.string()), value: reader.string() }
  reader.end()
  return variable
}

/** uint32 exit status (6.10). */
export function parseExitStatus(data: Uint8Array): number {
  const reader = new Reader(data, 'exit-status')
  const status = reader.uint32()
  reader.end()
  return status
}

/** string signal name without "SIG", boolean core dumped, string message (UTF-8), string language tag (6.10). */
export function parseExitSignal(data: Uint8Array): {
  signal: string
  coreDumped: boolean
  message: Uint8Array
} {
  const reader = new Reader(data, 'exit-signal')
  const exit = { signal: reader.name(), coreDumped: reader.boolean(), message: reader.string() }
  reader.string()
  reader.end()
  return exit
}

function onlyString(data: Uint8Array, what: string): Uint8Array {
  const reader = new Reader(data, what)
  const value = reader.string()
  reader.end()
  return value
}
