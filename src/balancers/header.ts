/**
 * The PROXY header (haproxy's doc/proxy-protocol.txt) by which a load balancer names the client of a connection
 * before the client's first byte. It is read in steps, each of which says how many bytes may be read next: never one
 * of those behind the header, which stay where they are for the protocol.
 */
import { Buffer } from 'node:buffer'
import { readBlock } from './block.ts'
import { ProxyHeaderError, type Reading } from './claim.ts'
import { readLine } from './line.ts'

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const WORD = Buffer.from('PROXY ', 'latin1')
/** `PROXY UNKNOWN` and its line end, the shortest header; one of version 2 has at least 16 bytes. */
export const SHORTEST = 15

/**
 * Reads what has come so far, from the first byte on.
 * @throws ProxyHeaderError for bytes that no valid header begins with
 */
export function readHeader(bytes: Buffer): Reading {
  if (isBegin(bytes, SIGNATURE)) return bytes.length < SHORTEST ? more(bytes, SHORTEST) : readBlock(bytes)
  if (isBegin(bytes, WORD)) return bytes.length < SHORTEST ? more(bytes, SHORTEST) : readLine(bytes)
  throw new ProxyHeaderError('missing', `expected a PROXY header, got ${shown(bytes)}`)
}

function more(bytes: Buffer, length: number): Reading {
  return { missing: length - bytes.length }
}

/** Whether one begins with the other. */
function isBegin(bytes: Buffer, begin: Buffer): boolean {
  const length = Math.min(bytes.length, begin.length)
  return bytes.compare(begin, 0, length, 0, length) === 0
}

/** Shows the first bytes: they are a stranger's, and may hold anything. */
function shown(bytes: Buffer): string {
  const [text] = /^[\x20-\x7e]*/.exec(bytes.toString('latin1', 0, SHORTEST))!
  return text === '' ? `the bytes ${bytes.toString('hex', 0, SHORTEST)}` : `"${text}"`
}
