/**
 * A channel that carries a forwarded connection (RFC 4254 7, 6.3): from the client to an address that the
 * target dials, or from a listener on the target to the client. It is opened toward the other side once the
 * audit log has stored it, and has neither requests nor standard error.
 */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { Flow } from '../channel/flow.ts'
import { buildChannelOpen } from '../codec/build.ts'
import { type ChannelOpenConfirmation, parseChannelRequest } from '../codec/messages.ts'
import type { Forwarded } from '../recorder/forward.ts'
import { Channel, type ChannelHost, type Opened } from './channel.ts'

/** The forwarding to offer to the other side. */
export interface Forwarding {
  recorded: Forwarded
  /** Type and data of the new CHANNEL_OPEN. */
  type: string
  typeData: Uint8Array
}

export class ForwardedChannel extends Channel {
  readonly #forwarding: Forwarding

  constructor(
    host: ChannelHost,
    id: number,
    by: 'client' | 'target',
    opened: Opened,
    forwarding: Forwarding,
  ) {
    const [up, down] = by === 'client' ? [0, opened.window] : [opened.window, 0]
    super(host, id, by, opened, new Flow(up, 0), new Flow(down, 0))
    this.#forwarding = forwarding
    this.stage = 'deciding'
  }

  /** Offers the channel to the other side. Called once the audit log has stored it. */
  begin(): void {
    if (this.stage !== 'deciding') return
    this.stage = 'passing'
    const { type, typeData, recorded } = this.#forwarding
    this.recorder = this.host.session.forwardRecorder(this.id, recorded)
    const to = this.openedBy === 'client' ? this.host.target : this.host.client
    to.send(buildChannelOpen({ type, sender: this.id, ...this.offer(), typeData }))
  }

  override confirmed(message: ChannelOpenConfirmation): void {
    this.#mustBeOffered()
    super.confirmed(message)
  }

  override failed(reason: number, description: string): void {
    this.#mustBeOffered()
    super.failed(reason, description)
  }

  protected override requestOfClient(payload: Buffer): void {
    this.client.turnDown(parseChannelRequest(payload).wantReply)
  }

  protected override inspect(payload: Buffer, data: Uint8Array, isError: boolean): Buffer | undefined {
    // RFC 4254 5.2 defines extended data for programs only, and `inspect` does not expect it.
    if (isError) throw new MalformedError('extended data on a forwarded connection')
    return super.inspect(payload, data, isError)
  }

  #mustBeOffered(): void {
    if (this.stage === 'deciding') throw new MalformedError('an answer to a channel that nobody opened')
  }
}
