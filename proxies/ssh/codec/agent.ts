/**
 * The protocol of key agents (draft-ietf-sshm-ssh-agent), client side. Each message is a uint32 length, a
 * byte with its type, and its fields. Throws MalformedError.
 */

import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { latin1 } from '../../bytes/text.ts'
import { uint32At } from '../../bytes/uint32.ts'
import { Reader } from './reader.ts'
import { Writer } from './writer.ts'

/** The limit of OpenSSH's own agent and clients. */
export const MAX_AGENT_MESSAGE = 256 * 1024
/** Keys in one list of an agent. */
export const MAX_AGENT_IDENTITIES = 2048
/** Size of a key or certificate; an RSA key of 16384 bits has 2 KiB. */
const MAX_BLOB = 16 * 1024
const MAX_COMMENT = 16 * 1024
const MAX_SIGNATURE = 16 * 1024
const LENGTH_BYTES = 4

export const AGENT = {
  failure: 5,
  requestIdentities: 11,
  identitiesAnswer: 12,
  signRequest: 13,
  signResponse: 14,
} as const

const SIGN_RSA_SHA2_512 = 4

/** A key of the agent, with the parameters for signing with it. */
export interface AgentKey {
  blob: Buffer
  /** The public key algorithm for the sign-in (RFC 4252 7, RFC 8332 3.2, PROTOCOL.certkeys). */
  algorithm: string
  /** The algorithm that the signature must name. */
  signature: string
  /** Set for RSA keys: the agent's default for them is SHA-1. */
  flags: number
}

const PLAIN = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
] as const

/** By the key type inside the blob. */
const KINDS: ReadonlyMap<string, Omit<AgentKey, 'blob'>> = new Map(
  [
    ...PLAIN.map((type) => ({ type, algorithm: type, signature: type, flags: 0 })),
    ...PLAIN.map((type) => {
      const certified = `${type.replace('@openssh.com', '')}-cert-v01@openssh.com`
      return { type: certified, algorithm: certified, signature: type, flags: 0 }
    }),
    {
      type: 'ssh-rsa',
      algorithm: 'rsa-sha2-512',
      signature: 'rsa-sha2-512',
      flags: SIGN_RSA_SHA2_512,
    },
    {
      type: 'ssh-rsa-cert-v01@openssh.com',
      algorithm: 'rsa-sha2-512-cert-v01@openssh.com',
      signature: 'rsa-sha2-512',
      flags: SIGN_RSA_SHA2_512,
    },
  ].map(({ type, ...kind }) => [type, kind]),
)

export function buildRequestIdentities(): Buffer {
  return new Writer(8).uint32(1).byte(AGENT.requestIdentities).finish()
}

export function buildSignRequest(key: AgentKey, data: Uint8Array): Buffer {
  const body = new Writer(32 + key.blob.length + data.length)
    .byte(AGENT.signRequest)
    .string(key.blob)
    .string(data)
    .uint32(key.flags)
    .finish()
  return new Writer(LENGTH_BYTES + body.length).string(body).finish()
}

/**
 * Returns copies of the usable keys in an IDENTITIES_ANSWER, in order; leaves out others, such as DSA.
 * Returns none if the agent sends FAILURE.
 */
export function parseIdentities(message: Uint8Array): AgentKey[] {
  const reader = new Reader(message, 'list of the agent')
  const type = reader.byte()
  if (type === AGENT.failure) return []
  if (type !== AGENT.identitiesAnswer)
    throw new MalformedError(`a list of keys was expected of the agent, found message ${type}`)
  const count = reader.uint32()
  if (MAX_AGENT_IDENTITIES < count)
    throw new MalformedError(
      `at most ${MAX_AGENT_IDENTITIES} keys were expected of the agent, found ${count}`,
    )
  const keys: AgentKey[] = []
  for (let index = 0; index < count; index++) {
    const blob = reader.string(MAX_BLOB)
    reader.string(MAX_COMMENT)
    const kind = kindOf(blob)
    if (kind) keys.push({ ...kind, blob: Buffer.from(blob) })
  }
  reader.end()
  return keys
}

function kindOf(blob: Uint8Array): Omit<AgentKey, 'blob'> | undefined {
  const length = blob.length < LENGTH_BYTES ? 0 : uint32At(blob, 0)
  if (blob.length - LENGTH_BYTES < length) return undefined
  return KINDS.get(latin1(blob.subarray(LENGTH_BYTES, LENGTH_BYTES + length)))
}

/**
 * Returns a copy of the signature field (RFC 4253 6.6) in a SIGN_RESPONSE. Returns undefined if the agent
 * refused, or signed by another algorithm: old agents know RSA with SHA-1 only.
 */
export function parseSignature(message: Uint8Array, key: AgentKey): Buffer | undefined {
  const reader = new Reader(message, 'signature of the agent')
  const type = reader.byte()
  if (type === AGENT.failure) return undefined
  if (type !== AGENT.signResponse)
    throw new MalformedError(`a signature was expected of the agent, found message ${type}`)
  const field = reader.string(MAX_SIGNATURE)
  reader.end()
  const inner = new Reader(field, 'signature field')
  const algorithm = inner.name()
  inner.string()
  return algorithm === key.signature ? Buffer.from(field) : undefined
}

/** Assembles an agent's messages from pieces of any size. Holds at most one message. */
export class AgentMessages {
  #bytes: Buffer = Buffer.alloc(0)
  #length = 0

  /** Returns the next message without its length once it is complete. One request gets one response. */
  push(bytes: Uint8Array): Buffer | undefined {
    this.#add(bytes)
    if (this.#length < LENGTH_BYTES) return undefined
    const length = uint32At(this.#bytes, 0)
    if (length === 0 || MAX_AGENT_MESSAGE < length) {
      throw new MalformedError(
        `a message of 1 to ${MAX_AGENT_MESSAGE} bytes was expected of the agent, found ${length}`,
      )
    }
    const end = LENGTH_BYTES + length
    if (end < this.#length) throw new MalformedError('the agent said more than it was asked for')
    if (this.#length < end) return undefined
    const message = this.#bytes.subarray(LENGTH_BYTES, end)
    this.#bytes = Buffer.alloc(0)
    this.#length = 0
    return message
  }

  /** Doubles the buffer, so that a message in pieces of one byte is not copied for each piece. */
  #add(bytes: Uint8Array): void {
    const length = this.#length + bytes.length
    if (length > this.#bytes.length) {
      const room = Buffer.alloc(Math.max(length, 2 * this.#bytes.length))
      this.#bytes.copy(room, 0, 0, this.#length)
      this.#bytes = room
    }
    this.#bytes.set(bytes, this.#length)
    this.#length = length
  }
}
