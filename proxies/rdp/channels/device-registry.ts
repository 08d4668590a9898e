/**
 * A server of device redirection (MS-RDPEFS 1.3.1) that uses no device. It asks a client for its devices if
 * the target does not have the channel, so that the user learns which right each device lacks.
 */
import {
  buildDeviceMessage,
  buildDeviceReply,
  buildOwnAnnouncement,
  buildOwnCapabilities,
  DEVICE_MESSAGE_LIMIT,
  DEVICE_PACKET,
  parseDeviceMessage,
  parseDevices,
  RDPDR,
} from '../codec/rdpdr.ts'
import type { DeviceVisitor } from './device-filter.ts'
import { type SendChunk, type Side, sendMessage } from './direction.ts'
import { MessageStream } from './message-stream.ts'

/** STATUS_ACCESS_DENIED. */
const ACCESS_DENIED = 0xc0000022
/** A client sends two: before the user logs on, and after. */
const MAX_ANNOUNCEMENTS = 16

export interface DeviceRegistryOptions {
  visitor: Pick<DeviceVisitor, 'denied'>
  send: SendChunk
}

/** The client's next message that gets a response. */
type State = 'silent' | 'reply' | 'name' | 'devices'

export class DeviceRegistry {
  readonly #options: DeviceRegistryOptions
  readonly #stream: MessageStream
  #state: State = 'silent'
  #announcements = 0

  constructor(options: DeviceRegistryOptions) {
    this.#options = options
    this.#stream = new MessageStream({
      name: RDPDR,
      limit: DEVICE_MESSAGE_LIMIT,
      take: (message) => this.#take(message),
    })
  }

  /** Starts the exchange: the client has a desktop now. Later calls do nothing. */
  begin(): void {
    if (this.#state !== 'silent') return
    this.#state = 'reply'
    this.#say(buildOwnAnnouncement())
  }

  /** Receives a chunk with its header. Throws MalformedError. */
  receive(from: Side, chunk: Uint8Array): void {
    if (from === 'client') this.#stream.receive(chunk)
  }

  #take(whole: Uint8Array): void {
    const { component, packet, body } = parseDeviceMessage(whole)
    if (component !== 'core') return
    if (this.#state === 'reply' && packet === DEVICE_PACKET.clientIdConfirm) this.#state = 'name'
    else if (this.#state === 'name' && packet === DEVICE_PACKET.clientName) {
      this.#state = 'devices'
      this.#say(buildOwnCapabilities())
      this.#say(buildOwnAnnouncement(DEVICE_PACKET.clientIdConfirm))
      this.#say(buildDeviceMessage(DEVICE_PACKET.userLoggedOn, new Uint8Array(0)))
    } else if (this.#state === 'devices' && packet === DEVICE_PACKET.deviceListAnnounce) this.#refuse(body)
  }

  #refuse(body: Uint8Array): void {
    if (this.#announcements === MAX_ANNOUNCEMENTS) return
    this.#announcements++
    for (const device of parseDevices(body)) {
      this.#options.visitor.denied({ type: device.type, name: device.name })
      this.#say(buildDeviceReply(device.id, ACCESS_DENIED))
    }
  }

  #say(message: Uint8Array): void {
    sendMessage(this.#options.send, 'client', message)
  }
}
