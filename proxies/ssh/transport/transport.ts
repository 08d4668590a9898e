/**
 * One leg's SSH transport, reduced to the relay's needs: connection-layer messages (RFC 4254, 80 to 127) in
 * and out, back-pressure, rekeying, an end.
 *
 * ssh2 does key exchange, encryption and user authentication. Its Session and Channel layer loses data (early
 * requests, the tail before a close, pty modes), so its handler of connection-layer messages is replaced by a
 * function that delivers the raw payload.
 */

import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { MalformedError } from '../../bytes/malformed.ts'
import { FLOOD_MARK, LINGER_MS, SEND_HIGH_WATER } from '../../net/limits.ts'
import { ReadTurn } from '../../net/read-turns.ts'
import { READ_SIZE, takeReads } from '../../net/shared-read.ts'
import { type GlobalRequest, MSG, parseGlobalRequest } from '../codec/messages.ts'
import { AnswerOrder } from './answer-order.ts'
import { failureOf } from './failure.ts'
import type { Leg } from './leg.ts'
import { KEX_TIMEOUT_MS, MAX_OWED, REKEY_LIMITS } from './limits.ts'
import { PacketReader, type PacketSource } from './packet-reader.ts'
import { PacketWriter, writingBehind } from './packet-writer.ts'
import { type Sealer, sealerOf } from './sealers.ts'
import { SERVICE_ACCEPT, ServiceRequests } from './service-requests.ts'
import {
  afterExchange,
  releaseUnused,
  type Ssh2Cipher,
  type Ssh2Peer,
  type Ssh2Protocol,
  sendPacket,
} from './ssh2.ts'

const KEXINIT = 20
const METHOD_FIRST = 60
const METHOD_LAST = 79
const CONNECTION_LAYER_FIRST = 80
const CONNECTION_LAYER_LAST = 127
const DISCONNECT_PROTOCOL_ERROR = 2
const DISCONNECT_BY_APPLICATION = 11

export type RekeyLimits = typeof REKEY_LIMITS

interface Usage {
  bytes: number
  packets: number
}

export class Transport implements Leg {
  /**
   * Called with each connection-layer message. The callee may rewrite it, and must copy what it keeps: the
   * next read overwrites it. Before this is set, such messages are a breach of protocol (RFC 4252: they
   * follow authentication).
   */
  onMessage: ((payload: Buffer) => void) | undefined
  /**
   * Answers global requests that are the front's own: returns the reply, or undefined to leave the request to
   * `onMessage`. All replies keep the order of the requests.
   */
  onGlobalRequest: ((request: GlobalRequest) => Buffer | undefined) | undefined
  /** Called with a copy of each message of a sign-in method (RFC 4252 6). Returns false to leave it to ssh2. */
  onMethodMessage: ((payload: Buffer) => boolean) | undefined
  /** Takes over outgoing messages, which follow later through `sendNow`. */
  onSend: ((payload: Uint8Array) => void) | undefined
  /** Called when the write buffer fell below its mark, or a key exchange ended. */
  onDrain: (() => void) | undefined
  /** Returns whether this side may start a rekey now; if not, it tries again later. */
  mayRekey: (() => boolean) | undefined
  /** Called once when the connection has closed. */
  onClosed: (() => void) | undefined
  failure: string | undefined

  readonly #peer: Ssh2Peer
  readonly #protocol: Ssh2Protocol
  readonly #socket: Socket
  readonly #strict: boolean
  readonly #rekeyLimits: RekeyLimits
  readonly #answers = new AnswerOrder()
  /** Use of the present keys. */
  #sent: Usage = { bytes: 0, packets: 0 }
  #received: Usage = { bytes: 0, packets: 0 }
  #keysSince = Date.now()
  #kexTimer: NodeJS.Timeout | undefined
  #closed = false
  readonly #serviceRequests = new ServiceRequests()
  readonly #source: PacketSource
  /**
   * Set once an error has ended the connection. Later data is ignored: ssh2 would continue in the middle of a
   * packet, of any length.
   */
  #broken = false
  #heard = false
  #paused = false
  /** Set while the peer is in a key exchange, and sends nothing else until its end (RFC 4253 7.1). */
  #peerInKex = false
  readonly #turn = new ReadTurn(() => this.#flow())
  /** Reads the packets in ssh2's place, from the end of the sign-in on. */
  #reader: PacketReader | undefined
  readonly #writer: PacketWriter
  /** The sealer of the cipher `#sealed`. */
  #sealer: Sealer | undefined
  #sealed: Ssh2Cipher | undefined
  /** Bytes in ssh2's queue during a key exchange. */
  #queued = 0
  #written = 0

