/**
 * The data of an SFTP channel that is filtered: what the filter passes goes by the recorder, what it adds does not,
 * and both go out as the windows let them (RFC 4254 5.2). Bytes that the filter swallows are granted to their
 * sender anew; bytes that it adds are room that the other sender has to wait for.
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

/** One direction of the channel: its window, and the end that it leads to. */
export interface Way {
  flow: Flow
  end: ChannelEnd
}

export interface Surroundings {
  readonly recorder: ChannelRecorder | undefined
  /** False once the channel is ended: nothing may follow. */
  readonly isPassing: boolean
  denied(denial: FileDenial): void
  /** A message of the target that had to wait. */
  deliver(payload: Buffer): void
  /** What waits here may go on. */
  goOn(): void
  /** The stream cannot be followed: the channel has to be cut. */
  broken(reason: string): void
}

/** Nothing of one channel is left in them when the next one is served. */
const upBuffer = messageBuffer()
const downBuffer = messageBuffer()

/** What comes behind the target's data and must not overtake it. */
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
    const toTarget = new SendQueue(up.end, up.flow, upBuffer)
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
      // Another channel's data may be in the buffers.
      wake: () => queueMicrotask(() => around.goOn()),
      get backlog() {
        return toClient.waiting
      },
    })
  }

  /** The target is to get more before the client's end may follow. */
  get isWaitingUp(): boolean {
    return this.#filter.isChecking || this.#filter.held + this.#toTarget.waiting > 0
  }

  fromClient(data: Uint8Array): void {
    this.#run(() => this.#filter.fromClient(data))
  }

  fromTarget(data: Uint8Array): void {
    this.#run(() => this.#filter.fromTarget(data))
  }

  /** True: a message of the target has to wait until the client has taken the data before it. It is copied. */
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

  /** A window has become wider, or the channel is over. */
  resume(): void {
    this.#run(() => {
      this.#toClient.flush()
      this.#filter.resume()
    })
    const late = this.#late
    this.#late = []
    for (const payload of late) this.#around.deliver(payload)
  }

  /** The channel is over. */
  close(): void {
    this.#filter.close()
  }

  /** The client takes no more. */
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
    this.#up.flow.held = this.#filter.held + this.#toTarget.waiting
    this.#down.flow.held = this.#toClient.waiting
    // Bytes that go no further leave the receiver's window as it was: no adjustment of the receiver's will follow.
    this.#down.end.grant(this.#up.flow, this.#up.flow.step)
    this.#up.end.grant(this.#down.flow, this.#down.flow.step)
  }
}
