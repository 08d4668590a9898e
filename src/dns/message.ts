/**
 * DNS messages (RFC 1035 4.1), as far as one question about one type needs them: the query, and the
 * response's records of the queried name, or of the names that it is an alias of.
 */
import { Buffer } from 'node:buffer'
import { DnsError } from './error.ts'

/** RFC 1035 2.3.4, both as on the wire. */
const MAX_NAME = 255
const MAX_LABEL = 63
/** Limit of the records read from a response; no question about one host needs more. */
const MAX_RECORDS = 64
const HEADER = 12
const CLASS_INTERNET = 1
const TYPE_CNAME = 5
const TYPE_OPT = 41
/** A UDP response of this size is not fragmented on its way (DNS flag day 2020). */
export const UDP_SIZE = 1232

const FLAG = { response: 0x8000, opcode: 0x7800, truncated: 0x0200, recursion: 0x0100, authentic: 0x0020 }
const RCODE = 0x000f
const NO_ERROR = 0
const NO_NAME = 3
const FAILURES: Readonly<Record<number, string>> = {
  1: 'FORMERR',
  2: 'SERVFAIL: perhaps DNSSEC shows that the records are forged, or badly signed',
  4: 'NOTIMP',
  5: 'REFUSED',
}

export interface Question {
  /** 16 random bits. */
  id: number
  /** In wire format, in lower case: see `encodeName`. */
  name: Buffer
  type: number
}

export interface Answer {
  /** The AD bit: the resolver has verified the whole response (RFC 4035 3.2.3). */
  isAuthenticated: boolean
  /** Data of the records of the type. Empty if there are none, or if the name does not exist. */
  data: Buffer[]
}

const malformed = (why: string): DnsError => new DnsError(`the answer is malformed: ${why}`)

/** Returns a host name in wire format, in lower case. @throws DnsError if it is not a valid host name */
export function encodeName(host: string): Buffer {
  const labels = host.replace(/\.$/, '').toLowerCase().split('.')
  const parts = labels.map((label) => {
    if (!/^[a-z0-9_-]+$/.test(label) || MAX_LABEL < label.length) {
      throw new DnsError(`${JSON.stringify(host)} is no name that the DNS knows`)
    }
    return Buffer.concat([Buffer.of(label.length), Buffer.from(label, 'latin1')])
  })
  const name = Buffer.concat([...parts, Buffer.of(0)])
  if (MAX_NAME < name.length) throw new DnsError(`${JSON.stringify(host)} is too long a name for the DNS`)
  return name
}

