/** Messages of the method gssapi-with-mic (RFC 4462 3), with Kerberos as the one mechanism. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { Reader } from './reader.ts'
import { Writer } from './writer.ts'

export const GSSAPI_METHOD = 'gssapi-with-mic'

export const GSSAPI = {
  response: 60,
  token: 61,
  exchangeComplete: 63,
  error: 64,
  errorToken: 65,
  mic: 66,
} as const

/** 1.2.840.113554.1.2.2, in DER. */
export const KERBEROS_OID = Buffer.from('06092a864886f712010202', 'hex')
/** Mechanisms of one request; clients name each one in a request of its own, or a handful. */
const MAX_MECHANISMS = 32
const MAX_MECHANISM = 128
/** Longest token: a packet has less. */
export const MAX_TOKEN = 65_536
/** A signature under a key of Kerberos has 28 to 40 bytes. */
export const MAX_MIC = 256

const MAX_ERROR = 4096

const USERAUTH_REQUEST = 50
const SERVICE = 'ssh-connection'

/** Returns whether Kerberos is among the mechanisms of a request: uint32 count, and a string for each. */
export function namesKerberos(mechanisms: Uint8Array): boolean {
  const reader = new Reader(mechanisms, 'request of gssapi-with-mic')
  const count = reader.uint32()
  if (MAX_MECHANISMS < count)
    throw new MalformedError(
      `at most ${MAX_MECHANISMS} mechanisms of the GSS-API were expected, found ${count}`,
    )
  const found = Array.from({ length: count }, () => KERBEROS_OID.equals(reader.string(MAX_MECHANISM)))
  reader.end()
  return found.includes(true)
}

/** Builds the USERAUTH_REQUEST of a client, for Kerberos. */
export const buildGssapiRequest = (login: string): Buffer =>
  new Writer(96).raw(requestOf(login)).uint32(1).string(KERBEROS_OID).finish()

/** Builds the server's choice of Kerberos. */
export const buildGssapiResponse = (): Buffer =>
  new Writer(16).byte(GSSAPI.response).string(KERBEROS_OID).finish()

/** Returns whether a message is the server's choice of Kerberos. */
export const choosesKerberos = (payload: Uint8Array): boolean => buildGssapiResponse().equals(payload)

export const buildGssapiToken = (token: Uint8Array): Buffer =>
  new Writer(8 + token.length).byte(GSSAPI.token).string(token).finish()

/** Returns a copy of the token of a message. */
export const parseGssapiToken = (payload: Uint8Array): Uint8Array =>
  onlyString(payload, 'token of gssapi-with-mic', MAX_TOKEN)

/** Returns the text of a server's error (3.8). */
export function parseGssapiError(payload: Uint8Array): string {
  const reader = new Reader(payload, 'error of gssapi-with-mic', 1)
  // Numbers of the GSS-API and of its mechanism.
  reader.uint32()
  reader.uint32()
  return Buffer.from(reader.string(MAX_ERROR)).toString()
}

export const buildGssapiMic = (mic: Uint8Array): Buffer =>
  new Writer(8 + mic.length).byte(GSSAPI.mic).string(mic).finish()

/** Returns a copy of the signature of a message. */
export const parseGssapiMic = (payload: Uint8Array): Uint8Array =>
  onlyString(payload, 'signature of gssapi-with-mic', MAX_MIC)

/** Returns the data that the client signs (3.5): session identifier, and the request without its mechanisms. */
export const signedGssapiData = (sessionId: Uint8Array, login: string): Buffer =>
  new Writer(128).string(sessionId).raw(requestOf(login)).finish()

function requestOf(login: string): Buffer {
  return new Writer(64).byte(USERAUTH_REQUEST).string(login).string(SERVICE).string(GSSAPI_METHOD).finish()
}

function onlyString(payload: Uint8Array, what: string, limit: number): Uint8Array {
  const reader = new Reader(payload, what, 1)
  const value = Uint8Array.from(reader.string(limit))
  reader.end()
  return value
}
