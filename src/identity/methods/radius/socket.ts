/** A UDP socket to one RADIUS server: at most 256 requests, each under an id that no other has on this socket. */
import { randomBytes, randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import {
  ATTRIBUTES,
  type Attribute,
  CODES,
  hidePassword,
  RadiusError,
  type Reply,
  readReply,
  writeAccounting,
  writeRequest,
} from './packet.ts'

const IDS = 256

export interface Question {
  code: number
  /** Attributes but the password and those that name the bastion's address. */
  attributes: readonly Attribute[]
  /** Absent: the request has no User-Password. */
  password?: Uint8Array
}

export interface Sending {
  secret: Uint8Array
  requireMessageAuthenticator: boolean
  /** Milliseconds until the server counts as silent. */
  timeoutMs: number
  /** Number of times that the request is sent, with growing pauses. */
  tries: number
  signal: AbortSignal
}

interface Waiting {
  receive(datagram: Uint8Array): void
  fail(error: Error): void
}

export class RadiusSocket {
  /** Address of the server. */
  readonly address: string
  readonly #socket: Socket
  readonly #waiting = new Map<number, Waiting>()
  readonly #onClosed: () => void
  #nextId = randomInt(IDS)
  #used = 0
  #isClosed = false
  /** The last thing the network said of the server: a hint, as it can be forged. */
  #trouble: string | undefined

  private constructor(socket: Socket, address: string, onClosed: () => void) {
    this.address = address
    this.#socket = socket
    this.#onClosed = onClosed
    socket.on('message', (datagram) => this.#waiting.get(datagram[1] ?? -1)?.receive(datagram))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.#trouble = error.code ?? error.message
    })
  }

  /** Opens a socket on a random port, to which only that address and port can send. @throws Error */
  static async open(address: string, port: number, onClosed: () => void): Promise<RadiusSocket> {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4')
    try {
      socket.connect(port, address)
      await once(socket, 'connect')
    } catch (error) {
      socket.close()
      throw error
    }
    return new RadiusSocket(socket, address, onClosed)
  }

  /** Whether an id is left. */
  get hasRoom(): boolean {
    return !this.#isClosed && this.#used < IDS
  }

  /**
   * Asks, and returns the first reply that is proved to be the server's. Other datagrams are dropped (RFC 2865 3). The
   * caller has seen `hasRoom`; the socket closes after its last answer. @throws RadiusError
   */
  async ask(question: Question, sending: Sending): Promise<Reply> {
    const id = this.#nextId
    this.#nextId = (id + 1) % IDS
    this.#used++
    const { secret, requireMessageAuthenticator, timeoutMs, tries, signal } = sending
    const packet = this.#packet(id, question, secret)
    const request = { id, authenticator: Uint8Array.from(packet.subarray(4, 20)) }
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    let dropped: string | undefined
    this.#waiting.set(id, {
      receive: (datagram) => {
        try {
          resolve(readReply(datagram, { request, secret, requireMessageAuthenticator }))
        } catch (error) {
          dropped = (error as Error).message
        }
      },
      fail: reject,
    })
    let timer: NodeJS.Timeout
    const send = (nth: number) => {
      if (nth === tries) {
        const why = dropped
          ? `; a datagram was dropped: ${dropped}`
          : this.#trouble
            ? ` (${this.#trouble})`
            : ''
        reject(new RadiusError(`no answer within ${timeoutMs} ms, to ${tries} requests${why}`))
        return
      }
      this.#socket.send(packet, (error) => {
        if (error) this.#trouble = (error as NodeJS.ErrnoException).code ?? error.message
      })
      timer = setTimeout(send, pause(nth, tries, timeoutMs), nth + 1)
    }
    const onAbort = () => reject(new RadiusError('the sign-in was given up'))
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      if (signal.aborted) onAbort()
      else send(0)
      return await promise
    } finally {
      clearTimeout(timer!)
      signal.removeEventListener('abort', onAbort)
      packet.fill(0)
      this.#waiting.delete(id)
      if (this.#waiting.size === 0) this.close()
    }
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const { fail } of this.#waiting.values()) fail(new RadiusError('the method was closed'))
    this.#socket.close()
    this.#onClosed()
  }

  #packet(id: number, question: Question, secret: Uint8Array): Buffer {
    const { code } = question
    const authenticator = randomBytes(16)
    const attributes = this.#attributesOf(question, authenticator, secret)
    return code === CODES.accountingRequest
      ? writeAccounting({ code, id, attributes }, secret)
      : writeRequest({ code, id, authenticator, attributes }, secret)
  }

  #attributesOf(
    { attributes, password }: Question,
    authenticator: Uint8Array,
    secret: Uint8Array,
  ): Attribute[] {
    const { address } = this.#socket.address()
    return [
      ...attributes,
      ...(password
        ? [{ type: ATTRIBUTES.userPassword, value: hidePassword(password, authenticator, secret) }]
        : []),
      isIPv6(address)
        ? { type: ATTRIBUTES.nasIpv6Address, value: ipv6Octets(address) }
        : { type: ATTRIBUTES.nasIpAddress, value: Uint8Array.from(address.split('.'), Number) },
    ]
  }
}

/** Returns the milliseconds after the `nth` sending, from 0: each pause is twice the one before (RFC 5080 2.2.1). */
export function pause(nth: number, tries: number, timeoutMs: number): number {
  return (timeoutMs * 2 ** nth) / (2 ** tries - 1)
}

/** Returns the 16 octets of an address in text form. */
export function ipv6Octets(address: string): Uint8Array {
  // The parser of URLs writes every form alike, with the IPv4 part in hexadecimal.
  const text = new URL(`http://[${address.replace(/%.*$/, '')}]`).hostname.slice(1, -1)
  const [head = '', tail] = text.split('::')
  const groups = (part: string) => (part === '' ? [] : part.split(':'))
  const [left, right] = [groups(head), groups(tail ?? '')]
  const zeros: string[] = Array(8 - left.length - right.length).fill('0')
  return Uint8Array.from(
    [...left, ...zeros, ...right].flatMap((group) => {
      const value = Number.parseInt(group, 16)
      return [value >> 8, value & 255]
    }),
  )
}