  /**
   * Takes over a connection of ssh2 as soon as its protocol object exists.
   *
   * `strict`: a connection-layer message before `onMessage` is set ends the connection. The front is strict;
   * a target may announce its host keys before this side has noticed the end of the sign-in.
   */
  constructor(peer: unknown, socket: Socket, options: { strict: boolean; rekey?: RekeyLimits }) {
    this.#peer = peer as Ssh2Peer
    const protocol = this.#peer._protocol
    this.#protocol = protocol
    releaseUnused(protocol)
    this.#socket = socket
    this.#strict = options.strict
    this.#rekeyLimits = options.rekey ?? REKEY_LIMITS
    this.#source = this.#sourceOf(protocol)
    takeReads(socket, (chunk) => this.#read(chunk))
    const write = protocol._onWrite
    this.#writer = new PacketWriter(socket, (bytes) => {
      this.#written += bytes.length
      write(bytes)
    })
    protocol._onWrite = (bytes) => {
      this.#writer.flush()
      this.#written += bytes.length
      write(bytes)
    }
    const original = protocol._onPayload
    protocol._onPayload = (payload) => {
      if (this.#broken) return undefined
      // The reader counts what it reads itself.
      if (!this.#reader) this.#use(this.#received, payload.length)
      const type = payload[0]
      // Key exchanges are costly; one before the sign-in is enough.
      if (type === KEXINIT && this.#strict && this.onMessage === undefined) {
        this.breach()
        return undefined
      }
      if (this.#strict && this.onMessage === undefined && this.#serviceRequests.isRepeated(payload)) {
        this.send(SERVICE_ACCEPT)
        return undefined
      }
      if (type === undefined || type < CONNECTION_LAYER_FIRST || type > CONNECTION_LAYER_LAST) {
        if (type === KEXINIT) this.#peerBeginsKex()
        // Copy: ssh2 keeps the peer's KEXINIT, and the payload's buffer is reused.
        const copy = Buffer.from(payload)
        const isOfMethod = type !== undefined && METHOD_FIRST <= type && type <= METHOD_LAST
        return isOfMethod && this.onMethodMessage?.(copy) ? undefined : original(copy)
      }
      protocol._onPacket()
      this.#heard = true
      if (this.onMessage) {
        if (type !== MSG.globalRequest || !this.#answersItself(payload)) this.onMessage(payload)
      } else if (this.#strict) this.breach()
      return undefined
    }
    this.#peer.on('error', (error) => {
      this.#broken = true
      this.failure ??= failureOf(error, options.strict ? 'client' : 'target')
    })
    this.#peer.on('handshake', () => {
      clearTimeout(this.#kexTimer)
      this.#kexTimer = undefined
      this.#peerInKex = false
      this.#flow()
      this.#queued = 0
      this.#keysSince = Date.now()
      this.#sent = { bytes: 0, packets: 0 }
      this.#received = { bytes: 0, packets: 0 }
      afterExchange(protocol)
      this.onDrain?.()
    })
    socket.on('drain', () => {
      if (socket.writableLength === 0) this.#writer.recycle()
      if (!this.congested) this.onDrain?.()
    })
    socket.once('close', () => {
      this.#closed = true
      this.#reader?.drop()
      this.#turn.onClosed()
      clearTimeout(this.#kexTimer)
      this.onClosed?.()
    })
  }

  /** Handles data in the shared buffer: by ssh2 until the end of the sign-in, which keeps views of it. */
  #read(chunk: Buffer): void {
    this.#turn.spend(chunk.length, chunk.length < READ_SIZE)
    if (this.#broken) return
    if (!this.#reader && this.onMessage !== undefined && !this.inKex) {
      this.#reader = PacketReader.of(this.#source)
    }
    writingBehind(() => {
      const left = this.#reader ? this.#readBy(this.#reader, chunk) : chunk
      if (left !== undefined && left.length > 0) this.#socket.emit('data', Buffer.from(left))
    })
  }

  #sourceOf(protocol: Ssh2Protocol): PacketSource {
    const transport = this
    return {
      get decipher() {
        return protocol._decipher
      },
      get hasEnded() {
        return transport.#broken || transport.#socket.destroyed
      },
      deliver: (payload) => {
        const { _onPayload: handle } = protocol._decipher
        // A key exchange keeps views of its messages.
        handle(handle === protocol._onPayload ? payload : Buffer.from(payload))
      },
      count: (bytes) => this.#use(this.#received, bytes),
    }
  }

  /** Returns the bytes that ssh2 has to read. */
  #readBy(reader: PacketReader, chunk: Buffer): Buffer | undefined {
    try {
      const left = reader.read(chunk)
      if (left) this.#reader = undefined
      return left
    } catch (error) {
      this.#writer.flush()
      this.#peer.emit('error', error)
      if (this.#socket.writable) this.#socket.end()
      return undefined
    }
  }

  /** Sends one message; copies its bytes. Does nothing after the end. */
  send(payload: Uint8Array): void {
    if (this.onSend) this.onSend(payload)
    else this.sendNow(payload)
  }