/** Builds a query that requests recursion, and the response's AD bit (RFC 6840 5.7). */
export function buildQuery({ id, name, type }: Question): Buffer {
  const header = Buffer.alloc(HEADER)
  header.writeUInt16BE(id, 0)
  header.writeUInt16BE(FLAG.recursion | FLAG.authentic, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(1, 10)
  const question = Buffer.alloc(4)
  question.writeUInt16BE(type, 0)
  question.writeUInt16BE(CLASS_INTERNET, 2)
  // RFC 6891 6.1.2: the root's name, the type, and the size only.
  const edns = Buffer.alloc(11)
  edns.writeUInt16BE(TYPE_OPT, 1)
  edns.writeUInt16BE(UDP_SIZE, 3)
  return Buffer.concat([header, name, question, edns])
}

/**
 * Parses the response to this question. Returns undefined if it answers another question, and is to be
 * ignored. `truncated`: to be repeated over TCP.
 * @throws DnsError if it is malformed, or an error of the resolver
 */
export function parseAnswer(message: Buffer, question: Question): Answer | 'truncated' | undefined {
  if (message.length < HEADER || message.readUInt16BE(0) !== question.id) return undefined
  const flags = message.readUInt16BE(2)
  if ((flags & FLAG.response) === 0 || (flags & FLAG.opcode) !== 0) return undefined
  const cursor = new Cursor(message)
  if (message.readUInt16BE(4) !== 1) return undefined
  const isSame =
    cursor.name().equals(question.name) &&
    cursor.uint16() === question.type &&
    cursor.uint16() === CLASS_INTERNET
  if (!isSame) return undefined
  if ((flags & FLAG.truncated) !== 0) return 'truncated'
  const code = flags & RCODE
  if (code !== NO_ERROR && code !== NO_NAME) {
    throw new DnsError(`the resolver answers ${FAILURES[code] ?? `with the error ${code}`}`)
  }
  const count = message.readUInt16BE(6)
  if (MAX_RECORDS < count) throw malformed(`it has ${count} records, expected at most ${MAX_RECORDS}`)
  const records = Array.from({ length: count }, () => cursor.record())
  return {
    isAuthenticated: (flags & FLAG.authentic) !== 0,
    data: recordsOf(records, question),
  }
}

/** Returns the records of the name, or of its alias, step by step (RFC 1034 3.6.2). */
function recordsOf(records: readonly ResourceRecord[], { name, type }: Question): Buffer[] {
  let at = name
  // Follow each alias once, so that a ring ends.
  for (let left = records; ; ) {
    const own = left.filter((record) => record.name.equals(at))
    const found = own.filter((record) => record.type === type)
    const alias = own.find((record) => record.type === TYPE_CNAME)
    if (found.length > 0 || !alias?.target) return found.map(({ data }) => data)
    left = left.filter((record) => record !== alias)
    at = alias.target
  }
}

interface ResourceRecord {
  name: Buffer
  type: number
  data: Buffer
  /** Target of an alias. */
  target?: Buffer
}

class Cursor {
  readonly #bytes: Buffer
  #at = HEADER

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  uint16(): number {
    return this.#take(2).readUInt16BE()
  }

  record(): ResourceRecord {
    const name = this.name()
    const type = this.uint16()
    const kind = this.uint16()
    this.#take(4)
    const length = this.uint16()
    const begin = this.#at
    const data = this.#take(length)
    // A record of another class is of no use here.
    if (kind !== CLASS_INTERNET) return { name, type: 0, data }
    if (type !== TYPE_CNAME) return { name, type, data }
    const [target, end] = this.#nameAt(begin)
    if (end !== begin + length) throw malformed('an alias is not as long as its name')
    return { name, type, data, target }
  }

  /** Reads a name, in lower case, without compression. */
  name(): Buffer {
    const [name, end] = this.#nameAt(this.#at)
    this.#at = end
    return name
  }

  /** RFC 1035 4.1.4: a pointer leads backwards only, so that every name ends. */
  #nameAt(begin: number): [name: Buffer, end: number] {
    const parts: Buffer[] = []
    let length = 1
    let end: number | undefined
    let limit = begin
    for (let at = begin; ; ) {
      const size = this.#bytes[at]
      if (size === undefined) throw malformed('a name is cut short')
      if (size === 0) return [Buffer.concat([...parts, Buffer.of(0)]), end ?? at + 1]
      if (size > MAX_LABEL) {
        const low = this.#bytes[at + 1]
        if (size < 0xc0 || low === undefined) throw malformed('a name is cut short')
        end ??= at + 2
        at = ((size & 0x3f) << 8) | low
        if (at >= limit) throw malformed('a name leads forward')
        limit = at
        continue
      }
      const label = this.#bytes.subarray(at, at + 1 + size)
      length += label.length
      if (label.length !== 1 + size || MAX_NAME < length) throw malformed('a name is cut short, or too long')
      // Lower case does not change the lengths, which are below the letters.
      parts.push(
        Buffer.from(
          label.toString('latin1').replace(/[A-Z]/g, (letter) => letter.toLowerCase()),
          'latin1',
        ),
      )
      at += 1 + size
    }
  }

  #take(length: number): Buffer {
    const bytes = this.#bytes.subarray(this.#at, this.#at + length)
    if (bytes.length !== length) throw malformed('it is cut short')
    this.#at += length
    return bytes
  }
}
