/**
 * The data of an SFTP channel that is filtered: what the filter passes goes by the recorder, what it adds does not,
 * and both go out as the windows let them (RFC 4254 5.2). Bytes that the filter swallows are granted to their
 * sender anew; bytes that it adds are room that the other sender has to wait for.
 */
import type { ChannelEnd } from '../channel-end.ts'
import { MalformedError } from '../codec/reader.ts'
import type { Flow } from '../flow.ts'
import type { ChannelRecorder } from '../recorder/recorder.ts'
import { type FileDenial, type FilterPolicy, SftpFilter } from './filter.ts'
import { messageBuffer, Outlet } from './outlet.ts'

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
  /** The stream cannot be followed: the channel has to be cut. */
  broken(reason: string): void
}

/** Nothing of one channel is left in them when the next one is served. */
const upBuffer = messageBuffer()
const downBuffer = messageBuffer()

export class FilteredData {
  readonly #up: Flow
  readonly #down: Flow
  readonly #toTarget: Outlet
  readonly #toClient: Outlet
  readonly #filter: SftpFilter
  readonly #around: Surroundings

  constructor(policy: FilterPolicy, up: Way, down: Way, around: Surroundings) {
    this.#up = up.flow
    this.#down = down.flow
    this.#around = around
    const toTarget = new Outlet(up.end, up.flow, upBuffer)
    const toClient = new Outlet(down.end, down.flow, downBuffer)
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
      get backlog() {
        return toClient.waiting
      },
    })
  }

  /** The target is to get more before the client's end may follow. */
  get isWaitingUp(): boolean {
    return this.#filter.held + this.#toTarget.waiting > 0
  }

  get isWaitingDown(): boolean {
    return this.#toClient.waiting > 0
  }

  fromClient(data: Uint8Array): void {
    this.#run(() => this.#filter.fromClient(data))
  }

  fromTarget(data: Uint8Array): void {
    this.#run(() => this.#filter.fromTarget(data))
  }

  /** A window has become wider. */
  resume(): void {
    this.#run(() => {
      this.#toClient.flush()
      this.#filter.resume()
    })
  }

  /** The client takes no more. */
  dropAnswers(): void {
    this.#toClient.drop()
  }

  #drop(): void {
    this.#toTarget.drop()
    this.#toClient.drop()
    this.#up.held = this.#down.held = 0
  }

  #run(work: () => void): void {
    if (!this.#around.isPassing) {
      this.#drop()
      return
    }
    try {
      work()
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error
      this.#around.broken(error.message)
    }
    if (!this.#around.isPassing) {
      this.#drop()
      return
    }
    this.#toTarget.flush()
    this.#toClient.flush()
    this.#up.held = this.#filter.held + this.#toTarget.waiting
    this.#down.held = this.#toClient.waiting
  }
}
