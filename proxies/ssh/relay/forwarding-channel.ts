/**
 * A channel that carries somebody else's connection (RFC 4254 7, 6.3): from the client to where the target dials, or
 * from a listener on the target to the client. It is opened toward the other side when the audit log has it, and has
 * neither requests nor standard error.
 */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { Flow } from '../channel/flow.ts'
import { buildChannelOpen } from '../codec/build.ts'
import { type ChannelOpenConfirmation, parseChannelRequest } from '../codec/messages.ts'
import type { Forwarded } from '../recorder/forward.ts'
import { Channel, type ChannelHost, type Opened } from './channel.ts'

/** What is asked for, as it goes to the other side. */
export interface Forwarding {
  recorded: Forwarded
  /** The CHANNEL_OPEN's type and its data, built anew. */
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

  /** The audit log has it: it is offered to the other side. */
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
    // RFC 4254 5.2 gives it a meaning for programs only, and what looks at the data does not expect it.
    if (isError) throw new MalformedError('extended data on a forwarded connection')
    return super.inspect(payload, data, isError)
  }

  #mustBeOffered(): void {
    if (this.stage === 'deciding') throw new MalformedError('an answer to a channel that nobody opened')
  }
}
