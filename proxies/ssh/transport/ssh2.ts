/**
 * What the transport needs of ssh2 beyond its public interface, and whether the ssh2 that Node found is fit for it: the
 * patched one, with its native crypto. transport.ts, aligner.ts and this file are the only ones that know its insides.
 */
import type { Buffer } from 'node:buffer'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'

const require = createRequire(import.meta.url)

/** ssh2's Protocol object, as of the pinned 1.17.0. */
export interface Ssh2Protocol {
  _onPayload: (payload: Buffer) => unknown
  _onPacket: () => void
  /** Writes to the socket; a cipher keeps the one that is there when its keys are agreed. */
  _onWrite: (bytes: Uint8Array) => void
  _kex: { sessionID: Buffer; negotiated: { serverHostKey: string } }
  /** Set while a key exchange is under way. */
  _kexinit: Buffer | undefined
  /** Payloads that wait for the end of the key exchange. */
  _queue: Buffer[] | undefined
  _compatFlags: number
  _cipher: { encrypt(packet: Buffer): void }
  /** `_packet`: what has come of a packet that is not whole yet. */
  _decipher: { _packet: Uint8Array | null; _lenBytes?: number }
  _packetRW: {
    write: { allocStart: number; alloc(size: number): Buffer; finalize(packet: Buffer): Buffer }
  }
  disconnect(reason: number): void
  rekey(): void
}

/** What ssh2's Client and its server-side connection have in common, beyond their public types. */
export interface Ssh2Peer {
  _protocol: Ssh2Protocol
  on(event: string, listener: (...args: never[]) => void): unknown
}

/** Sends a packet that `_packetRW.write` made; false when it waits in the socket. */
export const { sendPacket } = require('ssh2/lib/protocol/utils.js') as {
  sendPacket: (protocol: Ssh2Protocol, packet: Buffer) => boolean
}

const constants = require('ssh2/lib/protocol/constants.js') as {
  COMPAT: Record<string, number>
  SALLYPORT_PATCH?: number
}
/** The state of patches/ssh2-1.17.0.patch that this code needs. */
const SSH2_PATCH = 6
/** A flag of `_compatFlags`: RSA keys sign with SHA-2 also without server-sig-algs. */
export const IMPLY_RSA_SHA2 = constants.COMPAT['IMPLY_RSA_SHA2_SIGALGS'] ?? 0

/** True when ssh2's crypto runs in its native binding; without it the relay has less than half its speed. */
export function nativeCryptoAvailable(): boolean {
  return (require('ssh2/lib/protocol/crypto.js') as { bindingAvailable: boolean }).bindingAvailable
}

/** Throws when the ssh2 that Node finds is not the patched one; the message says what to do. */
export function requirePatchedSsh2(): void {
  if (constants.SALLYPORT_PATCH === SSH2_PATCH) return
  throw new Error(
    `ssh2 in ${dirname(require.resolve('ssh2/package.json'))} is without Sallyport's patch of this release, and SSH is not ` +
      'safe without it: run bin/patch-ssh2.mjs of this installation with Node, then start again',
  )
}
