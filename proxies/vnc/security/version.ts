/** ProtocolVersion (RFC 6143 section 7.1.1): the first message of either side. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { latin1 } from '../../bytes/text.ts'

/** The published versions. */
export type Version = 3.3 | 3.7 | 3.8

export const VERSION_BYTES = 12

export function versionBytes(version: Version): Buffer {
  return Buffer.from(`RFB 003.00${String(version).slice(2)}\n`, 'latin1')
}

/**
 * Returns the highest published version that the peer supports: others (Apple's 3.889, RealVNC's 4 and 5,
 * UltraVNC's 3.6) count as the next lower one. Throws MalformedError.
 */
export function parseVersion(bytes: Uint8Array): Version {
  const [, major, minor] = /^RFB (\d{3})\.(\d{3})\n$/.exec(latin1(bytes)) ?? []
  if (major === undefined || Number(major) < 3) {
    throw new MalformedError(`vnc: "RFB 003.008" was expected, found ${JSON.stringify(latin1(bytes))}`)
  }
  if (Number(major) > 3 || Number(minor) > 7) return 3.8
  return Number(minor) === 7 ? 3.7 : 3.3
}
