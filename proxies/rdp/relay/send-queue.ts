/** Queues a session's data for the client: one write per turn, for strict sessions once it is recorded. */
import { Gather } from '../../net/gather.ts'
import { Sender } from '../../net/sender.ts'
import { type ProvenClient, ProvenOutput } from '../../session/proven-output.ts'
import type { RdpClient } from '../front/client.ts'

export interface SendQueueOptions {
  client: RdpClient
  /** For strict sessions: resolves when everything recorded so far is on disk. Otherwise undefined. */
  flush: (() => Promise<void>) | undefined
  /** The data sent so far ends inside an update. */
  isWithinUpdate: () => boolean
  /** More data can be sent. */
  onDrain: () => void
}

export class SendQueue {
  readonly #client: RdpClient
  readonly #sender: Sender
  readonly #gather: Gather
  readonly #proven: ProvenOutput | undefined
  /** For each write that waits for its recording: whether it ends inside an update. */
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

  /** So much waits for the recording that no more should be read. */
  get isFull(): boolean {
    return this.#proven?.isFull ?? false
  }

  /** Bytes handed to the client's stream so far. */
  get written(): number {
    return this.#written
  }

  /** The client has received the start of an update and not its end: it accepts nothing else. */
  get isWithinUpdate(): boolean {
    return this.#isWithinUpdate
  }

  /** Writes the gathered data now. */
  flush(): void {
    this.#gather.flush()
  }

  /** Drops the data that waits for a failed recording; data sent later is the bastion's own. */
  destroy(): void {
    this.#gather.flush()
    this.#proven?.destroy()
  }

  /** Resolves when the queue is empty; the client's next handler may send from then on. */
  async flushAll(): Promise<void> {
    this.#gather.flush()
    await this.#proven?.flushAll()
    this.#client.onSend = undefined
    this.#client.onDrain = undefined
  }
}
