/**
 * Checkpoints of the audit log: an event `audit.checkpoint` whose `signature` proves that the chain up to
 * here is the broker's. It cannot be forged for a log that was rewritten with all hashes repaired. The signed
 * statement (docs/events.md, "Proof"):
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

/** The `object_type` of the event after which another key signs; `signer` is its id. */
export const SIGNING_KEY = 'signing_key'

/** Limit of rows without a checkpoint among them, and of the time until the last ones are signed. */
export const CHECKPOINT_ROWS = 200
export const CHECKPOINT_MS = 30_000

/** The place of a checkpoint. */
export interface CheckpointPlace {
  sequence: number
  /** Milliseconds since the epoch. */
  time: number
  /** Hash of the previous row, or 32 zero bytes for the first. */
  before: Uint8Array
}

function statementOf({ sequence, time, before }: CheckpointPlace): Buffer {
  const numbers = Buffer.alloc(16)
  numbers.writeBigUInt64BE(BigInt(sequence), 0)
  numbers.writeBigUInt64BE(BigInt(time), 8)
  return Buffer.concat([PREFIX, numbers, before])
}

/** Returns the event of a checkpoint at this place, signed with the Ed25519 key. */
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

/** Verifies a checkpoint's fields at this place; `trusted` are raw Ed25519 keys. */
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
