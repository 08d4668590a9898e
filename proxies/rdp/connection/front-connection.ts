/**
 * The server's end of a client's connection, after TLS (and CredSSP), without its socket (MS-RDPBCGR
 * 1.3.1.1): MCS, the Client Info and licensing; then messages of the I/O channel, the virtual channels and
 * the fast path in both directions.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { type ClientData, parseClientData } from '../codec/client-data.ts'
import { type ClientInfo, parseClientInfo } from '../codec/client-info.ts'
import { parseBlocks } from '../codec/data-blocks.ts'
import { Framer, isFastPath, TPKT_LIMIT } from '../codec/framer.ts'
import { buildValidClient, LICENSE_MESSAGES, rebuildClientLicense } from '../codec/licensing.ts'
import {
  buildAttachConfirm,
  buildDataIndication,
  buildDisconnect,
  buildJoinConfirm,
  MCS_RESULT,
  type McsMessage,
  parseMcs,
} from '../codec/mcs.ts'
import { buildConnectResponse, parseConnectInitial } from '../codec/mcs-connect.ts'
import { parseSecured, SECURITY_FLAG } from '../codec/security-header.ts'
import { buildServerData } from '../codec/server-data.ts'

/** The I/O channel's id; the client's virtual channels follow, then its user. */
export const IO_CHANNEL = 1003
const FIRST_CHANNEL = IO_CHANNEL + 1
/** Bytes of one PDU before the session: data blocks of 31 channels, or a Client Info, need half of it. */
export const SETUP_LIMIT = 16 * 1024
/** Messages until the Client Info: 33 joins, and some room. */
export const SETUP_MESSAGES = 100

export interface FrontVisitor {
  /** The client's settings: a copy. */
  settings(data: ClientData): void
  /** Login and password. The visitor calls `licensed`, `sendIo` with a target's licensing, or `close`. */
  logon(info: ClientInfo): void
  /** A licensing message with a rebuilt security header; only until `licensed`. */
  license(data: Uint8Array): void
  /** Share PDUs on the I/O channel. Valid during the call only, as is the data of the callbacks below. */
  io(data: Uint8Array): void
  /** A chunk on the client's virtual channel with this index. */
  channel(index: number, chunk: Uint8Array): void
  /** Input on the fast path: a whole PDU. */
  fastPath(pdu: Uint8Array): void
  /** The client ends the connection. */
  disconnect(reason: number): void
}

export interface FrontConnectionOptions {
  /** requestedProtocols of the client's X.224 request: the client compares the two. */
  requestedProtocols: number
  visitor: FrontVisitor
  write: (bytes: Uint8Array) => void
}

/** Setup states are named for the expected message. */
type State = 'connect-initial' | 'logon' | 'licensing' | 'session' | 'ended'

export class FrontConnection {
  readonly #options: FrontConnectionOptions
  readonly #framer = new Framer({ limit: SETUP_LIMIT })
  #state: State = 'connect-initial'
  #channels = 0
  #messages = 0
  #licenseMessages = 0
  #isAttached = false

  constructor(options: FrontConnectionOptions) {
    this.#options = options
  }

  /** The client's user id, which follows its channels' ids. */
  get user(): number {
    return FIRST_CHANNEL + this.#channels
  }

