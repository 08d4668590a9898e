/**
 * The beginning of an rlogin connection (RFC 1282): four strings from the client, one byte from the server.
 * The client's own user name is read and never trusted.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { displayText } from '../../bytes/text.ts'

/** Bytes of a user name: a login string has at most as many. */
export const NAME_LIMIT = 256
/** Bytes of `terminal/speed`. */
export const TERMINAL_LIMIT = 64
/** Characters of a server's reason. */
export const REASON_LIMIT = 512

/** In the order of sending. */
const FIELDS = [
  { name: 'the user name of the client', limit: NAME_LIMIT },
  { name: 'the user name for the server', limit: NAME_LIMIT },
  { name: 'the terminal', limit: TERMINAL_LIMIT },
] as const

const HANDSHAKE_LIMIT = 1 + FIELDS.reduce((sum, { limit }) => sum + limit + 1, 0)

export interface Handshake {
  /** The user's name on the client's host, as claimed. */
  clientUser: string
  serverUser: string
  /** Empty if unknown. */
  terminal: string
  /** Bits per second, without a meaning today. */
  speed: number
}

const DEFAULT_SPEED = 38_400

/** The server's side. */
export class HandshakeReader {
  #bytes = Buffer.alloc(0)

  /**
   * Returns the client's handshake and the bytes after it, or undefined while it is incomplete. Throws
   * MalformedError.
   */
  feed(chunk: Uint8Array): { handshake: Handshake; rest: Uint8Array } | undefined {
    // One byte over the limit is enough to detect the excess.
    const taken = Math.min(chunk.length, HANDSHAKE_LIMIT + 1 - this.#bytes.length)
    this.#bytes = Buffer.concat([this.#bytes, chunk.subarray(0, taken)])
    const first = this.#bytes[0]
    if (first === undefined) return undefined
    if (first !== 0) throw new MalformedError(`rlogin: a zero byte was expected first, found ${first}`)
    const fields: string[] = []
    let at = 1
    for (const { name, limit } of FIELDS) {
      const end = this.#bytes.indexOf(0, at)
      const length = (end < 0 ? this.#bytes.length : end) - at
      if (limit < length) {
        throw new MalformedError(`rlogin: ${name} was expected in at most ${limit} bytes, found more`)
      }
      if (end < 0) return undefined
      fields.push(utf8(this.#bytes.subarray(at, end), name))
      at = end + 1
    }
    const [clientUser, serverUser, type] = fields as [string, string, string]
    const rest = Buffer.concat([this.#bytes.subarray(at), chunk.subarray(taken)])
    return { handshake: { clientUser, serverUser, ...readTerminal(type) }, rest }
  }
}

function utf8(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new MalformedError(`rlogin: ${name} was expected in UTF-8, found other bytes`)
  }
}

/** Splits a string such as `xterm-256color/38400`. */
function readTerminal(text: string): { terminal: string; speed: number } {
  const [terminal = '', speed = ''] = text.split('/')
  return {
    terminal: /^[A-Za-z0-9][A-Za-z0-9+._-]*$/.test(terminal) ? terminal : '',
    speed: /^[0-9]{1,7}$/.test(speed) ? Number(speed) : DEFAULT_SPEED,
  }
}

/** The client's side. Throws MalformedError for a text that would not arrive unchanged. */
export function buildHandshake({ clientUser, serverUser, terminal, speed }: Handshake): Uint8Array {
  const texts = [clientUser, serverUser, `${terminal}/${speed}`]
  const fields = FIELDS.map(({ name, limit }, index) => {
    const bytes = Buffer.from(texts[index]!, 'utf8')
    if (limit < bytes.length || bytes.includes(0)) {
      throw new MalformedError(`rlogin: ${name} was expected in at most ${limit} bytes without a zero byte`)
    }
    return Buffer.concat([bytes, Buffer.alloc(1)])
  })
  return Buffer.concat([Buffer.alloc(1), ...fields])
}

/** The server's reply that accepts the handshake. */
export const ACCEPTED = Uint8Array.of(0)

/** Stands before the text of a refusal, by the custom of BSD's servers. */
const REFUSED = 1

/** Reads the server's reply, on the client's side. */
export class AnswerReader {
  #refusal: Buffer | undefined

  /** Returns the bytes after the server's acceptance, or undefined if it has refused or not replied yet. */
  feed(chunk: Uint8Array): Uint8Array | undefined {
    if (chunk.length === 0) return undefined
    if (this.#refusal === undefined && chunk[0] === 0) return chunk.subarray(1)
    const before = this.#refusal ?? Buffer.alloc(0)
    this.#refusal = Buffer.concat([before, chunk]).subarray(0, REASON_LIMIT + 1)
    return undefined
  }

  /** Returns the server's refusal, or undefined if there is none. */
  get refusal(): string | undefined {
    const bytes = this.#refusal
    if (!bytes) return undefined
    return displayText(bytes[0] === REFUSED ? bytes.subarray(1) : bytes.subarray(0, REASON_LIMIT)).trim()
  }
}
