/** All that goes to a client while it has a session: in one write for each turn, and behind its recording where that is strict. */
import { Gather } from '../../net/gather.ts'
import { Sender } from '../../net/sender.ts'
import { type ProvenClient, ProvenOutput } from '../../session/proven-output.ts'
import type { RdpClient } from '../front/client.ts'

export interface SendQueueOptions {
  client: RdpClient
  /** Of a strict session: resolves when what was recorded so far is on the disk. */
  flush: (() => Promise<void>) | undefined
  /** What was sent so far ends in the middle of an update. */
  isWithinUpdate: () => boolean
  /** More may be sent. */
  onDrain: () => void
}

export class SendQueue {
  readonly #client: RdpClient
  readonly #sender: Sender
  readonly #gather: Gather
  readonly #proven: ProvenOutput | undefined
  /** Of each write that waits for its recording, whether it ends in the middle of an update. */
  readonly #held: boolean[] = []
  #isWithinUpdate = false
  #written: number

  constructor({ client, flush, isWithinUpdate, onDrain }: SendQueueOptions) {
    this.#client = client
    this.#written = client.stream.queued
    this.#sender = new Sender(client.stream)
    client.onDrain = () => {
      this.#sender.recycle()
      onDrain()
    }
    const proven: ProvenClient = {
      onSend: undefined,
      onDrain,
      sendNow: (bytes) => {
        this.#isWithinUpdate = this.#held.shift() ?? false
        this.#written += bytes.length
        client.sendNow(bytes)
      },
    }
    this.#proven = flush && new ProvenOutput({ client: proven, flush })
    this.#gather = new Gather((bytes) => {
      if (proven.onSend) {
        this.#held.push(isWithinUpdate())
        proven.onSend(bytes)
        return
      }
      this.#isWithinUpdate = isWithinUpdate()
      this.#written += bytes.length
      this.#sender.send(bytes)
    })
    client.onSend = (bytes) => this.#gather.add(bytes)
  }

  /** What waits for its recording is so much that nothing should be read that makes more. */
  get isFull(): boolean {
    return this.#proven?.isFull ?? false
  }

  /** Bytes that were handed to the client's stream until now. */
  get written(): number {
    return this.#written
  }

  /** The client has the begin of an update and not its end: it takes nothing else. */
  get isWithinUpdate(): boolean {
    return this.#isWithinUpdate
  }

  /** What has gathered is written now. */
  flush(): void {
    this.#gather.flush()
  }

  /** The recording has failed: what waits for it is dropped, and what is sent from now on is the bastion's own. */
  destroy(): void {
    this.#gather.flush()
    this.#proven?.destroy()
  }

  /** Resolves when nothing waits any more; the client is somebody else's from then on. */
  async flushAll(): Promise<void> {
    this.#gather.flush()
    await this.#proven?.flushAll()
    this.#client.onSend = undefined
    this.#client.onDrain = undefined
  }
}
