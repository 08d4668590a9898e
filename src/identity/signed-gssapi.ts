/** The data that a client signs for gssapi-with-mic (RFC 4462 3.5). */
import { Buffer } from 'node:buffer'

const USERAUTH_REQUEST = 50
/** Longest session identifier: a SHA-512. */
const MAX_SESSION_ID = 64
/** Shortest one: a SHA-1 of old key exchanges. */
const MIN_SESSION_ID = 20

/**
 * Returns whether the data is about a sign-in of this login string on some connection:
 *
 *     string    session identifier
 *     byte      SSH_MSG_USERAUTH_REQUEST
 *     string    user name
 *     string    service
 *     string    "gssapi-with-mic"
 */
export function isSignedGssapi(data: Uint8Array, login: string): boolean {
  const bytes = Buffer.from(data)
  const length = bytes.length < 4 ? 0 : bytes.readUInt32BE()
  if (length < MIN_SESSION_ID || MAX_SESSION_ID < length) return false
  const request = Buffer.concat([
    Buffer.from([USERAUTH_REQUEST]),
    ...[login, 'ssh-connection', 'gssapi-with-mic'].map(sized),
  ])
  return request.equals(bytes.subarray(4 + length))
}

function sized(text: string): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(Buffer.byteLength(text))
  return Buffer.concat([length, Buffer.from(text)])
}
