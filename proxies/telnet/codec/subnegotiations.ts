/** The subnegotiations in use: window size (RFC 1073), terminal type (1091), environment (1572). */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { latin1 } from '../../bytes/text.ts'
import { uint16At, uint16Bytes } from '../../bytes/uint16.ts'

/** First byte of TTYPE and NEW-ENVIRON. */
const IS = 0
const SEND = 1
const INFO = 2

/** RFC 1091 section 4: at most 40 characters. */
export const TERMINAL_TYPE_LIMIT = 40

/** 0 if unknown. */
export interface WindowSize {
  columns: number
  rows: number
}

/** NAWS: uint16 columns, uint16 rows. */
export function parseWindowSize(body: Uint8Array): WindowSize {
  if (body.length !== 4) {
    throw new MalformedError(`telnet: a window size of 4 bytes was expected, found ${body.length} bytes`)
  }
  return { columns: uint16At(body, 0), rows: uint16At(body, 2) }
}

export function buildWindowSize({ columns, rows }: WindowSize): Uint8Array {
  return Uint8Array.of(...uint16Bytes(columns), ...uint16Bytes(rows))
}

/**
 * Returns the name of TTYPE IS in lower case, as in terminal databases, or undefined if it is empty or
 * invalid. Some clients send capital letters, as in RFC 930.
 */
export function parseTerminalType(body: Uint8Array): string | undefined {
  if (body[0] !== IS) throw new MalformedError('telnet: a terminal type was expected, found something else')
  const name = latin1(body.subarray(1))
  return TERMINAL_NAME.test(name) ? name.toLowerCase() : undefined
}

const TERMINAL_NAME = new RegExp(`^[A-Za-z0-9][A-Za-z0-9+._-]{0,${TERMINAL_TYPE_LIMIT - 1}}$`)

/** The request for the terminal type. */
export const TERMINAL_TYPE_SEND = Uint8Array.of(SEND)

export function asksForTerminalType(body: Uint8Array): boolean {
  return body.length === 1 && body[0] === SEND
}

/** Sends an invalid name as `unknown`, the name that RFC 1091 has for that. */
export function buildTerminalType(name: string): Uint8Array {
  return Buffer.from(`\0${TERMINAL_NAME.test(name) ? name : 'unknown'}`, 'latin1')
}

/** Codes of NEW-ENVIRON between names and values. */
const VAR = 0
const VALUE = 1
const ESC = 2
const USERVAR = 3

export const VARIABLE_LIMIT = 64

/** One character per byte; undefined if the variable has no value. */
export interface Variable {
  name: string
  value: string | undefined
}

/** Requests the well-known variable USER, and nothing else. */
export const ENVIRONMENT_SEND_USER = Uint8Array.of(SEND, VAR, ...Buffer.from('USER', 'latin1'))

/** Parses NEW-ENVIRON IS and INFO. */
export function parseEnvironment(body: Uint8Array): Variable[] {
  if (body[0] !== IS && body[0] !== INFO) {
    throw new MalformedError('telnet: an environment was expected, found something else')
  }
  const variables: Variable[] = []
  let at = 1
  while (at < body.length) {
    const code = body[at]
    const [text, end] = readText(body, at + 1)
    const last = variables.at(-1)
    if (code === VAR || code === USERVAR) variables.push({ name: text, value: undefined })
    else if (code === VALUE && last && last.value === undefined) last.value = text
    else throw new MalformedError(`telnet: a variable was expected at offset ${at}, found ${code}`)
    if (VARIABLE_LIMIT < variables.length) {
      throw new MalformedError(`telnet: at most ${VARIABLE_LIMIT} variables were expected, found more`)
    }
    at = end
  }
  return variables
}

/** Reads up to the next code; ESC makes the byte after it literal. */
function readText(body: Uint8Array, from: number): [text: string, end: number] {
  const bytes: number[] = []
  for (let at = from; ; at++) {
    let byte = body[at]
    if (byte === undefined || (byte <= USERVAR && byte !== ESC)) return [String.fromCharCode(...bytes), at]
    if (byte === ESC) byte = body[++at]
    if (byte === undefined) throw new MalformedError('telnet: a byte was expected after ESC, found the end')
    bytes.push(byte)
  }
}
