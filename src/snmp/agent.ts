/**
 * An agent that only answers: judges each datagram in the order of RFC 3414 3.2 and RFC 3412 7.2, and keeps its
 * answers small. It has no socket, no clock and no figures of its own.
 */
import { Buffer } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import { der, sequence, TAG } from '../../proxies/bytes/der.ts'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import type { Secret } from '../model/secret.ts'
import {
  type CommunityMessage,
  communityMessage,
  readMessage,
  readScopedPdu,
  type SecuredMessage,
  scopedPdu,
  securedMessage,
  VersionError,
} from './message.ts'
import { oid, oidBytes } from './oid.ts'
import { answer, isRequest, readPdu, report } from './pdu.ts'
import { isSignedBy, SALT_LENGTH, type UserKeys } from './usm.ts'
import { counterValue } from './value.ts'
import type { View } from './view.ts'

/** Bytes of a datagram that is read. */
export const MAX_REQUEST = 4096
/** Bytes of an answer: it fits in one packet on every usual path, and multiplies a short request by thirty at most. */
export const MAX_ANSWER = 1400
/** Most that surrounds the bindings of an answer, but for the community. */
const FRAME_2C = 48
const FRAME_3 = 256
/** Seconds by which a request may differ from the engine's clock (RFC 3414 2.2.3). */
const WINDOW = 150
/** The greatest number of boots, at which nothing is in the window any more (RFC 3414 2.2.2). */
export const MAX_BOOTS = 0x7fffffff

/** Counters of the reports, by what is wrong (RFC 3414 5, RFC 3412 5, RFC 3413 4.1.2). */
const REPORTS = {
  level: oid('1.3.6.1.6.3.15.1.1.1.0'),
  window: oid('1.3.6.1.6.3.15.1.1.2.0'),
  user: oid('1.3.6.1.6.3.15.1.1.3.0'),
  engine: oid('1.3.6.1.6.3.15.1.1.4.0'),
  digest: oid('1.3.6.1.6.3.15.1.1.5.0'),
  decryption: oid('1.3.6.1.6.3.15.1.1.6.0'),
  handler: oid('1.3.6.1.6.3.11.2.1.3.0'),
  context: oid('1.3.6.1.6.3.12.1.5.0'),
} as const
type Fault = keyof typeof REPORTS

/** The end of a datagram. */
export const RESULTS = [
  'answered',
  'malformed',
  'version',
  'community',
  ...(Object.keys(REPORTS) as Fault[]),
] as const
export type Result = (typeof RESULTS)[number]

export interface Verdict {
  result: Result
  /** A report. Absent if there is nothing to send, or if there is a request. */
  reply?: Buffer
  /** Answers the request. */
  respond?: (view: View) => Buffer
}

/** Managers that are answered. */
export interface Access {
  /** Of version 2c; absent: that version is off. */
  community?: Secret
  /** Of version 3; absent: that version is off. */
  user?: UserKeys
}

export interface Engine {
  id: Buffer
  /** How often it was started, this start included; at least 1. */
  boots: number
}

export interface AgentOptions {
  engine: Engine
  access: Access
  /** Returns the whole seconds since the engine's start. */
  seconds: () => number
  randomBytes: (count: number) => Buffer
}

export class Agent {
  /** May be replaced at any time. */
  access: Access
  readonly #engine: Engine
  readonly #seconds: () => number
  /** The next salt: a number that never comes again with the same boots and keys (RFC 3826 3.1.2.1). */
  #salt: bigint
  readonly #faults = new Map<Fault, number>()

  constructor({ engine, access, seconds, randomBytes }: AgentOptions) {
    this.#engine = engine
    this.access = access
    this.#seconds = seconds
    this.#salt = randomBytes(SALT_LENGTH).readBigUInt64BE()
  }

