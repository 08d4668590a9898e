/**
 * One leg's SSH transport, reduced to what the relay needs: connection-layer messages (RFC 4254, 80 to 127) in
 * and out, back-pressure, rekeying, an end.
 *
 * ssh2 does key exchange, encryption and user authentication; its Session and Channel layer loses data (early
 * requests, the tail before a close, pty modes), so its handler of connection-layer messages is replaced here by a
 * function that hands the raw payload on.
 */

import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { MalformedError } from '../../bytes/malformed.ts'
import { FLOOD_MARK, LINGER_MS, SEND_HIGH_WATER } from '../../net/limits.ts'
import { ReadTurn } from '../../net/read-turns.ts'
import { takeReads } from '../../net/shared-read.ts'
import { type GlobalRequest, MSG, parseGlobalRequest } from '../codec/messages.ts'
import { isBetweenPackets, PacketAligner } from './aligner.ts'
import { AnswerOrder } from './answer-order.ts'
import type { Leg } from './leg.ts'
import { KEX_TIMEOUT_MS, MAX_OWED, REKEY_LIMITS } from './limits.ts'
import { framePacket, keepPacket } from './packet.ts'
import { giveBack } from './packet-buffers.ts'
import { SERVICE_ACCEPT, ServiceRequests } from './service-requests.ts'
import { IMPLY_RSA_SHA2, type Ssh2Peer, type Ssh2Protocol, sendPacket } from './ssh2.ts'

const KEXINIT = 20
const CONNECTION_LAYER_FIRST = 80
const CONNECTION_LAYER_LAST = 127
const DISCONNECT_PROTOCOL_ERROR = 2
const DISCONNECT_BY_APPLICATION = 11
/** A payload that is worth a buffer for the largest packet. */
const LARGE_PAYLOAD = 16 * 1024

export type RekeyLimits = typeof REKEY_LIMITS

interface Usage {
  bytes: number
  packets: number
}

export class Transport implements Leg {
  /**
   * Called with each connection-layer message. The callee may rewrite it, and has to copy what it keeps: the next
   * read overwrites it.
   * Before it is set such messages are a breach of protocol (RFC 4252: they follow authentication).
   */
  onMessage: ((payload: Buffer) => void) | undefined
  /**
   * Answers global requests that are the front's own business: with the message to send, or undefined to leave the
   * request to `onMessage`. Answers keep the order of the requests, whoever gives them.
   */
  onGlobalRequest: ((request: GlobalRequest) => Buffer | undefined) | undefined
  /** Takes what is to be sent; it goes by `sendNow` later on. */
  onSend: ((payload: Uint8Array) => void) | undefined
  /** The write buffer went below its mark again, or a key exchange is over. */
  onDrain: (() => void) | undefined
  /** Whether this side may ask for new keys just now; it will ask again. */
  mayRekey: (() => boolean) | undefined
  /** The connection is gone, once. */
  onClosed: (() => void) | undefined

  readonly #protocol: Ssh2Protocol
  readonly #socket: Socket
  readonly #strict: boolean
  readonly #rekeyLimits: RekeyLimits
  readonly #answers = new AnswerOrder()
  /** What the present keys have been used for. */
  #sent: Usage = { bytes: 0, packets: 0 }
  #received: Usage = { bytes: 0, packets: 0 }
  #keysSince = Date.now()
  #kexTimer: NodeJS.Timeout | undefined
  #closed = false
  readonly #serviceRequests = new ServiceRequests()
  /**
   * Something has ended the connection, and what still comes is not looked at: ssh2 would go on in the middle of a
   * packet, of whatever length.
   */
  #broken = false
  #heard = false
  #paused = false
  /** The peer is in a key exchange, and has nothing else to say until it is over (RFC 4253 7.1). */
  #peerInKex = false
  readonly #turn = new ReadTurn(() => this.#flow())
  readonly #aligner = new PacketAligner()
  /** Of packets that wait in the socket. */
  readonly #waiting: Buffer[] = []
  /** Bytes in ssh2's queue during a key exchange. */
  #queued = 0
  #written = 0

