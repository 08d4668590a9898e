/**
 * A target that gets no further than the key exchange: its messages are signed correctly, so a client that
 * does not check the values themselves would continue to the sign-in.
 */
import { createHash, randomBytes } from 'node:crypto'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Reader } from '../../proxies/ssh/codec/reader.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { clearPacket } from './raw.ts'

const IDENT = 'SSH-2.0-false'
const KEXINIT = 20
const NEWKEYS = 21
const KEX_INIT = 30
const KEX_REPLY = 31
const STRICT = 'kex-strict-s-v00@openssh.com'

export interface Answer {
  /** K_S. */
  hostKey: Uint8Array
  /** Q_S or f, as encoded in the string. */
  value: Uint8Array
  /** K as an mpint without its length, if known. */
  secret?: Uint8Array
  /** The signature field over H. */
  sign(hash: Buffer): Uint8Array
}

export interface Plan {
  kex: string
  /** The algorithm of the host key. */
  hostKey: string
  /** Sent instead of the identification. */
  greeting?: Uint8Array
  /** Repeat the bytes before KEXINIT, as fast as they are read, and send nothing else. */
  isEndless?: boolean
  /** Bytes to send before KEXINIT, between it and the reply, and behind the reply's NEWKEYS. */
  before?: Uint8Array
  between?: Uint8Array
  behind?: Uint8Array
  /** Makes the reply to the bastion's Q_C or e; if absent, nothing follows KEXINIT. */
  answer?(init: Buffer): Answer
}

export interface FalseTarget {
  readonly port: number
  plan: Plan
  /** Numbers of the clear messages that the bastion has sent on the last connection. */
  readonly received: number[]
  stop(): void
}

/** byte 20, 16 random bytes, ten name-lists, boolean, uint32 (RFC 4253 7.1). */
function kexInit({ kex, hostKey }: Plan): Buffer {
  const lists = [`${kex},${STRICT}`, hostKey, ...two('aes128-ctr'), ...two('hmac-sha2-256'), ...two('none')]
  const writer = new Writer().byte(KEXINIT).raw(randomBytes(16))
  for (const list of [...lists, '', '']) writer.string(list)
  return writer.boolean(false).uint32(0).finish()
}

const two = (name: string): [string, string] => [name, name]

export async function startFalseTarget(first: Plan): Promise<FalseTarget> {
  const sockets = new Set<Socket>()
  let received: number[] = []
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    const { plan } = target
    received = []
    const ours = kexInit(plan)
    socket.write(plan.greeting ?? `${IDENT}\r\n`)
    if (plan.isEndless) repeat(socket, plan.before ?? NOTHING)
    else socket.write(Buffer.concat([plan.before ?? NOTHING, clearPacket(ours), plan.between ?? NOTHING]))
    let bytes = Buffer.alloc(0)
    let seen = 0
    let theirs = NOTHING
    socket.on('data', (data) => {
      bytes = Buffer.concat([bytes, data])
      const { ident, payloads } = clearPackets(bytes)
      for (const payload of payloads.slice(seen)) {
        received.push(payload[0]!)
        if (payload[0] === KEXINIT) theirs = payload
        else if (payload[0] === KEX_INIT && plan.answer) reply(socket, plan, { ident, theirs, ours, payload })
      }
      seen = payloads.length
    })
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
  const target: FalseTarget = {
    port,
    plan: first,
    get received() {
      return received
    },
    stop: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
  return target
}

const NOTHING: Buffer = Buffer.alloc(0)

/** Sends the bytes until the socket closes. */
function repeat(socket: Socket, bytes: Uint8Array): void {
  const more = (): void => {
    while (!socket.destroyed && socket.writable) if (!socket.write(bytes)) return
  }
  socket.on('drain', more)
  more()
}

/** RFC 4253 8 and RFC 5656 4: H over both identifications, both KEXINITs, K_S, both values and K. */
function reply(
  socket: Socket,
  { answer, behind }: Plan,
  seen: { ident: Buffer; theirs: Buffer; ours: Buffer; payload: Buffer },
): void {
  const init = Buffer.from(new Reader(seen.payload, 'KEX_INIT', 1).string())
  const { hostKey, value, secret = NOTHING, sign } = answer!(init)
  const hashed = new Writer()
  for (const part of [seen.ident, Buffer.from(IDENT), seen.theirs, seen.ours, hostKey, init, value, secret]) {
    hashed.string(part)
  }
  const hash = createHash('sha256').update(hashed.finish()).digest()
  const message = new Writer().byte(KEX_REPLY).string(hostKey).string(value).string(sign(hash)).finish()
  socket.write(clearPacket(message))
  socket.write(Buffer.concat([clearPacket(Buffer.of(NEWKEYS)), behind ?? NOTHING]))
}

/** Returns the data up to the peer's NEWKEYS. */
function clearPackets(bytes: Buffer): { ident: Buffer; payloads: Buffer[] } {
  const end = bytes.indexOf('\r\n')
  const payloads: Buffer[] = []
  for (let at = end + 2; end >= 0 && at + 5 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    if (at + 4 + length > bytes.length) break
    const payload = bytes.subarray(at + 5, at + 4 + length - bytes[at + 4]!)
    payloads.push(payload)
    if (payload[0] === NEWKEYS) break
    at += 4 + length
  }
  return { ident: bytes.subarray(0, Math.max(0, end)), payloads }
}
