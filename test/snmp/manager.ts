/** A manager as bytes: requests in any shape, and what an answer says. */
import { Buffer } from 'node:buffer'
import { DerReader, der, integer, octets, sequence, TAG } from '../../proxies/bytes/der.ts'
import { readMessage, readScopedPdu, scopedPdu } from '../../src/snmp/message.ts'
import { type Oid, oidBytes, readOid } from '../../src/snmp/oid.ts'
import type { UserKeys } from '../../src/snmp/usm.ts'

export const GET = 0xa0
export const NEXT = 0xa1
export const RESPONSE = 0xa2
export const SET = 0xa3
export const BULK = 0xa5
export const REPORT = 0xa8

const EMPTY = new Uint8Array()
const NULL = Buffer.from([5, 0])

export const pduOf = (type: number, names: readonly Oid[], second = 0, third = 0): Buffer =>
  der(
    type,
    integer(7),
    integer(second),
    integer(third),
    sequence(...names.map((name) => sequence(der(TAG.OID, oidBytes(name)), NULL))),
  )

export const communityRequest = (community: string, pdu: Uint8Array, version = 1): Buffer =>
  sequence(integer(version), octets(Buffer.from(community)), pdu)

export interface Asked {
  engineId: Uint8Array
  boots: number
  time: number
  user: string
  /** Signs and encrypts; absent: neither. */
  keys?: UserKeys
  flags?: number
  model?: number
  maxSize?: number
  contextEngineId?: Uint8Array
  salt?: Uint8Array
}

export function securedRequest(pdu: Uint8Array, asked: Asked): Buffer {
  const { engineId, boots, time, user, keys, model = 3, maxSize = 65_507 } = asked
  const salt = asked.salt ?? Buffer.alloc(8, 9)
  const scoped = scopedPdu(asked.contextEngineId ?? engineId, pdu)
  const data = keys ? octets(keys.encrypt(scoped, { boots, time, salt })) : scoped
  const build = (digest: Uint8Array) =>
    sequence(
      integer(3),
      sequence(
        integer(4711),
        integer(maxSize),
        octets(Buffer.from([asked.flags ?? (keys ? 7 : 4)])),
        integer(model),
      ),
      octets(
        sequence(
          octets(engineId),
          integer(boots),
          integer(time),
          octets(Buffer.from(user)),
          octets(digest),
          octets(keys ? salt : EMPTY),
        ),
      ),
      data,
    )
  const blank = build(new Uint8Array(keys?.digestLength ?? 0))
  return keys ? build(keys.sign(blank)) : blank
}

/** Returns what an answer says: names and values in hex. */
export function saidBy(answer: Uint8Array, keys?: UserKeys) {
  const message = readMessage(answer)
  const { tag, body } =
    message.version === '2c'
      ? message.pdu
      : readScopedPdu(message.isEncrypted ? keys!.decrypt(message.data, message) : message.data).pdu
  const reader = new DerReader(body, 'an answer')
  const [id, status, index] = [reader.uint32(), reader.uint32(), reader.uint32()]
  const list = reader.enter(TAG.SEQUENCE)
  const bindings: { name: string; value: string }[] = []
  while (!list.isAtEnd) {
    const binding = list.enter(TAG.SEQUENCE)
    const name = readOid(binding.take(TAG.OID)).join('.')
    bindings.push({ name, value: Buffer.from(binding.any().whole).toString('hex') })
  }
  return { tag, id, status, index, bindings, message }
}
