/**
 * A handover of the audit log's beginning: rows up to a checkpoint are removed, and an event
 * `audit.handover` records it for ever. Its `signature` is over this statement (docs/events.md, "Retention"),
 * so that only the broker can move the log's beginning:
 *
 *        19  ASCII `sallyport-handover` and 0x01
 *         8  the last removed row
 *         8  the number of removed rows
 *        32  the hash of that last row
 *
 * All numbers are big-endian.
 */
import { Buffer } from 'node:buffer'
import { type KeyObject, sign, verify } from 'node:crypto'
import { signerId } from '../../recordings/container/format/header.ts'
import { publicKeyOf, rawPublicKey } from '../../recordings/container/format/signature.ts'
import type { AuditRepository } from '../store/store.ts'
import { FIRST, type Head } from './chain.ts'
import type { EventFields } from './events/fields.ts'

const PREFIX = Buffer.from('sallyport-handover\x01', 'latin1')
const HASH = /^[0-9a-f]{64}$/

export interface Handover {
  /** The last removed row. */
  last: Head
  /** Number of removed rows. */
  count: number
}

function statementOf({ last, count }: Handover): Buffer {
  const numbers = Buffer.alloc(16)
  numbers.writeBigUInt64BE(BigInt(last.sequence), 0)
  numbers.writeBigUInt64BE(BigInt(count), 8)
  return Buffer.concat([PREFIX, numbers, last.hash])
}

/** Returns the fields of the handover's event, signed with the Ed25519 key. */
export function handoverFields(handover: Handover, key: KeyObject) {
  const { last, count } = handover
  return {
    object: String(last.sequence),
    digest: Buffer.from(last.hash).toString('hex'),
    count,
    signature: sign(null, statementOf(handover), key).toString('base64'),
    signer: signerId(rawPublicKey(key)),
  }
}

/**
 * Parses a handover. Returns undefined unless one of these raw Ed25519 keys has signed it; without keys any
 * signature is accepted.
 */
export function handoverOf(fields: EventFields, trusted?: readonly Uint8Array[]): Handover | undefined {
  const { object, digest, count, signature, signer } = fields
  const sequence = Number(object)
  const isWhole =
    Number.isSafeInteger(sequence) && sequence > 0 && Number.isSafeInteger(count) && Number(count) > 0
  if (!isWhole || !HASH.test(String(digest))) return undefined
  const handover = { last: { sequence, hash: Buffer.from(String(digest), 'hex') }, count: Number(count) }
  if (!trusted) return handover
  const key = trusted.find((one) => signerId(one) === signer)
  const signed = Buffer.from(String(signature ?? ''), 'base64')
  return key && verify(null, statementOf(handover), publicKeyOf(key), signed) ? handover : undefined
}

/** Returns the handover in the log that reaches farthest; without keys any signature is accepted. */
export async function farthestHandover(
  repository: Pick<AuditRepository, 'handovers'>,
  trusted?: readonly Uint8Array[],
): Promise<Handover | undefined> {
  let farthest: Handover | undefined
  for (const { json } of await repository.handovers()) {
    const handover = handoverIn(json, trusted)
    if (handover && handover.last.sequence > (farthest?.last.sequence ?? 0)) farthest = handover
  }
  return farthest
}

/**
 * Returns the handover after which a log with the first row `first` begins, or undefined if it must begin
 * with its own first row. Remaining rows up to there are about to be removed.
 */
export async function beginningOf(
  repository: Pick<AuditRepository, 'handovers'>,
  first: number,
  trusted?: readonly Uint8Array[],
): Promise<Handover | undefined> {
  if (first <= FIRST) return undefined
  const farthest = await farthestHandover(repository, trusted)
  return farthest && farthest.last.sequence >= first - 1 ? farthest : undefined
}

function handoverIn(json: string, trusted: readonly Uint8Array[] | undefined): Handover | undefined {
  try {
    const { fields } = JSON.parse(json) as { fields?: EventFields }
    return fields && handoverOf(fields, trusted)
  } catch {
    return undefined
  }
}