  /** Receives bytes from TLS. Throws MalformedError and the visitor's errors; the connection ends then. */
  receive(chunk: Uint8Array): void {
    if (this.#state === 'ended') return
    this.#framer.feed(chunk, (pdu) => {
      this.#receivePdu(pdu)
      return this.#state !== 'ended'
    })
  }

  /** Sends that no license is needed; the session's PDUs may follow. */
  licensed(): void {
    this.#require('licensing')
    this.sendIo(buildValidClient())
    this.startSession()
  }

  /** Ends licensing after a target's forwarded messages have completed it. */
  startSession(): void {
    this.#require('licensing')
    this.#state = 'session'
  }

  /** Sends on the I/O channel. Throws RangeError over MCS_DATA_LIMIT. */
  sendIo(data: Uint8Array): void {
    this.#write(buildDataIndication(IO_CHANNEL, data))
  }

  /** Sends a chunk with its header. */
  sendChannel(index: number, chunk: Uint8Array): void {
    if (this.#channels <= index) throw new RangeError(`the client has no channel ${index}`)
    this.#write(buildDataIndication(FIRST_CHANNEL + index, chunk))
  }

  /** Sends a whole PDU. */
  sendFastPath(pdu: Uint8Array): void {
    this.#write(pdu)
  }

  /** Announces the end of the connection. Nothing is sent or received after it. */
  close(reason: number): void {
    if (this.#state === 'ended') return
    if (this.#state !== 'connect-initial') this.#write(buildDisconnect(reason))
    this.#state = 'ended'
  }

  #write(bytes: Uint8Array): void {
    if (this.#state !== 'ended') this.#options.write(bytes)
  }

  #require(state: State): void {
    if (this.#state !== state) throw new Error(`the client is in the state ${this.#state}, not ${state}`)
  }

  #receivePdu(pdu: Uint8Array): void {
    const { visitor } = this.#options
    if (isFastPath(pdu[0]!)) {
      visitor.fastPath(pdu)
      return
    }
    if (this.#state === 'connect-initial') {
      this.#connect(pdu)
      return
    }
    const message = parseMcs(pdu)
    if (message.kind === 'data-request') this.#receiveData(message.user, message.channel, message.data)
    else if (message.kind === 'disconnect') {
      this.#state = 'ended'
      visitor.disconnect(message.reason)
    } else this.#setUp(message)
  }

  #connect(pdu: Uint8Array): void {
    const { requestedProtocols, visitor } = this.#options
    const data = parseClientData(parseBlocks(Buffer.from(parseConnectInitial(pdu))))
    this.#channels = data.channels.length
    this.#state = 'logon'
    visitor.settings(data)
    const channels = data.channels.map((_, index) => FIRST_CHANNEL + index)
    this.#write(
      buildConnectResponse(buildServerData({ requestedProtocols, ioChannel: IO_CHANNEL, channels })),
    )
  }

  #setUp(message: McsMessage): void {
    this.#messages++
    if (SETUP_MESSAGES < this.#messages) {
      throw new MalformedError(
        `mcs: at most ${SETUP_MESSAGES} messages of a set-up were expected, found more`,
      )
    }
    switch (message.kind) {
      case 'erect-domain':
        return
      case 'attach-request':
        if (this.#isAttached) throw new MalformedError('mcs: one user was expected, found another')
        this.#isAttached = true
        this.#write(buildAttachConfirm(MCS_RESULT.successful, this.user))
        return
      case 'join-request': {
        this.#requireUser(message.user)
        const isThere = IO_CHANNEL <= message.channel && message.channel <= this.user
        const result = isThere ? MCS_RESULT.successful : MCS_RESULT.noSuchChannel
        this.#write(buildJoinConfirm(result, message.user, message.channel))
        return
      }
      default:
        throw new MalformedError(`mcs: a client's message was expected, found ${message.kind}`)
    }
  }

  #requireUser(user: number): void {
    if (!this.#isAttached || user !== this.user) {
      throw new MalformedError(
        `mcs: user ${this.#isAttached ? this.user : 'none'} was expected, found ${user}`,
      )
    }
  }

  #receiveData(user: number, channel: number, data: Uint8Array): void {
    const { visitor } = this.#options
    this.#requireUser(user)
    if (channel === IO_CHANNEL) {
      this.#receiveIo(data)
      return
    }
    const index = channel - FIRST_CHANNEL
    if (index < 0 || this.#channels <= index) {
      throw new MalformedError(`mcs: a channel that was granted was expected, found ${channel}`)
    }
    if (this.#state !== 'session') {
      throw new MalformedError('mcs: nothing was expected on virtual channels before the session begins')
    }
    visitor.channel(index, data)
  }

  /** Detects a late licensing message, when licensing has ended otherwise; no share PDU has type 0. */
  #isLateLicense(data: Uint8Array): boolean {
    const isLicense =
      4 <= data.length && (data[0]! & SECURITY_FLAG.license) !== 0 && data[2] === 0 && data[3] === 0
    if (!isLicense || LICENSE_MESSAGES <= this.#licenseMessages) return false
    this.#licenseMessages++
    return true
  }

  #receiveIo(data: Uint8Array): void {
    const { visitor } = this.#options
    if (this.#state === 'session') {
      if (!this.#isLateLicense(data)) visitor.io(data)
      return
    }
    const { flags, body } = parseSecured(data)
    if (this.#state === 'logon') {
      if (!(flags & SECURITY_FLAG.info)) {
        throw new MalformedError(`client info: flags with 0x40 were expected, found 0x${flags.toString(16)}`)
      }
      const info = parseClientInfo(body)
      this.#state = 'licensing'
      this.#framer.allow({ limit: TPKT_LIMIT, fastPath: true })
      visitor.logon(info)
      return
    }
    // Rejects other flags: a server that checks them first would read the message as, for example, a logon.
    if (!(flags & SECURITY_FLAG.license) || flags & SECURITY_FLAG.info) {
      throw new MalformedError(
        `licensing: flags with 0x80 and without 0x40 were expected, found 0x${flags.toString(16)}`,
      )
    }
    this.#licenseMessages++
    if (LICENSE_MESSAGES < this.#licenseMessages) {
      throw new MalformedError(`licensing: at most ${LICENSE_MESSAGES} messages were expected, found more`)
    }
    visitor.license(rebuildClientLicense(body))
  }
}
