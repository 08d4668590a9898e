/**
 * A client that follows no rule: after the key exchange it sends any payload at any time, and passes every
 * received payload to the test. Below it is a bare socket for attacks before the keys. ssh2 agrees the keys
 * and encrypts.
 */
import { createRequire } from 'node:module'
import { connect, type Socket } from 'node:net'
import ssh2, { type ParsedKey } from 'ssh2'
import { buildChannelOpen } from '../../proxies/ssh/codec/build.ts'
import { Reader } from '../../proxies/ssh/codec/reader.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'

const require = createRequire(import.meta.url)

/** The used part of ssh2's Protocol object, as of the pinned 1.17.0. */
interface Protocol {
  start(): void
  parse(chunk: Buffer, from: number, to: number): void
  cleanup(): void
  rekey(): void
  _onPayload: (payload: Buffer) => unknown
  _kex: { sessionID: Buffer }
  _packetRW: { write: { allocStart: number; alloc(size: number): Buffer; finalize(packet: Buffer): Buffer } }
}
const Protocol = require('ssh2/lib/protocol/Protocol.js') as new (config: {
  ident: string
  onWrite: (data: Buffer) => void
  onError: (error: Error) => void
  onHandshakeComplete: () => void
  messageHandlers: object
}) => Protocol
const { sendPacket } = require('ssh2/lib/protocol/utils.js') as {
  sendPacket: (protocol: Protocol, packet: Buffer) => boolean
}

/** Message numbers below the connection layer (RFC 4250 4.1.2, RFC 4252, RFC 4256). */
export const AUTH = {
  disconnect: 1,
  ignore: 2,
  debug: 4,
  serviceRequest: 5,
  serviceAccept: 6,
  request: 50,
  failure: 51,
  success: 52,
  banner: 53,
  pkOk: 60,
  infoRequest: 60,
  infoResponse: 61,
} as const

const HOST = '127.0.0.1'
const WAIT_MS = 10_000

export interface RawOptions {
  port: number
  /** Source address: 127.0.0.2 and so on are different clients. */
  from?: string
  /** Bytes to send in clear behind the client's KEXINIT. */
  insert?: Uint8Array
}

export interface RawClient {
  readonly socket: Socket
  /** The client's port: `client_port` in the events of this connection. */
  readonly port: number
  /** Whether an event is of this connection: a port alone is given to several addresses. */
  isOf(event: Readonly<Record<string, unknown>>): boolean
  /** RFC 4253 7.2: the hash of the first key exchange. */
  readonly sessionId: Buffer
  /** Received payloads that `next` has not returned, without key exchanges. */
  readonly received: Buffer[]
  /** Whether the server has closed, or the connection broke. */
  readonly closed: boolean
  send(...payloads: Uint8Array[]): void
  /**
   * Returns the next payload of one of these numbers, and drops those before; rejects when the connection
   * ends.
   */
  next(...types: number[]): Promise<Buffer>
  /** Resolves when the server has closed; rejects after the timeout of `until`. */
  untilClosed(): Promise<void>
  rekey(): void
  destroy(): void
}

/** Connects and exchanges keys. */
export async function connectRaw({ port, from, insert }: RawOptions): Promise<RawClient> {
  const socket = await connectSocket({ port, ...(from !== undefined && { from }) })
  const received: Buffer[] = []
  const waiting = new Set<() => void>()
  const wake = (): void => {
    for (const check of waiting) check()
  }
  let agreed = false
  let writes = 0
  let closed = false
  const protocol = new Protocol({
    ident: 'raw',
    onWrite: (data) => {
      if (!socket.writable) return
      socket.write(data)
      // The first write is the identification string, the second KEXINIT.
      if (++writes === 2 && insert) socket.write(insert)
    },
    onError: () => socket.destroy(),
    onHandshakeComplete: () => {
      agreed = true
      wake()
    },
    messageHandlers: {},
  })
  const original = protocol._onPayload
  protocol._onPayload = (payload) => {
    const type = payload[0] ?? 0
    // Key exchanges stay with ssh2; its payloads are slices of a buffer that it reuses.
    if (type >= 20 && type < 50) return original(payload)
    received.push(Buffer.from(payload))
    wake()
    return undefined
  }
  socket.on('data', (data) => {
    try {
      protocol.parse(data, 0, data.length)
    } catch {
      socket.destroy()
    }
  })
  for (const event of ['end', 'close']) {
    socket.on(event, () => {
      closed = true
      wake()
    })
  }
  protocol.start()
  /** Resolves when `probe` returns a value; called at every message, since times are measured here. */
  const wait = <T>(what: string, probe: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer)
        waiting.delete(check)
      }
      const check = (): void => {
        const found = probe()
        if (found === undefined && !closed) return
        end()
        if (found !== undefined) resolve(found)
        else reject(new Error(`the connection ended before ${what}`))
      }
      const timer = setTimeout(() => {
        end()
        reject(new Error(`waited in vain for ${what}`))
      }, WAIT_MS)
      waiting.add(check)
      check()
    })
  await wait('keys were agreed', () => agreed || undefined)
  const { localPort = 0, localAddress } = socket
  return {
    socket,
    port: localPort,
    isOf: (event) => event['client_port'] === localPort && event['client_ip'] === localAddress,
    sessionId: Buffer.from(protocol._kex.sessionID),
    received,
    get closed() {
      return closed
    },
    send: (...payloads) => {
      for (const payload of payloads) {
        const { write } = protocol._packetRW
        const packet = write.alloc(payload.length)
        packet.set(payload, write.allocStart)
        sendPacket(protocol, write.finalize(packet))
      }
    },
    next: (...types) =>
      wait(`a message of ${types}`, () => {
        for (let payload = received.shift(); payload; payload = received.shift()) {
          if (types.includes(payload[0] ?? 0)) return payload
        }
        return undefined
      }),
    untilClosed: async () => {
      await wait('the end of the connection', () => closed || undefined)
    },
    rekey: () => protocol.rekey(),
    destroy: () => socket.destroy(),
  }
}

