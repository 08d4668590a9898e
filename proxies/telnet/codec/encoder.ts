/** Builds Telnet's bytes: data with its IACs doubled, commands, negotiations, subnegotiations. */
import { Buffer } from 'node:buffer'
import { COMMAND, type Verb } from './numbers.ts'

const { IAC, SB, SE } = COMMAND

/** Doubles each IAC; returns the same bytes if there is none. */
export function escapeData(bytes: Uint8Array): Uint8Array {
  const first = bytes.indexOf(IAC)
  if (first < 0) return bytes
  const escaped = Buffer.allocUnsafe(bytes.length * 2 - first)
  escaped.set(bytes.subarray(0, first))
  let to = first
  for (let at = first; at < bytes.length; at++) {
    const byte = bytes[at]!
    escaped[to++] = byte
    if (byte === IAC) escaped[to++] = IAC
  }
  return escaped.subarray(0, to)
}

export function buildCommand(code: number): Uint8Array {
  return Uint8Array.of(IAC, code)
}

export function buildNegotiation(verb: Verb, option: number): Uint8Array {
  return Uint8Array.of(IAC, verb, option)
}

export function buildSubnegotiation(option: number, body: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(IAC, SB, option), escapeData(body), Uint8Array.of(IAC, SE)])
}