  /**
   * Takes over a connection of ssh2 as soon as its protocol object exists.
   *
   * `strict`: a connection-layer message before `onMessage` is set ends the connection. The front is strict;
   * a target may announce its host keys before this side has noticed that it is signed in.
   */
  constructor(peer: unknown, socket: Socket, options: { strict: boolean; rekey?: RekeyLimits }) {
    const { _protocol: protocol } = peer as Ssh2Peer
    this.#protocol = protocol
    this.#socket = socket
    this.#strict = options.strict
    this.#rekeyLimits = options.rekey ?? REKEY_LIMITS
    takeReads(socket, (chunk) => this.#read(chunk))
    const write = protocol._onWrite
    protocol._onWrite = (bytes) => {
      this.#written += bytes.length
      write(bytes)
    }
    const original = protocol._onPayload
    protocol._onPayload = (payload) => {
      if (this.#broken) return undefined
      const type = payload[0]
      this.#turn.spend(payload.length)
      // Key exchanges cost; one before the sign-in is enough for everybody.
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
        // A view into a buffer that is read into again: ssh2 keeps the peer's KEXINIT.
        return original(Buffer.from(payload))
      }
      protocol._onPacket()
      this.#heard = true
      if (this.onMessage) {
        if (type !== MSG.globalRequest || !this.#answersItself(payload)) this.onMessage(payload)
      } else if (this.#strict) this.breach()
      this.#use(this.#received, payload.length)
      return undefined
    }
    ;(peer as Ssh2Peer).on('error', () => {
      this.#broken = true
    })
    ;(peer as Ssh2Peer).on('handshake', () => {
      clearTimeout(this.#kexTimer)
      this.#kexTimer = undefined
      this.#peerInKex = false
      this.#flow()
      this.#queued = 0
      this.#keysSince = Date.now()
      this.#sent = { bytes: 0, packets: 0 }
      this.#received = { bytes: 0, packets: 0 }
      // A target without server-sig-algs is still asked for SHA-2 with RSA keys: ssh2 would fall back to SHA-1.
      protocol._compatFlags |= IMPLY_RSA_SHA2
      this.onDrain?.()
    })
    socket.on('drain', () => {
      if (socket.writableLength === 0) this.#recycle()
      if (!this.congested) this.onDrain?.()
    })
    socket.once('close', () => {
      this.#closed = true
      this.#aligner.drop()
      this.#turn.onClosed()
      clearTimeout(this.#kexTimer)
      this.onClosed?.()
    })
  }

  /**
   * Hands what was read into the shared buffer on to ssh2, which keeps views into what it reads during a key
   * exchange, so then it gets a copy of its own; and into a packet whose tag is still to come.
   */
  #read(chunk: Buffer): void {
    if (this.#broken) return
    if (this.onMessage === undefined || this.inKex) {
      this.#socket.emit('data', Buffer.from(this.#aligner.withRest(chunk)))
      return
    }
    const decipher = this.#protocol._decipher
    if (isBetweenPackets(decipher)) {
      const packets = this.#aligner.take(chunk)
      if (packets.length > 0) this.#socket.emit('data', packets)
      // New keys were agreed on the way, perhaps for a cipher whose packets cannot be told apart here.
      const left = this.#protocol._decipher === decipher && !this.inKex ? undefined : this.#aligner.leave()
      if (left) this.#socket.emit('data', left)
    } else {
      this.#socket.emit('data', chunk)
    }
    const now = this.#protocol._decipher
    if (now._packet?.buffer === chunk.buffer) now._packet = Buffer.from(now._packet)
  }

  /** Sends one message; its bytes are copied before this returns. After the end of the connection: nothing. */
  send(payload: Uint8Array): void {
    if (this.onSend) this.onSend(payload)
    else this.sendNow(payload)
  }

  /** The same, past `onSend`. */
  sendNow(payload: Uint8Array): void {
    this.#send(payload)
    if (!this.onGlobalRequest || (payload[0] !== MSG.requestSuccess && payload[0] !== MSG.requestFailure))
      return
    for (const message of this.#answers.answered()) this.#send(message)
  }

  #send(payload: Uint8Array): void {
    if (this.#closed) return
    const protocol = this.#protocol
    const isIdle = this.#socket.writableLength === 0
    if (isIdle) this.#recycle()
    // Behind others that wait, a small packet waits in a buffer of its own size, not in one for the largest.
    const isFramed = !this.inKex && (isIdle || payload.length >= LARGE_PAYLOAD)
    const packet = isFramed ? framePacket(protocol._cipher, payload) : undefined
    if (packet) {
      protocol._cipher.encrypt(packet)
      // Node has written it through, unless the kernel's buffer is full.
      if (this.#socket.writableLength > 0) this.#waiting.push(keepPacket())
    } else {
      this.#sendByLibrary(payload)
    }
    this.#use(this.#sent, payload.length)
  }

  #use(usage: Usage, bytes: number): void {
    usage.bytes += bytes
    usage.packets++
    if (usage.bytes >= this.#rekeyLimits.bytes || usage.packets >= this.#rekeyLimits.packets) this.#rekey()
  }

  /** All that was sent is with the kernel: the buffers in which it waited are free. */
  #recycle(): void {
    for (let buffer = this.#waiting.pop(); buffer; buffer = this.#waiting.pop()) giveBack(buffer)
  }

  /** True when the request has been dealt with here. */
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

  /** What is sent during a key exchange waits in ssh2's queue; nothing may overtake it. */
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

  /** True while more should not be sent: the peer reads too slowly, or keys are being exchanged. */
  get congested(): boolean {
    return this.#socket.writableLength > SEND_HIGH_WATER || this.inKex
  }

  /** RFC 4253 7.2: the hash of the first key exchange. */
  get sessionId(): Buffer {
    return this.#protocol._kex.sessionID
  }

  /** The algorithm of the host key, or of the certificate about it, in the last key exchange. */
  get hostKeyAlgorithm(): string {
    return this.#protocol._kex.negotiated.serverHostKey
  }

  /** It is gone, or on its way: nothing more is heard of the peer. */
  get closed(): boolean {
    return this.#closed || this.#broken
  }

  get written(): number {
    return this.#written + this.#queued
  }

  get waiting(): number {
    return this.#socket.writableLength + this.#queued
  }

  /** True when what is queued can only be answers to a peer that asks and does not read them. */
  get flooded(): boolean {
    return this.waiting > FLOOD_MARK
  }

  /** True when a connection-layer message has come since the last call. */
  takeHeard(): boolean {
    const heard = this.#heard
    this.#heard = false
    return heard
  }

  /**
   * While paused nothing is read from the peer; its own flow control then holds it. Only the messages of a key exchange
   * that it has begun are read all the same: what it waits for may be what this one is paused for.
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

  /** New keys when the present ones are old; call it now and then. */
  refreshKeys(now: number): void {
    if (now - this.#keysSince >= this.#rekeyLimits.intervalMs) this.#rekey()
  }

  /** Sends what is queued, a disconnect message, and closes. */
  close(): void {
    if (this.#closed || !this.#socket.writable) return
    this.#protocol.disconnect(DISCONNECT_BY_APPLICATION)
    this.#socket.end()
  }

  /** The peer broke the protocol: tells it so and drops the connection. */
  breach(): void {
    if (this.closed) return
    if (this.#socket.writable) this.#protocol.disconnect(DISCONNECT_PROTOCOL_ERROR)
    this.#broken = true
    this.#socket.end()
    // Closing over what has come unread resets the connection, and the peer would never read what it was told.
    this.paused = false
    setTimeout(() => this.destroy(), LINGER_MS).unref()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** After the sign-in, and not while keys are being exchanged. */
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
