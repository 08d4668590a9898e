/** The end of the handshake (RFC 6143 section 7.1.3), and the reasons of failures. */
import { Buffer } from 'node:buffer'
import { EndedError } from '../../bytes/ended.ts'
import { type Channel, readUint32, uint32 } from './channel.ts'
import { textOf } from './credentials.ts'
import { RESULT } from './numbers.ts'
import type { Version } from './version.ts'

/** Bytes of a reason that are read. */
export const MAX_REASON_BYTES = 4096

export function reasonBytes(reason: string): Buffer {
  const text = Buffer.from(reason, 'utf8')
  return Buffer.concat([uint32(text.length), text])
}

/** Encodes the SecurityResult of a failed sign-in: only 3.8 has a reason. */
export function failureBytes(version: Version, reason: string): Buffer {
  const failed = uint32(RESULT.FAILED)
  return version === 3.8 ? Buffer.concat([failed, reasonBytes(reason)]) : failed
}

/** Encodes a refused connection, in place of a list of security types. */
export function noTypesBytes(version: Version, reason: string): Buffer {
  return Buffer.concat([version === 3.3 ? uint32(0) : Buffer.from([0]), reasonBytes(reason)])
}

/**
 * Returns the server's reason for closing, or undefined if it sends none. A reason that is too long is cut.
 */
export async function readReason(channel: Channel): Promise<string | undefined> {
  try {
    const length = await readUint32(channel)
    return length === 0 ? undefined : textOf(await channel.read(Math.min(length, MAX_REASON_BYTES)))
  } catch (error) {
    // Some servers close without the reason that the version requires.
    if (error instanceof EndedError) return undefined
    throw error
  }
}