  /** Like `send`, but bypasses `onSend`. */
  sendNow(payload: Uint8Array): void {
    this.#send(payload)
    if (!this.onGlobalRequest || (payload[0] !== MSG.requestSuccess && payload[0] !== MSG.requestFailure))
      return
    for (const message of this.#answers.answered()) this.#send(message)
  }

  #send(payload: Uint8Array): void {
    if (this.#closed) return
    const cipher = this.#protocol._cipher
    if (cipher !== this.#sealed) {
      this.#sealed = cipher
      this.#sealer = sealerOf(cipher)
    }
    if (this.#sealer && !this.inKex && this.#writer.fits(payload)) this.#writer.add(this.#sealer, payload)
    else this.#sendByLibrary(payload)
    this.#use(this.#sent, payload.length)
  }

  #use(usage: Usage, bytes: number): void {
    usage.bytes += bytes
    usage.packets++
    if (usage.bytes >= this.#rekeyLimits.bytes || usage.packets >= this.#rekeyLimits.packets) this.#rekey()
  }

  /** Returns true if the request was handled here. */
  #answersItself(payload: Buffer): boolean {
    if (!this.onGlobalRequest) return false
    let request: GlobalRequest
    try {
      request = parseGlobalRequest(payload)
    } catch (error) {
      if (error instanceof MalformedError) return false
      throw error
    }
    const answer = this.onGlobalRequest(request)
    if (answer) {
      if (request.wantReply) for (const message of this.#answers.answer(answer)) this.#send(message)
      return true
    }
    if (!request.wantReply || this.#answers.expect(MAX_OWED)) return false
    this.breach()
    return true
  }

  /** Messages sent during a key exchange wait in ssh2's queue; nothing may overtake them. */
  get inKex(): boolean {
    return this.#protocol._kexinit !== undefined || this.#protocol._queue !== undefined
  }

  #sendByLibrary(payload: Uint8Array): void {
    if (this.inKex) {
      this.#protocol._queue ??= []
      this.#protocol._queue.push(Buffer.from(payload))
      this.#queued += payload.length
      this.#watchKex()
      return
    }
    const writer = this.#protocol._packetRW.write
    const packet = writer.alloc(payload.length)
    packet.set(payload, writer.allocStart)
    sendPacket(this.#protocol, writer.finalize(packet))
  }

  /** True while nothing more should be sent: the peer reads too slowly, or a key exchange is under way. */
  get congested(): boolean {
    return this.#socket.writableLength + this.#writer.length > SEND_HIGH_WATER || this.inKex
  }

  /** RFC 4253 7.2: the hash of the first key exchange. */
  get sessionId(): Buffer {
    return this.#protocol._kex.sessionID
  }

  /** The algorithm of the host key, or of its certificate, in the last key exchange. */
  get hostKeyAlgorithm(): string {
    return this.#protocol._kex.negotiated.serverHostKey
  }

  /** Whether the connection has closed, or is closing: nothing more is received. */
  get closed(): boolean {
    return this.#closed || this.#broken
  }

  get written(): number {
    return this.#written + this.#writer.length + this.#queued
  }

  get waiting(): number {
    return this.#socket.writableLength + this.#writer.length + this.#queued
  }

  /** Whether the queue is so long that it can only hold replies to a peer that does not read them. */
  get flooded(): boolean {
    return this.waiting > FLOOD_MARK
  }

  /** Returns true if a connection-layer message has arrived since the last call. */
  takeHeard(): boolean {
    const heard = this.#heard
    this.#heard = false
    return heard
  }

  /**
   * While paused, nothing is read from the peer, so its own flow control holds it. Only the messages of a key
   * exchange that the peer has begun are still read: the pause may be caused by data that waits for this
   * exchange.
   */
  get paused(): boolean {
    return this.#paused
  }

  set paused(paused: boolean) {
    if (paused === this.#paused) return
    this.#paused = paused
    this.#flow()
  }

  #flow(): void {
    if (this.#turn.isResting || (this.#paused && !this.#peerInKex)) this.#socket.pause()
    else this.#socket.resume()
  }

  /** Starts a rekey if the present keys are old. Call it periodically. */
  refreshKeys(now: number): void {
    if (now - this.#keysSince >= this.#rekeyLimits.intervalMs) this.#rekey()
  }

  /** Sends the queue and a disconnect message, and closes. */
  close(): void {
    if (this.#closed || !this.#socket.writable) return
    this.#protocol.disconnect(DISCONNECT_BY_APPLICATION)
    this.#socket.end()
  }

  /** Call when the peer broke the protocol: sends a disconnect message and closes. */
  breach(): void {
    if (this.closed) return
    if (this.#socket.writable) this.#protocol.disconnect(DISCONNECT_PROTOCOL_ERROR)
    this.#broken = true
    this.#socket.end()
    // Closing a socket with unread data resets the connection, and the peer would never read the message.
    this.paused = false
    setTimeout(() => this.destroy(), LINGER_MS).unref()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** Only after the sign-in, and not during a key exchange. */
  #rekey(): void {
    if (this.#closed || this.onMessage === undefined || this.inKex || !this.#socket.writable) return
    if (this.mayRekey?.() === false) return
    this.#protocol.rekey()
    this.#watchKex()
  }

  #peerBeginsKex(): void {
    this.#peerInKex = true
    this.#watchKex()
    this.#flow()
  }

  #watchKex(): void {
    this.#kexTimer ??= setTimeout(() => this.destroy(), KEX_TIMEOUT_MS)
  }
}
