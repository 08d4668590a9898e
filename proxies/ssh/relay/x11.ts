/**
 * X11 without revealing the client's real cookie: the target gets a random one. Each connection from the
 * target must show it, and the real one is put in its place (X Window System Protocol, appendix B; RFC 4254
 * 6.3).
 */
import { Buffer } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import { latin1 } from '../../bytes/text.ts'
import { buildData } from '../codec/build.ts'
import type { X11Request } from '../codec/forwarding.ts'
import type { ChannelHost, Opened } from './channel.ts'
import { ForwardedChannel, type Forwarding } from './forwarding-channel.ts'

/** The only protocol whose proof is the same for every connection, so that the bastion can exchange it. */
export const COOKIE_PROTOCOL = 'MIT-MAGIC-COOKIE-1'
/** Hexadecimal; real cookies have 16 bytes. */
const COOKIE = /^(?:[0-9a-f]{2}){8,64}$/i
const HEADER = 12
const MAX_SETUP = 512

/** The grant of one x11-req. */
export interface X11Grant {
  readonly real: Buffer
  readonly fake: Buffer
  readonly single: boolean
  used: boolean
}

/** Returns the grant, or undefined if there is no exchangeable cookie. `random` returns that many bytes. */
export function x11Grant(request: X11Request, random: (bytes: number) => Buffer): X11Grant | undefined {
  if (request.protocol !== COOKIE_PROTOCOL || !COOKIE.test(request.cookie)) return undefined
  const real = Buffer.from(request.cookie, 'hex')
  return { real, fake: random(real.length), single: request.singleConnection, used: false }
}

/**
 * Puts the real cookie into a connection's first message, in place. Returns `more` if the message is
 * incomplete, and `wrong` if it shows none of the cookies. Uses up a grant for a single connection.
 */
export function exchangeCookie(setup: Uint8Array, grants: readonly X11Grant[]): 'more' | 'done' | 'wrong' {
  if (setup.length < HEADER) return 'more'
  const bytes = Buffer.from(setup.buffer, setup.byteOffset, setup.byteLength)
  const isBig = bytes[0] === 0x42
  if (!isBig && bytes[0] !== 0x6c) return 'wrong'
  const nameLength = isBig ? bytes.readUInt16BE(6) : bytes.readUInt16LE(6)
  const cookieLength = isBig ? bytes.readUInt16BE(8) : bytes.readUInt16LE(8)
  const cookieAt = HEADER + padded(nameLength)
  const length = cookieAt + padded(cookieLength)
  if (length > MAX_SETUP) return 'wrong'
  if (bytes.length < length) return 'more'
  if (latin1(bytes.subarray(HEADER, HEADER + nameLength)) !== COOKIE_PROTOCOL) return 'wrong'
  const shown = bytes.subarray(cookieAt, cookieAt + cookieLength)
  for (const grant of grants) {
    if (grant.fake.length !== shown.length || !timingSafeEqual(grant.fake, shown)) continue
    if (grant.single && grant.used) return 'wrong'
    grant.used = true
    grant.real.copy(shown)
    return 'done'
  }
  return 'wrong'
}

/** Lengths are padded to a multiple of four. */
function padded(length: number): number {
  return (length + 3) & ~3
}

/** A connection to the client's display. */
export class X11Channel extends ForwardedChannel {
  readonly #grants: () => readonly X11Grant[]
  /** The received part of the first message. Undefined once its cookie was exchanged. */
  #held: Buffer | undefined = Buffer.alloc(0)

  /** `grants` returns the current grants. */
  constructor(
    host: ChannelHost,
    id: number,
    opened: Opened,
    forwarding: Forwarding,
    grants: () => readonly X11Grant[],
  ) {
    super(host, id, 'target', opened, forwarding)
    this.#grants = grants
  }

  protected override inspect(payload: Buffer, data: Uint8Array, isError: boolean): Buffer | undefined {
    const passed = super.inspect(payload, data, isError)
    return this.#held === undefined || passed === undefined ? passed : this.#setup(this.#held, payload, data)
  }

  #setup(held: Buffer, payload: Buffer, data: Uint8Array): Buffer | undefined {
    const setup = Buffer.concat([held, data])
    const answer = exchangeCookie(setup, this.#grants())
    if (answer === 'wrong') {
      this.host.session.denied('SSH_X11', 'a connection without the cookie that was given')
      this.refuse('the X11 connection did not show the cookie that it was given')
      return undefined
    }
    if (answer === 'more') {
      this.#held = setup
      return undefined
    }
    this.#held = undefined
    // Send the held part first, as a message of its own: no message may exceed the client's maximum size.
    if (held.length > 0) this.client.pass(buildData(0, setup.subarray(0, held.length)))
    data.set(setup.subarray(held.length))
    return payload
  }
}
