/**
 * The client's end of a connection to a target, once TLS (and CredSSP) are done, without its socket (MS-RDPBCGR
 * 1.3.1.1): from MCS over the Client Info with the injected account to licensing, and from there on messages of the
 * I/O channel, of virtual channels and of the fast path in both directions.
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
  [LICENSE_ERROR.invalidClient]: 'its licensing does not take the bastion for a client',
}

export interface BackVisitor {
  /**
   * A licensing message with its security header, for the client to answer: only with `licensing: 'relayed'`. Valid
   * during the call only, like all that follow.
   */
  license(data: Uint8Array): void
  /** Licensing is over: what follows on the I/O channel are share PDUs. */
  licensed(): void
  io(data: Uint8Array): void
  /** A chunk on the channel of this index in TargetView.channels. */
  channel(index: number, chunk: Uint8Array): void
  /** Pictures: a whole PDU. */
  fastPath(pdu: Uint8Array): void
  /** The target ends the connection. */
  disconnect(reason: number): void
}

export interface Licensee {
  /** With its security header; undefined: nothing is to be said. Throws MalformedError. */
  answer(message: LicenseMessage): Uint8Array | undefined
}

export interface BackConnectionOptions {
  client: ClientData
  view: TargetView
  /** As `forTarget` makes it. */
  info: ClientInfo
  /** Who answers the target: the client, or somebody here, as when the client's own licensing is over. */
  licensing: 'relayed' | Licensee
  visitor: BackVisitor
  write: (bytes: Uint8Array) => void
}

/** The name of what is awaited. */
type State = 'connect-response' | 'attach-confirm' | 'join-confirm' | 'licensing' | 'session' | 'ended'

export class BackConnection {
  readonly #options: Omit<BackConnectionOptions, 'info'>
  /** Until it is sent: the password in it is not kept. */
  #info: ClientInfo | undefined
  readonly #framer = new Framer()
  #state: State = 'connect-response'
  #user = 0
  #ioChannel = 0
  /** The target's, by the index in TargetView.channels. */
  #channels: number[] = []
  /** Channels that have not been joined; the first is the one that was asked for. */
  #toJoin: number[] = []
  #licenseMessages = 0

  constructor({ info, ...options }: BackConnectionOptions) {
    this.#options = options
    this.#info = info
  }

  /** What the target has given us: the source of share PDUs that are built here. */
  get user(): number {
    return this.#user
  }

  /** Begins. Only once. */
  start(): void {
    const { client, view } = this.#options
    this.#write(buildConnectInitial(buildBlocks(buildTargetBlocks(client, view))))
  }

  /**
   * Bytes out of TLS. Throws MalformedError, TargetError when the target refuses, and what the visitor throws: the
   * connection cannot go on.
   */
  receive(chunk: Uint8Array): void {
    if (this.#state === 'ended') return
    this.#framer.feed(chunk, (pdu) => {
      this.#receivePdu(pdu)
      return this.#state !== 'ended'
    })
  }

  /** On the I/O channel: an answer to `license`, or share PDUs. Throws RangeError over MCS_DATA_LIMIT. */
  sendIo(data: Uint8Array): void {
    this.#write(buildDataRequest(this.#user, this.#ioChannel, data))
  }

  /** A chunk with its header. */
  sendChannel(index: number, chunk: Uint8Array): void {
    const channel = this.#channels[index]
    if (channel === undefined) throw new RangeError(`the target has no channel ${index}`)
    this.#write(buildDataRequest(this.#user, channel, chunk))
  }

  /** Input: a whole PDU. */
  sendFastPath(pdu: Uint8Array): void {
    this.#write(pdu)
  }

  /** Says that the user ends the connection. Nothing is sent or received after it. */
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
      throw new TargetError(`the target takes no user (MCS result ${message.result})`)
    }
    this.#user = message.user
    this.#toJoin = [message.user, this.#ioChannel, ...this.#channels]
    this.#state = 'join-confirm'
    this.#write(buildJoinRequest(this.#user, message.user))
  }

  /** One after the other, as the specification has it. */
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

  /** Windows says in the middle of licensing why it ends the connection, or where the session belongs. */
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
