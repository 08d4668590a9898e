/** The tokens of SPNEGO (RFC 4178 4.2), read and written. */
import { Buffer } from 'node:buffer'
import { context, contextTag, DerReader, der, octets, sequence, TAG } from './der.ts'
import { MalformedError } from './malformed.ts'

/** 1.3.6.1.5.5.2, in DER. */
export const SPNEGO_OID = Buffer.from('06062b0601050502', 'hex')
/** Mechanisms in a list: Windows offers four. */
export const MECHANISM_LIMIT = 16

export const STATE = { COMPLETED: 0, INCOMPLETE: 1, REJECT: 2, REQUEST_MIC: 3 } as const

/** NegTokenInit, the first token. */
export interface InitToken {
  /** In DER, tag and length included, in order of preference. */
  mechanisms: Uint8Array[]
  /** The list as received: signatures cover these bytes. */
  mechanismList: Uint8Array
  /** Token of the first mechanism. */
  token: Uint8Array | undefined
}

/** NegTokenResp: all later tokens of both sides. */
export interface ResponseToken {
  state?: number | undefined
  mechanism?: Uint8Array | undefined
  token?: Uint8Array | undefined
  signature?: Uint8Array | undefined
}

const WHAT = 'spnego'

/** Throws MalformedError. */
export function parseInit(bytes: Uint8Array): InitToken {
  const frame = new DerReader(bytes, WHAT).enter(TAG.APPLICATION)
  const { whole } = frame.any()
  if (!SPNEGO_OID.equals(whole)) {
    throw new MalformedError(
      `${WHAT}: its object identifier was expected, found ${Buffer.from(whole).toString('hex')}`,
    )
  }
  const body = frame.enter(contextTag(0)).enter(TAG.SEQUENCE)
  const mechanismList = body.enter(contextTag(0)).any().whole
  const list = new DerReader(mechanismList, WHAT).enter(TAG.SEQUENCE)
  const mechanisms: Uint8Array[] = []
  while (!list.isAtEnd) {
    if (mechanisms.length === MECHANISM_LIMIT) {
      throw new MalformedError(`${WHAT}: at most ${MECHANISM_LIMIT} mechanisms were expected, found more`)
    }
    const { tag, whole } = list.any()
    if (tag !== TAG.OID) {
      throw new MalformedError(`${WHAT}: an object identifier was expected, found tag 0x${tag.toString(16)}`)
    }
    mechanisms.push(whole)
  }
  // Skips reqFlags, which must be ignored (4.2.1); the hints after the token are sent by servers only.
  body.optional(contextTag(1))
  const token = body.enterOptional(contextTag(2))?.take(TAG.OCTET_STRING)
  return { mechanisms, mechanismList, token }
}

/** The list of mechanisms in DER, which signatures cover. */
export const buildMechanismList = (mechanisms: readonly Uint8Array[]): Buffer => sequence(...mechanisms)

export function buildInit(mechanismList: Uint8Array, token: Uint8Array): Buffer {
  const body = sequence(context(0, mechanismList), context(2, octets(token)))
  return der(TAG.APPLICATION, SPNEGO_OID, context(0, body))
}

/** Throws MalformedError. */
export function parseResponse(bytes: Uint8Array): ResponseToken {
  const body = new DerReader(bytes, WHAT).enter(contextTag(1)).enter(TAG.SEQUENCE)
  const state = body.enterOptional(contextTag(0))?.take(TAG.ENUMERATED)
  if (state && state.length !== 1) {
    throw new MalformedError(`${WHAT}: a state of one byte was expected, found ${state.length}`)
  }
  const mechanism = body.enterOptional(contextTag(1))?.any().whole
  const token = body.enterOptional(contextTag(2))?.take(TAG.OCTET_STRING)
  const signature = body.enterOptional(contextTag(3))?.take(TAG.OCTET_STRING)
  return { state: state?.[0], mechanism, token, signature }
}

export function buildResponse({ state, mechanism, token, signature }: ResponseToken): Buffer {
  const parts: Buffer[] = []
  if (state !== undefined) parts.push(context(0, der(TAG.ENUMERATED, Buffer.from([state]))))
  if (mechanism) parts.push(context(1, mechanism))
  if (token) parts.push(context(2, octets(token)))
  if (signature) parts.push(context(3, octets(signature)))
  return context(1, sequence(...parts))
}
