/**
 * A client's first key exchange by hand, by RFC 4253 and the drafts, without ssh2: ssh2's two roles could
 * share an error.
 */
import { createHash, createPublicKey, randomBytes, verify } from 'node:crypto'
import type { Socket } from 'node:net'
import { Reader } from '../../../proxies/ssh/codec/reader.ts'
import { Writer } from '../../../proxies/ssh/codec/writer.ts'
import { clearPacket, connectSocket } from '../../attacks/raw.ts'

export const KEX = { init: 30, reply: 31, kexinit: 20, newkeys: 21, disconnect: 1 } as const

const IDENT = 'SSH-2.0-bare'
const CIPHER = 'aes128-gcm@openssh.com'
const MAC = 'hmac-sha2-256'
const WAIT_MS = 5_000

export interface Bare {
  socket: Socket
  /** Returns the numbers of the cleartext packets received; the last is NEWKEYS, since encryption follows. */
  types(): number[]
  /** Returns the payload of the first cleartext packet of this number; rejects if the connection ends. */
  payload(type: number): Promise<Buffer>
  /** Returns H of RFC 4253 8, with these bytes as K. */
  exchangeHash(ours: Uint8Array, reply: Buffer, secret: Uint8Array): Buffer
}

/** byte 20, 16 random bytes, ten name-lists, boolean, uint32 (RFC 4253 7.1). */
function kexInit(kex: string, hostKey: string, follows: boolean): Buffer {
  const writer = new Writer().byte(KEX.kexinit).raw(randomBytes(16))
  for (const list of [kex, hostKey, CIPHER, CIPHER, MAC, MAC, 'none', 'none', '', '']) writer.string(list)
  return writer.boolean(follows).uint32(0).finish()
}

export const kexPacket = (value: Uint8Array): Buffer =>
  clearPacket(new Writer().byte(KEX.init).string(value).finish())

/** Connects, and sends its identification and KEXINIT with the following packets in one write. */
export async function connectBare(options: {
  port: number
  kex: string
  hostKey?: string
  follows?: boolean
  packets: Uint8Array[]
}): Promise<Bare> {
  const socket = await connectSocket({ port: options.port })
  let bytes = Buffer.alloc(0)
  let closed = false
  socket.on('data', (data) => {
    bytes = Buffer.concat([bytes, data])
  })
  socket.on('close', () => {
    closed = true
  })
  const ours = kexInit(options.kex, options.hostKey ?? 'ssh-ed25519', options.follows === true)
  socket.write(Buffer.concat([Buffer.from(`${IDENT}\r\n`), clearPacket(ours), ...options.packets]))

  const payloads = (): Buffer[] => {
    const found: Buffer[] = []
    let at = bytes.indexOf('\r\n') + 2
    while (at >= 2 && at + 5 <= bytes.length) {
      const length = bytes.readUInt32BE(at)
      if (at + 4 + length > bytes.length) break
      const payload = bytes.subarray(at + 5, at + 4 + length - bytes[at + 4]!)
      found.push(payload)
      if (payload[0] === KEX.newkeys) break
      at += 4 + length
    }
    return found
  }
  return {
    socket,
    types: () => payloads().map((payload) => payload[0]!),
    payload: async (type) => {
      const end = Date.now() + WAIT_MS
      for (;;) {
        const found = payloads().find((payload) => payload[0] === type)
        if (found) return found
        if (closed) throw new Error(`the connection ended without a message ${type}`)
        if (Date.now() > end) throw new Error(`waited in vain for a message ${type}`)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    },
    exchangeHash: (init, reply, secret) => {
      const ident = bytes.subarray(0, bytes.indexOf('\r\n'))
      const theirs = payloads().find((payload) => payload[0] === KEX.kexinit)!
      const { hostKey, value } = readReply(reply)
      const writer = new Writer()
      for (const part of [Buffer.from(IDENT), ident, ours, theirs, hostKey, init, value, secret]) {
        writer.string(part)
      }
      return createHash('sha256').update(writer.finish()).digest()
    },
  }
}

/** byte 31, string host key, string the server's value, string signature (RFC 5656 4). */
export function readReply(reply: Buffer): { hostKey: Buffer; value: Buffer; signature: Buffer } {
  const reader = new Reader(reply, 'KEX_REPLY', 1)
  const [hostKey, value, signature] = [reader.string(), reader.string(), reader.string()].map((bytes) =>
    Buffer.from(bytes),
  )
  return { hostKey: hostKey!, value: value!, signature: signature! }
}

/** Whether the reply is signed over this hash by its own Ed25519 host key (RFC 8709 6). */
export function isSignedOver(hash: Uint8Array, reply: Buffer): boolean {
  const { hostKey, signature } = readReply(reply)
  const key = createPublicKey({
    key: Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), hostKey.subarray(-32)]),
    format: 'der',
    type: 'spki',
  })
  return verify(null, hash, key, signature.subarray(-64))
}
