/**
 * The data of a filtered SFTP channel. Forwarded data passes the recorder, the filter's own does not; both
 * are sent as the windows allow (RFC 4254 5.2). Bytes that the filter removes are granted to their sender
 * again; bytes that it adds take window from the other sender.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import type { ChannelEnd } from '../channel/channel-end.ts'
import type { Flow } from '../channel/flow.ts'
import { MAX_LATE } from '../channel/limits.ts'
import { extendedDataOf, MSG } from '../codec/messages.ts'
import type { FileDenial } from '../files/denial.ts'
import type { ChannelRecorder } from '../recorder/recorder.ts'
import { type FilterPolicy, SftpFilter } from './filter.ts'
import { messageBuffer, SendQueue } from './send-queue.ts'

/** One direction of the channel: its window, and the end it leads to. */
export interface Way {
  flow: Flow
  end: ChannelEnd
}

export interface Surroundings {
  readonly recorder: ChannelRecorder | undefined
  /** False once the channel has ended: nothing may be sent. */
  readonly isPassing: boolean
  /** Whether nothing may be sent to the target now. */
  readonly isSuspended: boolean
  /** Bytes of the client's data that wait before the filter. */
  readonly queued: number
  denied(denial: FileDenial): void
  /** Handles a message of the target that had to wait. */
  deliver(payload: Buffer): void
  /** Called when waiting requests may continue. */
  goOn(): void
  /** Called for a stream that cannot be parsed: the channel must be cut. */
  broken(reason: string): void
}

/** Shared by all channels: empty whenever another channel is served. */
const upBuffer = messageBuffer()
const downBuffer = messageBuffer()

/** Messages that must not overtake the target's data. */
const BEHIND_DATA: readonly (number | undefined)[] = [MSG.channelRequest, MSG.channelEof, MSG.channelClose]

export class FilteredData {
  readonly #up: Way
  readonly #down: Way
  readonly #toTarget: SendQueue
  readonly #toClient: SendQueue
  readonly #filter: SftpFilter
  readonly #around: Surroundings
  /** Messages of the target that wait. */
  #late: Buffer[] = []

  constructor(policy: FilterPolicy, up: Way, down: Way, around: Surroundings) {
    this.#up = up
    this.#down = down
    this.#around = around
    const toTarget = new SendQueue(up.end, up.flow, upBuffer, () => around.isSuspended)
    const toClient = new SendQueue(down.end, down.flow, downBuffer)
    this.#toTarget = toTarget
    this.#toClient = toClient
    this.#filter = new SftpFilter(policy, {
      passToTarget: (bytes) => {
        around.recorder?.fromClient(bytes)
        toTarget.write(bytes)
      },
      sendToTarget: (bytes) => toTarget.write(bytes),
      passToClient: (bytes) => {
        around.recorder?.fromTarget(bytes, false)
        toClient.write(bytes)
      },
      sendToClient: (bytes) => toClient.write(bytes),
      denied: (denial) => around.denied(denial),
      // Deferred: the buffers may hold another channel's data.
      wake: () => queueMicrotask(() => around.goOn()),
      get backlog() {
        return toClient.waiting
      },
    })
  }

  /** Whether data for the target must be sent before the client's end. */
  get isWaitingUp(): boolean {
    return this.#filter.isChecking || this.#filter.held + this.#toTarget.waiting > 0
  }

  fromClient(data: Uint8Array): void {
    this.#run(() => this.#filter.fromClient(data))
  }

  fromTarget(data: Uint8Array): void {
    this.#run(() => this.#filter.fromTarget(data))
  }

  /** Returns true, and copies the message, if it must wait until the client has read the data before it. */
  keepsBack(payload: Buffer): boolean {
    const isLate =
      payload[0] === MSG.channelExtendedData
        ? this.#late.length > 0 || extendedDataOf(payload).length > this.#down.flow.room
        : BEHIND_DATA.includes(payload[0]) && this.#late.length + this.#toClient.waiting > 0
    if (!isLate) return false
    if (this.#late.length >= MAX_LATE) throw new MalformedError('too many messages behind data')
    this.#late.push(Buffer.from(payload))
    return true
  }

  /** Call after a window has grown, or at the end of the channel. */
  resume(): void {
    this.#run(() => {
      this.#toClient.flush()
      this.#filter.resume()
    })
    const late = this.#late
    this.#late = []
    for (const payload of late) this.#around.deliver(payload)
  }

  /** Call at the end of the channel. */
  close(): void {
    this.#filter.close()
  }

  /** Drops replies: the client accepts no more. */
  dropAnswers(): void {
    this.#toClient.drop()
  }

  #run(work: () => void): void {
    if (this.#around.isPassing) {
      try {
        work()
      } catch (error) {
        if (!(error instanceof MalformedError)) throw error
        this.#around.broken(error.message)
      }
    }
    if (!this.#around.isPassing) {
      this.#toTarget.drop()
      this.#toClient.drop()
      return
    }
    this.#toTarget.flush()
    this.#toClient.flush()
    this.#up.flow.held = this.#filter.held + this.#toTarget.waiting + this.#around.queued
    this.#down.flow.held = this.#toClient.waiting
    // The receiver will not grant bytes that were removed before they used its window: grant them here.
    this.#down.end.grant(this.#up.flow, this.#up.flow.step)
    this.#up.end.grant(this.#down.flow, this.#down.flow.step)
  }
}
