/**
 * A notification as a receiver of events (src/audit/sink.ts): the audit log is its queue, and its feed keeps the
 * position of the last event that was taken, and tries again with growing pauses. Two bounds keep a receiver that
 * is back after a while from a flood: what is older than a day is left out, and so is what it refuses three times.
 */
import type { StoredEvent } from '../audit/chain.ts'
import type { EventCode } from '../audit/events/catalogue.ts'
import { severityOf } from '../audit/events/catalogue.ts'
import { SEVERITIES } from '../audit/events/fields.ts'
import type { Connection, ConnectionListener, Sink } from '../audit/sink.ts'
import { meansCode, type Notification } from '../model/notifications.ts'
import { DeliveryRefused, type NotificationSender } from './sender.ts'

const MAX_REFUSALS = 3

export interface NotificationSinkOptions {
  notification: Notification
  sender: Pick<NotificationSender, 'most' | 'send'>
  /** Returns whether an event is about the groups of the notification. */
  concerns: (event: StoredEvent) => Promise<boolean>
  /** Reports events that the receiver will not get. */
  onMissed: (count: number, reason: string) => void
  /** Returns the time before which events are left out (ages.ts), in milliseconds since the epoch. */
  oldest: () => number
}

export class NotificationSink implements Sink {
  readonly type: 'webhook' | 'mail'
  readonly address: string
  readonly identity: string
  readonly #options: NotificationSinkOptions
  /** The delivery on which the last connection failed: the next one begins with it. */
  #failed: readonly StoredEvent[] | undefined
  #refused = { sequence: 0, times: 0 }

  constructor(options: NotificationSinkOptions) {
    const { notification } = options
    this.#options = options
    this.type = notification.type === 'WEBHOOK' ? 'webhook' : 'mail'
    this.address = notification.notificationName
    this.identity = `notification ${notification.id}`
  }

  wants(code: EventCode): boolean {
    const { events } = this.#options.notification
    return events.length === 0 || events.some((pattern) => meansCode(pattern, code))
  }

  async connect({ settled }: ConnectionListener): Promise<Connection> {
    const abort = new AbortController()
    // A receiver is back when it has taken what it had not.
    const failed = this.#failed
    if (failed) await this.#deliver(failed, abort.signal)
    this.#failed = undefined
    const reached = failed?.at(-1)?.sequence ?? 0
    return {
      send: async (events) => {
        const chosen = await this.#chosen(events.filter(({ sequence }) => sequence > reached))
        const { most } = this.#options.sender
        for (let from = 0; from < chosen.length; from += most) {
          const some = chosen.slice(from, from + most)
          await this.#deliver(some, abort.signal)
          settled(some.at(-1)!.sequence)
        }
        const last = events.at(-1)
        if (last) settled(last.sequence)
      },
      close: async () => abort.abort(),
    }
  }

  async #deliver(events: readonly StoredEvent[], signal: AbortSignal): Promise<void> {
    try {
      await this.#options.sender.send(events, signal)
    } catch (error) {
      const [{ sequence } = { sequence: 0 }] = events
      const isRefused = error instanceof DeliveryRefused
      const times = !isRefused ? 0 : this.#refused.sequence === sequence ? this.#refused.times + 1 : 1
      if (isRefused) this.#refused = { sequence, times }
      if (times < MAX_REFUSALS) {
        if (!signal.aborted) this.#failed = events
        throw error
      }
      this.#options.onMissed(events.length, `refused: ${(error as Error).message}`)
    }
  }

  async #chosen(events: readonly StoredEvent[]): Promise<StoredEvent[]> {
    const { notification, concerns, oldest, onMissed } = this.#options
    const least = SEVERITIES.indexOf(notification.severity)
    const from = oldest()
    const chosen: StoredEvent[] = []
    let late = 0
    for (const event of events) {
      if (SEVERITIES.indexOf(severityOf(event)) < least || this.#isAboutItself(event)) continue
      if (!(await concerns(event))) continue
      if (event.time < from) late++
      else chosen.push(event)
    }
    if (late > 0) onMissed(late, 'older than a day when the receiver was back')
    return chosen
  }

  /** An event about a receiver that is down would be the next one that it does not take. */
  #isAboutItself({ code, fields }: StoredEvent): boolean {
    return code.startsWith('sink.') && fields.object_type === this.type && fields.object === this.address
  }
}
