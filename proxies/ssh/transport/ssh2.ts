/**
 * The parts of ssh2 that the transport uses beyond its public interface, and the check that Node found the
 * right ssh2: the patched one, with its native crypto. Only the files of this folder know its internals.
 */
import type { Buffer } from 'node:buffer'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'

const require = createRequire(import.meta.url)

/** ssh2's Protocol object, as of the pinned 1.17.0. */
export interface Ssh2Protocol {
  _onPayload: (payload: Buffer) => unknown
  _onPacket: () => void
  /** Writes to the socket. A cipher keeps the function that is set when its keys are agreed. */
  _onWrite: (bytes: Uint8Array) => void
  _kex: {
    sessionID: Buffer
    negotiated: { serverHostKey: string }
    /** The key pairs of the exchange. */
    _keys?: null
    _dh?: null
    _kem?: null
    _curve?: null
    /** Called with each step of the exchange; keeps its secret. */
    finish: () => boolean
  }
  /** The algorithms of this side, as a KEXINIT has them. */
  _offer: { lists: { all: Buffer } }
  /** Functions for messages, by name. */
  _handlers: Record<string, unknown>
  /** Set during a key exchange. */
  _kexinit: Buffer | undefined
  /** Payloads that wait for the end of the key exchange. */
  _queue: Buffer[] | undefined
  _compatFlags: number
  _cipher: Ssh2Cipher
  _decipher: Ssh2Decipher
  _packetRW: {
    write: { allocStart: number; alloc(size: number): Buffer; finalize(packet: Buffer): Buffer }
  }
  disconnect(reason: number): void
  rekey(): void
}

/** A cipher of ssh2's native binding; MACs are with the stream ciphers only. */
export interface Ssh2Cipher {
  outSeqno: number
  /** Set when ssh2 has freed the cipher. */
  _dead: boolean
  _encBlockLen: number
  /** Bytes before the packet that are not encrypted: 4 (etm), or 0. */
  _aadLen: number
  _macLen: number
  _macActualLen: number
  _instance: { encrypt(packet: Uint8Array, sequence: number): void }
}

/** Fields that say how much of a packet ssh2 has read have other names for each kind of cipher. */
export interface Ssh2Decipher {
  inSeqno: number
  _lenBytes: number
  _lenPos: number
  _blockPos: number
  /** The bytes with packet_length. */
  _block: Buffer
  _macActualLen: number
  _macETM: boolean
  /** `decrypt` verifies too. Its arguments differ for each kind of cipher. */
  _instance: {
    decrypt(packet: Uint8Array, ...others: (Uint8Array | number)[]): void
    decryptLen(length: Buffer, sequence: number): number
    decryptBlock(block: Buffer): void
  }
  /** Set to another function during a key exchange. */
  _onPayload: (payload: Buffer) => unknown
}

/** Different offers that are kept: those of the front, and of targets by their settings. */
const MAX_OFFERS = 32
/** An offer takes 6 KiB, and each connection to a target makes its own. */
const offers = new Map<string, Ssh2Protocol['_offer']>()
const hasEnded = (): boolean => false

/** Releases what no connection needs whose connection-layer messages never reach ssh2. */
export function releaseUnused(protocol: Ssh2Protocol): void {
  const { _offer: offer, _handlers: handlers } = protocol
  const algorithms = offer.lists.all.toString('latin1')
  const same = offers.get(algorithms)
  if (same) protocol._offer = same
  else if (offers.size < MAX_OFFERS) offers.set(algorithms, offer)
  for (const name of Object.keys(handlers)) if (name.startsWith('CHANNEL_')) handlers[name] = undefined
}

/** Releases the keys and the secret of a key exchange that has ended: recorded traffic could be read by them. */
export function afterExchange(protocol: Ssh2Protocol): void {
  Object.assign(protocol._kex, { _keys: null, _dh: null, _kem: null, _curve: null, finish: hasEnded })
  // Ask a target without server-sig-algs for SHA-2 with RSA keys too: ssh2 would fall back to SHA-1.
  protocol._compatFlags |= IMPLY_RSA_SHA2
}

/** The common part of ssh2's Client and its server-side connection, beyond their public types. */
export interface Ssh2Peer {
  _protocol: Ssh2Protocol
  on(event: string, listener: (...args: never[]) => void): unknown
  emit(event: 'error', error: unknown): boolean
}

/** Sends a packet that `_packetRW.write` made. Returns false if it waits in the socket. */
export const { sendPacket } = require('ssh2/lib/protocol/utils.js') as {
  sendPacket: (protocol: Ssh2Protocol, packet: Buffer) => boolean
}

const constants = require('ssh2/lib/protocol/constants.js') as {
  COMPAT: Record<string, number>
  SALLYPORT_PATCH?: number
}
/** The version of patches/ssh2-1.17.0.patch that this code needs. */
const SSH2_PATCH = 7
/** A flag of `_compatFlags`: RSA keys sign with SHA-2 even without server-sig-algs. */
const IMPLY_RSA_SHA2 = constants.COMPAT['IMPLY_RSA_SHA2_SIGALGS'] ?? 0

/** Whether ssh2's crypto runs in its native binding; without it, the relay has less than half its speed. */
export function nativeCryptoAvailable(): boolean {
  return (require('ssh2/lib/protocol/crypto.js') as { bindingAvailable: boolean }).bindingAvailable
}

/** Throws if Node found another ssh2 than the patched one; the message names the remedy. */
export function requirePatchedSsh2(): void {
  if (constants.SALLYPORT_PATCH === SSH2_PATCH) return
  throw new Error(
    `ssh2 in ${dirname(require.resolve('ssh2/package.json'))} is without Sallyport's patch of this release, and SSH is not ` +
      'safe without it: run bin/patch-ssh2.mjs of this installation with Node, then start again',
  )
}
