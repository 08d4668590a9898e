/** AV_PAIRs (MS-NLMP 2.2.2.1): pairs of id and value with a server's names and a client's bindings. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { AV } from './numbers.ts'

/** Windows sends seven. */
export const AV_PAIR_LIMIT = 32

export interface AvPair {
  id: number
  /** View of the message. */
  value: Uint8Array
}

/** Reads up to the end mark; bytes after it are padding. Throws MalformedError. */
export function parseAvPairs(bytes: Uint8Array): AvPair[] {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const pairs: AvPair[] = []
  for (let at = 0; ; ) {
    if (view.length < at + 4) {
      throw new MalformedError(`ntlm: an AV_PAIR was expected at offset ${at}, found the end of the list`)
    }
    const id = view.readUInt16LE(at)
    const length = view.readUInt16LE(at + 2)
    if (id === AV.END) return pairs
    if (pairs.length === AV_PAIR_LIMIT) {
      throw new MalformedError(`ntlm: at most ${AV_PAIR_LIMIT} AV_PAIRs were expected, found more`)
    }
    const end = at + 4 + length
    if (view.length < end) {
      throw new MalformedError(
        `ntlm: an AV_PAIR's value of ${length} bytes was expected at offset ${at + 4}, found ${view.length - at - 4}`,
      )
    }
    pairs.push({ id, value: view.subarray(at + 4, end) })
    at = end
  }
}

/** Includes the end mark. */
export function buildAvPairs(pairs: readonly AvPair[]): Buffer {
  const parts: Uint8Array[] = []
  for (const { id, value } of [...pairs, { id: AV.END, value: Buffer.alloc(0) }]) {
    const head = Buffer.alloc(4)
    head.writeUInt16LE(id, 0)
    head.writeUInt16LE(value.length, 2)
    parts.push(head, value)
  }
  return Buffer.concat(parts)
}

/** Returns the first value with this id. */
export function avValue(pairs: readonly AvPair[], id: number): Uint8Array | undefined {
  return pairs.find((pair) => pair.id === id)?.value
}
