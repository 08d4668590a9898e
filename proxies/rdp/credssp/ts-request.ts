/** TSRequest (MS-CSSP 2.2.1), the only message of CredSSP, versions 2 to 6. */
import { Buffer } from 'node:buffer'
import { context, contextTag, DerReader, integer, octets, readHead, sequence, TAG } from '../../bytes/der.ts'
import { MalformedError } from '../../bytes/malformed.ts'

/** Bytes of a message: Kerberos tickets have up to 48 KiB. */
export const TS_REQUEST_LIMIT = 64 * 1024
/** The version that the bastion sends. */
export const VERSION = 6
export const NONCE_LENGTH = 32

export interface TsRequest {
  version: number
  /** A token of SPNEGO or of a mechanism. */
  negoToken?: Uint8Array | undefined
  /** Sealed TSCredentials. */
  authInfo?: Uint8Array | undefined
  pubKeyAuth?: Uint8Array | undefined
  /** NTSTATUS */
  errorCode?: number | undefined
  clientNonce?: Uint8Array | undefined
}

const WHAT = 'credssp'

/** Throws MalformedError. Values are views of the bytes. */
export function parseTsRequest(bytes: Uint8Array): TsRequest {
  const outer = new DerReader(bytes, WHAT)
  const body = outer.enter(TAG.SEQUENCE)
  const version = body.enter(contextTag(0)).uint32()
  // NegoData is a list; peers send one token only (2.2.1.1).
  const tokens = body.enterOptional(contextTag(1))?.enter(TAG.SEQUENCE)
  const negoToken = tokens?.enter(TAG.SEQUENCE).enter(contextTag(0)).take(TAG.OCTET_STRING)
  const authInfo = body.enterOptional(contextTag(2))?.take(TAG.OCTET_STRING)
  const pubKeyAuth = body.enterOptional(contextTag(3))?.take(TAG.OCTET_STRING)
  const errorCode = body.enterOptional(contextTag(4))?.uint32()
  const clientNonce = body.enterOptional(contextTag(5))?.take(TAG.OCTET_STRING)
  if (!body.isAtEnd || !outer.isAtEnd) {
    throw new MalformedError(`${WHAT}: the end of a TSRequest was expected, found more`)
  }
  return { version, negoToken, authInfo, pubKeyAuth, errorCode, clientNonce }
}

export function buildTsRequest(request: TsRequest): Buffer {
  const { version, negoToken, authInfo, pubKeyAuth, errorCode, clientNonce } = request
  const parts = [context(0, integer(version))]
  if (negoToken) parts.push(context(1, sequence(sequence(context(0, octets(negoToken))))))
  if (authInfo) parts.push(context(2, octets(authInfo)))
  if (pubKeyAuth) parts.push(context(3, octets(pubKeyAuth)))
  if (errorCode !== undefined) parts.push(context(4, integer(errorCode)))
  if (clientNonce) parts.push(context(5, octets(clientNonce)))
  return sequence(...parts)
}

/** Splits a stream into TSRequests. `rest` returns the bytes after the last one, which belong to RDP. */
export class TsRequestSplitter {
  #pending = Buffer.alloc(0)

  /** Adds received bytes. */
  add(chunk: Uint8Array): void {
    this.#pending = Buffer.concat([this.#pending, chunk])
  }

  /** Returns the next whole message, or undefined if it is incomplete. Throws MalformedError. */
  next(): Buffer | undefined {
    const head = readHead(this.#pending, 0, WHAT)
    if (head === undefined) return undefined
    if (head.tag !== TAG.SEQUENCE) {
      throw new MalformedError(`${WHAT}: a TSRequest was expected, found tag 0x${head.tag.toString(16)}`)
    }
    const size = head.size + head.length
    if (TS_REQUEST_LIMIT < size) {
      throw new MalformedError(
        `${WHAT}: a TSRequest of at most ${TS_REQUEST_LIMIT} bytes was expected, found ${size} bytes`,
      )
    }
    if (this.#pending.length < size) return undefined
    const message = this.#pending.subarray(0, size)
    this.#pending = this.#pending.subarray(size)
    return message
  }

  /** Bytes certainly missing from the next message; valid only after `next` has returned undefined. */
  get wanted(): number {
    const head = readHead(this.#pending, 0, WHAT)
    return head ? head.size + head.length - this.#pending.length : 1
  }

  /** Returns the bytes that were received and not consumed. */
  rest(): Buffer {
    return this.#pending
  }
}

/** Reads one whole message and no byte after it. Rejects with MalformedError, and as `read` does. */
export async function readTsRequest(from: { read(bytes: number): Promise<Uint8Array> }): Promise<Buffer> {
  const splitter = new TsRequestSplitter()
  for (let message = splitter.next(); ; message = splitter.next()) {
    if (message) return message
    splitter.add(await from.read(splitter.wanted))
  }
}
