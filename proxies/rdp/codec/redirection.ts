/** Server Redirection (MS-RDPBCGR 2.2.13.1): a farm redirects the client to another of its servers. */

import { latin1 } from '../../bytes/text.ts'
import { ByteReader } from './reader.ts'
import { untilNul, utf16Text } from './utf16.ts'

/** SEC_REDIRECTION_PKT. */
const REDIRECTION = 0x0400
const FIELD_LIMIT = 4096

/** RedirFlags: the fields present, in their order, and LB_NOREDIRECT. */
const FLAG = {
  targetAddress: 0x1,
  loadBalanceInfo: 0x2,
  login: 0x4,
  domain: 0x8,
  password: 0x10,
  noRedirect: 0x80,
} as const

export interface Redirection {
  session: number
  /** The redirection is for a later reconnection: the client stays connected. */
  isInformational?: true
  /** Address of the server to connect to. */
  address?: string
  /** First line of the next connection request, including CR LF. */
  routingToken?: string
  login?: string
  domain?: string
  /** A password, or a cookie in its place. */
  password?: Uint8Array
}

/** Parses the bytes after the share control header of a serverRedirection PDU. Ignores further fields. */
export function parseRedirection(body: Uint8Array): Redirection {
  const reader = new ByteReader(body, 'server redirection')
  reader.skip(2)
  reader.expect('flags', reader.uint16(), REDIRECTION)
  reader.skip(2)
  const session = reader.uint32()
  const flags = reader.uint32()
  const redirection: Redirection = { session }
  if (flags & FLAG.noRedirect) redirection.isInformational = true
  const field = (flag: number): Uint8Array | undefined => {
    if (!(flags & flag)) return undefined
    const length = reader.uint32()
    if (FIELD_LIMIT < length)
      reader.fail(`a field of at most ${FIELD_LIMIT} bytes was expected, found ${length}`)
    return reader.bytes(length)
  }
  const text = (bytes: Uint8Array | undefined) => (bytes ? untilNul(utf16Text(bytes)) : undefined)
  const address = text(field(FLAG.targetAddress))
  const token = field(FLAG.loadBalanceInfo)
  const login = text(field(FLAG.login))
  const domain = text(field(FLAG.domain))
  const password = field(FLAG.password)
  if (address !== undefined) redirection.address = address
  if (token) redirection.routingToken = latin1(token)
  if (login !== undefined) redirection.login = login
  if (domain !== undefined) redirection.domain = domain
  if (password) redirection.password = password
  return redirection
}
