/**
 * The client's end of a connection to a target, after TLS (and CredSSP), without its socket (MS-RDPBCGR
 * 1.3.1.1): MCS, the Client Info with the injected account and licensing; then messages of the I/O channel,
 * the virtual channels and the fast path in both directions.
 */

import { MalformedError } from '../../bytes/malformed.ts'
import { TargetError } from '../../wording/errors.ts'
import { buildTargetBlocks, type ClientData, type TargetView } from '../codec/client-data.ts'
import { buildClientInfo, type ClientInfo } from '../codec/client-info.ts'
import { buildBlocks } from '../codec/data-blocks.ts'
import { Framer, isFastPath, TPKT_LIMIT } from '../codec/framer.ts'
import {
  endsLicensing,
  LICENSE_ERROR,
  LICENSE_MESSAGES,
  type LicenseMessage,
  parseLicense,
} from '../codec/licensing.ts'
import {
  buildAttachRequest,
  buildDataRequest,
  buildDisconnect,
  buildErectDomain,
  buildJoinRequest,
  DISCONNECT_REASON,
  MCS_RESULT,
  type McsMessage,
  parseMcs,
} from '../codec/mcs.ts'
import { buildConnectInitial, parseConnectResponse } from '../codec/mcs-connect.ts'
import { parseRedirection } from '../codec/redirection.ts'
import { buildSecured, parseSecured, SECURITY_FLAG } from '../codec/security-header.ts'
import { parseServerData } from '../codec/server-data.ts'
import { parseErrorInfo } from '../codec/session-pdus.ts'
import { CONTROL_PDU, DATA_PDU, parseShare, parseShareData } from '../codec/share.ts'
import { wordsOfErrorInfo } from './error-info.ts'

const LICENSE_WORDS: Readonly<Record<number, string>> = {
  [LICENSE_ERROR.noLicenseServer]: 'it finds no license server for remote desktops',
  [LICENSE_ERROR.noLicense]: 'there is no license for remote desktops left',
  [LICENSE_ERROR.invalidClient]: 'its licensing does not accept the bastion as a client',
}

export interface BackVisitor {
  /**
   * A licensing message with its security header, for the client to answer; only with `licensing: 'relayed'`.
   * Valid during the call only, as is the data of the callbacks below.
   */
  license(data: Uint8Array): void
  /** Licensing has ended: share PDUs follow on the I/O channel. */
  licensed(): void
  io(data: Uint8Array): void
  /** A chunk on the channel with this index in TargetView.channels. */
  channel(index: number, chunk: Uint8Array): void
  /** Pictures: a whole PDU. */
  fastPath(pdu: Uint8Array): void
  /** The target ends the connection. */
  disconnect(reason: number): void
}

export interface Licensee {
  /** Returns the response with its security header, or undefined if none is needed. Throws MalformedError. */
  answer(message: LicenseMessage): Uint8Array | undefined
}

export interface BackConnectionOptions {
  client: ClientData
  view: TargetView
  /** The result of `forTarget`. */
  info: ClientInfo
  /** Answers the target's licensing: the client, or a local licensee, as after the client's own licensing. */
  licensing: 'relayed' | Licensee
  visitor: BackVisitor
  write: (bytes: Uint8Array) => void
}

/** Setup states are named for the expected message. */
type State = 'connect-response' | 'attach-confirm' | 'join-confirm' | 'licensing' | 'session' | 'ended'

export class BackConnection {
  readonly #options: Omit<BackConnectionOptions, 'info'>
  /** Dropped once sent, so that the password in it is not kept. */
  #info: ClientInfo | undefined
  readonly #framer = new Framer()
  #state: State = 'connect-response'
  #user = 0
  #ioChannel = 0
  /** The target's channel ids, by the index in TargetView.channels. */
  #channels: number[] = []
  /** Channels to join; the first has been requested. */
  #toJoin: number[] = []
  #licenseMessages = 0

  constructor({ info, ...options }: BackConnectionOptions) {
    this.#options = options
    this.#info = info
  }

  /** User id assigned by the target: the source of the share PDUs that are built here. */
  get user(): number {
    return this.#user
  }

  /** Starts the connection sequence; called once. */
  start(): void {
    const { client, view } = this.#options
    this.#write(buildConnectInitial(buildBlocks(buildTargetBlocks(client, view))))
  }