  receive(datagram: Uint8Array): Verdict {
    try {
      if (MAX_REQUEST < datagram.length) return { result: 'malformed' }
      const message = readMessage(datagram)
      return message.version === '2c' ? this.#community(message) : this.#secured(message)
    } catch (error) {
      if (error instanceof VersionError) return { result: 'version' }
      if (error instanceof MalformedError) return { result: 'malformed' }
      throw error
    }
  }

  #community({ community: given, pdu: raw }: CommunityMessage): Verdict {
    const { community } = this.access
    if (!community) return { result: 'version' }
    const expected = community.reveal()
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return { result: 'community' }
    const pdu = readPdu(raw)
    if (!isRequest(pdu)) return { result: 'malformed' }
    const room = MAX_ANSWER - FRAME_2C - expected.length
    return { result: 'answered', respond: (view) => communityMessage(given, answer(pdu, view, room)) }
  }

  #secured(message: SecuredMessage): Verdict {
    const { user } = this.access
    if (!user) return { result: 'version' }
    if (!this.#engine.id.equals(message.engineId)) return this.#refuse(message, 'engine')
    if (!user.name.equals(message.user)) return this.#refuse(message, 'user')
    if (!message.isEncrypted) return this.#refuse(message, 'level')
    if (!isSignedBy(user, message.bytes, message.digest)) return this.#refuse(message, 'digest')
    const isInWindow =
      message.boots === this.#engine.boots &&
      this.#engine.boots < MAX_BOOTS &&
      Math.abs(message.time - this.#seconds()) <= WINDOW
    if (!isInWindow) return this.#refuse(message, 'window', user)
    if (message.salt.length !== SALT_LENGTH) return this.#refuse(message, 'decryption')
    const { contextEngineId, context, pdu: raw } = readScopedPdu(user.decrypt(message.data, message))
    if (!this.#engine.id.equals(contextEngineId)) return this.#refuse(message, 'handler', user)
    if (context.length > 0) return this.#refuse(message, 'context', user)
    const pdu = readPdu(raw)
    if (!isRequest(pdu)) return { result: 'malformed' }
    const room = Math.min(MAX_ANSWER, message.maxSize) - FRAME_3
    return {
      result: 'answered',
      respond: (view) => this.#seal(message, user, scopedPdu(this.#engine.id, answer(pdu, view, room))),
    }
  }

  #seal({ id }: SecuredMessage, user: UserKeys, plain: Buffer): Buffer {
    const header = this.#header(id)
    const salt = Buffer.alloc(SALT_LENGTH)
    this.#salt = BigInt.asUintN(64, this.#salt + 1n)
    salt.writeBigUInt64BE(this.#salt)
    const data = user.encrypt(plain, { ...header, salt })
    return securedMessage({ ...header, user: user.name, data, salt, sign: signatureOf(user) })
  }

  #header(id: number) {
    const { id: engineId, boots } = this.#engine
    return { id, maxSize: MAX_REQUEST, engineId, boots, time: this.#seconds() }
  }

  /** Builds the report that the sender expects, if any: signed if the sender is known to be `user`. */
  #refuse(message: SecuredMessage, result: Fault, user?: UserKeys): Verdict {
    const count = (this.#faults.get(result) ?? 0) + 1
    this.#faults.set(result, count)
    if (!message.isReportable) return { result }
    const binding = sequence(der(TAG.OID, oidBytes(REPORTS[result])), counterValue(count))
    const reply = securedMessage({
      ...this.#header(message.id),
      user: message.user,
      data: scopedPdu(this.#engine.id, report(requestIdOf(message), binding)),
      ...(user && { sign: signatureOf(user) }),
    })
    return { result, reply }
  }
}

const signatureOf = ({ digestLength, sign }: UserKeys) => ({ length: digestLength, digest: sign })

/** Returns the request's id if it is in clear, or else 0 (RFC 3412 7.1.3). */
function requestIdOf({ isEncrypted, data }: SecuredMessage): number {
  if (isEncrypted) return 0
  try {
    return readPdu(readScopedPdu(data).pdu).id
  } catch (error) {
    if (error instanceof MalformedError) return 0
    throw error
  }
}
