/** Requests and their answers (RFC 3416), bounded in names and bytes. */
import type { Buffer } from 'node:buffer'
import { DerReader, der, integer, sequence, TAG } from '../../proxies/bytes/der.ts'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { type Oid, readOid } from './oid.ts'
import type { Binding, View } from './view.ts'

const GET = 0xa0
const GET_NEXT = 0xa1
const RESPONSE = 0xa2
const SET = 0xa3
const GET_BULK = 0xa5
const REPORT = 0xa8
const REQUESTS: ReadonlySet<number> = new Set([GET, GET_NEXT, SET, GET_BULK])

const TOO_BIG = 1
const NO_ACCESS = 6

/** Names of a request. */
export const MAX_NAMES = 128
/** Rows of an answer to GETBULK, however many were asked for. */
export const MAX_REPETITIONS = 64

export interface Pdu {
  type: number
  id: number
  /** GETBULK's non-repeaters and max-repetitions. */
  nonRepeaters: number
  repetitions: number
  names: readonly Oid[]
  /** The request's variable bindings as they came, which an error returns. */
  bindings: Uint8Array
}

/** Whether an agent answers this type of PDU. */
export const isRequest = ({ type }: Pdu): boolean => REQUESTS.has(type)

/** Reads a PDU that has the form of a request. Throws MalformedError. */
export function readPdu({ tag, body }: { tag: number; body: Uint8Array }): Pdu {
  const reader = new DerReader(body, 'a PDU of SNMP')
  const [id, nonRepeaters, repetitions] = [reader.uint32() | 0, reader.uint32() | 0, reader.uint32() | 0]
  const bindings = reader.take(TAG.SEQUENCE)
  requireEnd(reader)
  const names: Oid[] = []
  const list = new DerReader(bindings, 'variable bindings of SNMP')
  while (!list.isAtEnd) {
    if (names.length === MAX_NAMES) throw new MalformedError(`at most ${MAX_NAMES} names were expected`)
    const binding = list.enter(TAG.SEQUENCE)
    names.push(readOid(binding.take(TAG.OID)))
    binding.any()
    requireEnd(binding)
  }
  return {
    type: tag,
    id,
    nonRepeaters: Math.max(0, nonRepeaters),
    repetitions: Math.max(0, Math.min(MAX_REPETITIONS, repetitions)),
    names,
    bindings,
  }
}

export function requireEnd(reader: DerReader): void {
  if (!reader.isAtEnd) throw new MalformedError('nothing was expected behind the last field')
}

/** Returns the answer, whose variable bindings have at most `room` bytes. */
export function answer(request: Pdu, view: View, room: number): Buffer {
  if (request.type === SET) {
    // No name can be written (RFC 3416 4.2.5).
    return request.bindings.length <= room
      ? response(request, NO_ACCESS, request.names.length === 0 ? 0 : 1, request.bindings)
      : response(request, TOO_BIG, 0)
  }
  if (request.type === GET_BULK) return response(request, 0, 0, ...bulk(request, view, room))
  const read = (name: Oid) => (request.type === GET ? view.get(name) : view.next(name)).bytes
  const bindings: Buffer[] = []
  let left = room
  for (const name of request.names) {
    const binding = read(name)
    left -= binding.length
    if (left < 0) return response(request, TOO_BIG, 0)
    bindings.push(binding)
  }
  return response(request, 0, 0, ...bindings)
}

/** Returns the bindings of RFC 3416 4.2.3: as many as there is room for. */
function bulk({ names, nonRepeaters, repetitions }: Pdu, view: View, room: number): Buffer[] {
  const bindings: Buffer[] = []
  let left = room
  const add = ({ bytes }: Binding): boolean => {
    left -= bytes.length
    if (0 <= left) bindings.push(bytes)
    return 0 <= left
  }
  for (const name of names.slice(0, nonRepeaters)) if (!add(view.next(name))) return bindings
  let row = names.slice(nonRepeaters)
  for (let i = 0; i < repetitions && row.length > 0; i++) {
    const found = row.map((name) => view.next(name))
    for (const binding of found) if (!add(binding)) return bindings
    if (found.every(({ isEnd }) => isEnd)) break
    row = found.map(({ name }) => name)
  }
  return bindings
}

function response({ id }: Pdu, status: number, index: number, ...bindings: Uint8Array[]): Buffer {
  return der(RESPONSE, integer(id), integer(status), integer(index), sequence(...bindings))
}

/** Returns a Report (RFC 3412 7.1.3) with one counter as its binding. */
export function report(id: number, binding: Buffer): Buffer {
  return der(REPORT, integer(id), integer(0), integer(0), sequence(binding))
}
