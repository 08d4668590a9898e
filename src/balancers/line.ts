/** Version 1: `PROXY TCP4 CLIENT HERE CLIENT-PORT PORT` and a line end. */
import type { Buffer } from 'node:buffer'
import { isIPv4, isIPv6 } from 'node:net'
import { sameAddress } from '../model/networks.ts'
import { malformed, type Reading } from './claim.ts'

/** Bytes of the longest line. */
const MAX_LINE = 107
const BEGIN = /^PROXY (?:TCP[46] |UNKNOWN[ \r])/
const LINE = /^PROXY TCP([46]) ([0-9A-Fa-f.:]+) ([0-9A-Fa-f.:]+) (0|[1-9][0-9]{0,4}) (0|[1-9][0-9]{0,4})\r\n$/
/** Text behind the word is not read. */
const UNKNOWN = /^PROXY UNKNOWN(?: [^\r\n]*)?\r\n$/
/** Separators of a line that names addresses. */
const SPACES = 5
const MAX_PORT = 65_535

/**
 * Reads a line of which the first 15 bytes are there.
 * @throws ProxyHeaderError
 */
export function readLine(bytes: Buffer): Reading {
  const line = bytes.toString('latin1')
  if (!BEGIN.test(line)) throw malformed('neither TCP4, TCP6 nor UNKNOWN behind PROXY')
  if (!line.endsWith('\r\n')) {
    if (/\n|\r./s.test(line)) throw malformed('a line end within the line')
    if (bytes.length >= MAX_LINE) throw malformed(`a line of more than ${MAX_LINE} bytes`)
    return { missing: Math.min(leastRest(line), MAX_LINE - bytes.length) }
  }
  if (UNKNOWN.test(line)) return { claim: { client: undefined } }
  const [, family, client = '', here = '', port = '', ownPort = ''] = LINE.exec(line) ?? []
  const isAddress = family === '4' ? isIPv4 : isIPv6
  if (family === undefined || !isAddress(client) || !isAddress(here))
    throw malformed('a line without addresses')
  if (Math.max(Number(port), Number(ownPort)) > MAX_PORT) throw malformed(`a port above ${MAX_PORT}`)
  return { claim: { client: { address: sameAddress(client), port: Number(port) } } }
}

/** Returns the fewest bytes that can complete the line. */
function leastRest(line: string): number {
  if (line.endsWith('\r')) return 1
  if (!line.startsWith('PROXY TCP')) return 2
  const spaces = line.split(' ').length - 1
  // Each field that is still to come has a separator and a character.
  return 2 * Math.max(0, SPACES - spaces) + (line.endsWith(' ') ? 1 : 0) + 2
}