/** Opens a TCP connection only. Errors just end it. */
export function connectSocket({ port, from }: RawOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: HOST,
      port,
      noDelay: true,
      ...(from !== undefined && { localAddress: from }),
    })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      socket.on('error', () => undefined)
      resolve(socket)
    })
  })
}

/** Returns a packet in the form before there are keys (RFC 4253 6). */
export function clearPacket(payload: Uint8Array): Buffer {
  const padding = 8 - ((5 + payload.length) % 8) + 8
  const head = new Writer().uint32(1 + payload.length + padding).byte(padding)
  return head.raw(payload).raw(Buffer.alloc(padding)).finish()
}

/** Connects by `connectRaw` and requests the sign-in service (RFC 4253 10). */
export async function connectToSignIn(options: RawOptions): Promise<RawClient> {
  const client = await connectRaw(options)
  client.send(serviceRequest('ssh-userauth'))
  await client.next(AUTH.serviceAccept)
  return client
}

/** Connects a client and signs in by password. */
export async function signInRaw(
  options: RawOptions & { user: string; password: string },
): Promise<RawClient> {
  const client = await connectToSignIn(options)
  client.send(passwordRequest(options.user, options.password))
  const [answer] = await client.next(AUTH.success, AUTH.failure)
  if (answer !== AUTH.success) throw new Error(`${options.user} was not signed in`)
  return client
}

/** byte 5, string service name. */
export const serviceRequest = (name: string): Buffer =>
  new Writer().byte(AUTH.serviceRequest).string(name).finish()

/** byte 50, string user, string service, string method, the method's fields (RFC 4252 5). */
export const authRequest = (
  user: string | Uint8Array,
  method: string,
  fields: Uint8Array = Buffer.alloc(0),
): Buffer =>
  new Writer().byte(AUTH.request).string(user).string('ssh-connection').string(method).raw(fields).finish()

/** FALSE, string password (RFC 4252 8). */
export const passwordRequest = (user: string | Uint8Array, password: string): Buffer =>
  authRequest(user, 'password', new Writer().boolean(false).string(password).finish())

/** string language, string submethods (RFC 4256 3.1). */
export const interactiveRequest = (user: string): Buffer =>
  authRequest(user, 'keyboard-interactive', new Writer().string('').string('').finish())

/** byte 61, uint32 number of answers, string answer (RFC 4256 3.4). */
export const interactiveAnswer = (password: string): Buffer =>
  new Writer().byte(AUTH.infoResponse).uint32(1).string(password).finish()

/** A key pair to sign in with; `algorithm` is the one of the signature. */
export interface Signer {
  algorithm: string
  blob: Buffer
  sign(data: Buffer): Buffer
  /** Makes the whole signature field, if it is more than the algorithm's name and the signature. */
  field?(data: Buffer): Buffer
}

/** Returns the signer of a private key's text; `algorithm` if it is not the key's own name. */
export function signerOf(privateKey: string, algorithm?: string): Signer {
  const parsed = ssh2.utils.parseKey(privateKey)
  if (parsed instanceof Error) throw parsed
  const key: ParsedKey = parsed
  const hash = algorithm === 'rsa-sha2-256' ? 'sha256' : algorithm === 'rsa-sha2-512' ? 'sha512' : undefined
  return {
    algorithm: algorithm ?? key.type,
    blob: key.getPublicSSH(),
    sign: (data) => {
      const signature: unknown = key.sign(data, hash)
      if (signature instanceof Error) throw signature
      return signature as Buffer
    },
  }
}

/** Queries whether a key would be accepted: FALSE, string algorithm, string key (RFC 4252 7). */
export const keyOffer = (user: string, { algorithm, blob }: Signer): Buffer =>
  authRequest(user, 'publickey', new Writer().boolean(false).string(algorithm).string(blob).finish())

/** TRUE, string algorithm, string key: the signed data behind the session's id (RFC 4252 7). */
export const toBeSigned = (user: string, { algorithm, blob }: Signer): Buffer =>
  authRequest(user, 'publickey', new Writer().boolean(true).string(algorithm).string(blob).finish())

/** Makes a sign-in by key. `by` signs, over `sessionId`, a request that names `key`. */
export function keyRequest(user: string, key: Signer, sessionId: Uint8Array, by: Signer = key): Buffer {
  const request = toBeSigned(user, key)
  const data = new Writer().string(sessionId).raw(request).finish()
  const field = by.field?.(data) ?? new Writer().string(by.algorithm).string(by.sign(data)).finish()
  return new Writer().raw(request).string(field).finish()
}

/** Makes the CHANNEL_OPEN of a session with the largest window. */
export const sessionOpen = (sender: number, window = 0x7fffffff): Buffer =>
  channelOpen('session', sender, window)

export const channelOpen = (
  type: string,
  sender: number,
  window = 0x7fffffff,
  typeData: Uint8Array = Buffer.alloc(0),
): Buffer => buildChannelOpen({ type, sender, window, maxPacket: 32_768, typeData })

/** Returns the methods of a USERAUTH_FAILURE (RFC 4252 5.1). */
export const methodsOf = (failure: Buffer): string =>
  Buffer.from(new Reader(failure, 'USERAUTH_FAILURE', 1).string()).toString()

/** Returns the text of a USERAUTH_BANNER (RFC 4252 5.4). */
export const textOf = (banner: Buffer): string =>
  Buffer.from(new Reader(banner, 'USERAUTH_BANNER', 1).string()).toString()
