/** The connection as a handshake sees it, independent of its transport. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import type { FrameOpener, FrameSealer } from './frames.ts'

/** The server's identity in TLS: none (anonymous Diffie-Hellman), or a certificate. */
export type TlsIdentity = 'anonymous' | 'certificate'

export interface Channel {
  /**
   * Returns exactly so many bytes, which belong to the caller. Rejects with EndedError if the peer closes
   * before.
   */
  read(bytes: number): Promise<Buffer>
  write(bytes: Uint8Array): void
  /** Puts all further bytes in frames of RA2, in both directions. */
  startFrames(sealer: FrameSealer, opener: FrameOpener): void
}

export interface ServerChannel extends Channel {
  /** Resolves after the TLS handshake; rejects with EndedError. */
  startTls(identity: TlsIdentity): Promise<unknown>
}

export interface ClientChannel extends Channel {
  /** Returns the server's certificate (DER), unchecked, or undefined if it has shown none. */
  startTls(identity: TlsIdentity): Promise<Uint8Array | undefined>
}

export async function readUint8(channel: Channel): Promise<number> {
  return (await channel.read(1))[0]!
}

export async function readUint16(channel: Channel): Promise<number> {
  return (await channel.read(2)).readUInt16BE()
}

export async function readUint32(channel: Channel): Promise<number> {
  return (await channel.read(4)).readUInt32BE()
}

/** Reads a length of four bytes, and as many bytes. `what` is for the error. Throws MalformedError. */
export async function readString(channel: Channel, maximum: number, what: string): Promise<Buffer> {
  return await channel.read(bounded(await readUint32(channel), maximum, what))
}

export function bounded(length: number, maximum: number, what: string): number {
  if (length <= maximum) return length
  throw new MalformedError(`vnc: ${what} of at most ${maximum} was expected, found ${length}`)
}

export function uint16(number: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(number)
  return bytes
}

export function uint32(number: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(number)
  return bytes
}