  /**
   * Receives bytes from TLS. Throws MalformedError, TargetError if the target refuses, and the visitor's
   * errors; the connection cannot continue after any of them.
   */
  receive(chunk: Uint8Array): void {
    if (this.#state === 'ended') return
    this.#framer.feed(chunk, (pdu) => {
      this.#receivePdu(pdu)
      return this.#state !== 'ended'
    })
  }

  /** Sends a response to `license`, or share PDUs, on the I/O channel. Throws RangeError if too long. */
  sendIo(data: Uint8Array): void {
    this.#write(buildDataRequest(this.#user, this.#ioChannel, data))
  }

  /** Sends a chunk with its header. */
  sendChannel(index: number, chunk: Uint8Array): void {
    const channel = this.#channels[index]
    if (channel === undefined) throw new RangeError(`the target has no channel ${index}`)
    this.#write(buildDataRequest(this.#user, channel, chunk))
  }

  /** Sends input: a whole PDU. */
  sendFastPath(pdu: Uint8Array): void {
    this.#write(pdu)
  }

  /** Announces the user's disconnect. Nothing is sent or received after it. */
  close(): void {
    if (this.#state !== 'connect-response') this.#write(buildDisconnect(DISCONNECT_REASON.userRequested))
    this.#state = 'ended'
  }

  #write(bytes: Uint8Array): void {
    if (this.#state !== 'ended') this.#options.write(bytes)
  }

  #receivePdu(pdu: Uint8Array): void {
    if (isFastPath(pdu[0]!)) {
      this.#options.visitor.fastPath(pdu)
      return
    }
    if (this.#state === 'connect-response') {
      this.#connected(pdu)
      return
    }
    const message = parseMcs(pdu)
    switch (message.kind) {
      case 'data-indication':
        this.#receiveData(message.channel, message.data)
        return
      case 'disconnect':
        this.#state = 'ended'
        this.#options.visitor.disconnect(message.reason)
        return
      case 'attach-confirm':
        this.#attached(message)
        return
      case 'join-confirm':
        this.#joined(message)
        return
      default:
        throw new MalformedError(`mcs: a server's message was expected, found ${message.kind}`)
    }
  }

  #connected(pdu: Uint8Array): void {
    const { view } = this.#options
    const { ioChannel, channels } = parseServerData(parseConnectResponse(pdu))
    if (channels.length !== view.channels.length) {
      throw new MalformedError(
        `server network data: ${view.channels.length} channels were expected, found ${channels.length}`,
      )
    }
    this.#ioChannel = ioChannel
    this.#channels = channels
    this.#state = 'attach-confirm'
    this.#write(buildErectDomain())
    this.#write(buildAttachRequest())
  }

  #attached(message: McsMessage & { kind: 'attach-confirm' }): void {
    this.#require('attach-confirm', message)
    if (message.result !== MCS_RESULT.successful) {
      throw new TargetError(`the target refuses the user (MCS result ${message.result})`)
    }
    this.#user = message.user
    this.#toJoin = [message.user, this.#ioChannel, ...this.#channels]
    this.#state = 'join-confirm'
    this.#write(buildJoinRequest(this.#user, message.user))
  }

  /** Joins the channels one by one, as the specification requires. */
  #joined(message: McsMessage & { kind: 'join-confirm' }): void {
    this.#require('join-confirm', message)
    const asked = this.#toJoin.shift()
    if (message.result !== MCS_RESULT.successful || message.channel !== asked) {
      throw new TargetError(
        `the target was asked for channel ${asked} and answered ${message.channel} (MCS result ${message.result})`,
      )
    }
    const next = this.#toJoin[0]
    if (next !== undefined) {
      this.#write(buildJoinRequest(this.#user, next))
      return
    }
    this.#state = 'licensing'
    const info = buildClientInfo(this.#info!)
    this.#info = undefined
    this.sendIo(buildSecured(SECURITY_FLAG.info, info))
    info.fill(0)
  }

  #require(state: State, message: McsMessage): void {
    if (this.#state !== state) {
      throw new MalformedError(`mcs: ${this.#state} was expected, found ${message.kind}`)
    }
  }

  #receiveData(channel: number, data: Uint8Array): void {
    const { visitor } = this.#options
    if (channel === this.#ioChannel) {
      if (this.#state === 'session') visitor.io(data)
      else this.#receiveLicense(data)
      return
    }
    const index = this.#channels.indexOf(channel)
    if (index < 0) throw new MalformedError(`mcs: a channel that was joined was expected, found ${channel}`)
    if (this.#state !== 'session') {
      throw new MalformedError(`mcs: ${this.#state} was expected, found data on channel ${channel}`)
    }
    visitor.channel(index, data)
  }

  #receiveLicense(data: Uint8Array): void {
    const { licensing, visitor } = this.#options
    if (this.#state !== 'licensing') {
      throw new MalformedError(`mcs: ${this.#state} was expected, found data on the I/O channel`)
    }
    this.#licenseMessages++
    if (LICENSE_MESSAGES < this.#licenseMessages) {
      throw new MalformedError(`licensing: at most ${LICENSE_MESSAGES} messages were expected, found more`)
    }
    const { flags, body } = parseSecured(data)
    if (!(flags & SECURITY_FLAG.license)) {
      this.#receiveEarly(data)
      return
    }
    const message = parseLicense(body)
    if (message.error !== undefined && !endsLicensing(message)) {
      const words = LICENSE_WORDS[message.error] ?? 'its licensing fails'
      throw new TargetError(`the target refuses the connection: ${words} (licensing error ${message.error})`)
    }
    if (licensing === 'relayed') visitor.license(data)
    if (endsLicensing(message)) {
      this.#licensed()
      return
    }
    const answer = licensing === 'relayed' ? undefined : licensing.answer(message)
    if (answer) this.sendIo(answer)
  }

  /** During licensing, Windows may send the reason of an end, or a redirection. */
  #receiveEarly(data: Uint8Array): void {
    for (const pdu of parseShare(data)) {
      if (pdu.type === CONTROL_PDU.serverRedirection) {
        if (parseRedirection(pdu.body).isInformational) continue
        this.#licensed()
        this.#options.visitor.io(pdu.whole)
        return
      }
      if (pdu.type !== CONTROL_PDU.data) {
        throw new MalformedError(`licensing: its end was expected, found a share PDU of type ${pdu.type}`)
      }
      const { type, body } = parseShareData(pdu)
      const code = type === DATA_PDU.setErrorInfo ? parseErrorInfo(body) : 0
      if (code !== 0) throw new TargetError(`the target refuses the connection: ${wordsOfErrorInfo(code)}`)
    }
  }

  #licensed(): void {
    this.#state = 'session'
    this.#framer.allow({ limit: TPKT_LIMIT, fastPath: true })
    this.#options.visitor.licensed()
  }
}
