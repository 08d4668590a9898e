/**
 * Checkpoints of the audit log: an event `audit.checkpoint` whose `signature` says that the chain up to here is
 * the broker's. Whoever writes the log anew, with all hashes repaired, cannot make it. The statement that is
 * signed (docs/events.md, "Proof"):
 *
 *        16  ASCII `sallyport-audit` and 0x01
 *         8  sequence of the checkpoint's row
 *         8  its time, milliseconds since 1970
 *        32  the hash of the row before
 *
 * All numbers are big-endian.
 */
import { Buffer } from 'node:buffer'
import { type KeyObject, sign, verify } from 'node:crypto'
import { signerId } from '../../recordings/container/format/header.ts'
import { publicKeyOf, rawPublicKey } from '../../recordings/container/format/signature.ts'
import type { AuditEvent } from './events/catalogue.ts'

const PREFIX = Buffer.from('sallyport-audit\x01', 'latin1')

/** The `object_type` of the event that says that another key signs from there on; `signer` is its id. */
export const SIGNING_KEY = 'signing_key'

/** Rows that may follow each other without a checkpoint among them, and how long the last ones stay without. */
export const CHECKPOINT_ROWS = 200
export const CHECKPOINT_MS = 30_000

/** Where a checkpoint stands. */
export interface CheckpointPlace {
  sequence: number
  /** Milliseconds since the epoch. */
  time: number
  /** Hash of the row before; 32 zero bytes where there is none. */
  before: Uint8Array
}

function statementOf({ sequence, time, before }: CheckpointPlace): Buffer {
  const numbers = Buffer.alloc(16)
  numbers.writeBigUInt64BE(BigInt(sequence), 0)
  numbers.writeBigUInt64BE(BigInt(time), 8)
  return Buffer.concat([PREFIX, numbers, before])
}

/** The event of a checkpoint at this place, signed with the Ed25519 key. */
export function checkpointEvent(place: CheckpointPlace, key: KeyObject): AuditEvent {
  return {
    time: place.time,
    code: 'audit.checkpoint',
    fields: {
      object: String(place.sequence - 1),
      digest: Buffer.from(place.before).toString('hex'),
      signature: sign(null, statementOf(place), key).toString('base64'),
      signer: signerId(rawPublicKey(key)),
    },
  }
}

/** What a checkpoint's fields prove at this place: `trusted` are raw Ed25519 keys. */
export function judgeCheckpoint(
  place: CheckpointPlace,
  fields: AuditEvent['fields'],
  trusted: readonly Uint8Array[],
): 'signed' | 'unknown_signer' | 'bad_signature' {
  const signer = trusted.find((key) => signerId(key) === fields.signer)
  if (!signer) return 'unknown_signer'
  const signature = Buffer.from(String(fields.signature ?? ''), 'base64')
  return verify(null, statementOf(place), publicKeyOf(signer), signature) ? 'signed' : 'bad_signature'
}
