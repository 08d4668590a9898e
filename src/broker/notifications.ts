/**
 * Receivers of the objects of `/notifications`. The objects are in the database, and may be changed by another
 * process: they are looked at together with those of accounting.
 */
import { performance } from 'node:perf_hooks'
import { Allowances } from '../audit/allowances.ts'
import type { StoredEvent } from '../audit/chain.ts'
import type { Audit, AuditEvent } from '../audit/events/catalogue.ts'
import type { Sink } from '../audit/sink.ts'
import type { Maker } from '../audit/sinks/formats/cef.ts'
import { NOTIFICATION_SECRETS, type Notification } from '../model/notifications.ts'
import type { Secret } from '../model/secret.ts'
import { isGuarded, isOwnOrGuarded } from '../notifications/addresses.ts'
import { Ages } from '../notifications/ages.ts'
import { MailSender } from '../notifications/mail.ts'
import { openNotification } from '../notifications/secrets.ts'
import type { NotificationSender } from '../notifications/sender.ts'
import { NotificationSink } from '../notifications/sink.ts'
import { WebhookSender } from '../notifications/webhook.ts'
import type { NotifiedPlace, Store } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import { KeptSinks } from './kept-sinks.ts'

/** Trials of one notification: a few at once, and ten a minute. */
const TRIALS = { burst: 5, perSecond: 1 / 6 }

export interface NotificationsDeps {
  store: Pick<Store, 'notifications'>
  vault: Pick<Vault, 'open'>
  audit: Pick<Audit, 'record'>
  maker: () => Maker
  /** Milliseconds since the epoch. */
  now: () => number
  onError: (error: Error) => void
}

/** Result of a trial; undefined if there were too many. */
export type Trial = { ok: boolean; detail: string } | undefined

export class Notifications {
  readonly #deps: NotificationsDeps
  readonly #trials = new Allowances(TRIALS)
  readonly #ages: Ages
  readonly #kept = new KeptSinks()

  constructor(deps: NotificationsDeps) {
    this.#deps = deps
    this.#ages = new Ages({ now: deps.now, monotonic: () => performance.now() })
  }

  /** Returns receivers for the present objects: of those that have not changed the same as before. */
  async sinks(): Promise<Sink[]> {
    return await this.#kept.of(await this.#origins(), ({ notification }) => this.#sinkOf(notification))
  }

  /** Sends one event, whatever the notification chooses. */
  async try(notification: Notification, event: AuditEvent): Promise<Trial> {
    if (!this.#trials.take(notification.id, performance.now())) return undefined
    try {
      const sender = await this.#senderOf(notification)
      await sender.send([{ sequence: 0, ...event }], new AbortController().signal)
      return { ok: true, detail: 'the receiver has taken it' }
    } catch (error) {
      return { ok: false, detail: (error as Error).message }
    }
  }

  /** Returns the senders to the receivers that are enabled. */
  async senders(): Promise<{ notification: Notification; sender: NotificationSender }[]> {
    const origins = await this.#origins()
    return await Promise.all(
      origins.map(async ({ notification }) => ({
        notification,
        sender: await this.#senderOf(notification),
      })),
    )
  }

  /** Returns what receivers are made of. */
  async #origins(): Promise<{ notification: Notification; maker: Maker }[]> {
    const { items } = await this.#deps.store.notifications.list()
    const maker = this.#deps.maker()
    return items.filter(({ isDisabled }) => !isDisabled).map((notification) => ({ notification, maker }))
  }

  async #sinkOf(notification: Notification): Promise<Sink> {
    const { audit, onError } = this.#deps
    const about = {
      object_type: notification.type === 'WEBHOOK' ? 'webhook' : 'mail',
      object: notification.notificationName,
    }
    return new NotificationSink({
      notification,
      sender: await this.#senderOf(notification),
      concerns: (event) => this.#concerns(notification, event),
      oldest: () => this.#ages.oldest(),
      onMissed: (count, reason) => {
        audit.record('sink.missed', { ...about, count, reason }).catch(onError)
      },
    })
  }

  async #senderOf(notification: Notification): Promise<NotificationSender> {
    const { maker, now } = this.#deps
    const secret = await this.#secretOf(notification)
    if (notification.type === 'WEBHOOK') {
      const { options } = notification
      return new WebhookSender({ options, secret, maker: maker(), now, isBarred: isOwnOrGuarded })
    }
    const { options } = notification
    return new MailSender({ options, secret, hostname: maker().hostname, isBarred: isGuarded })
  }

  async #secretOf({ id, type }: Notification): Promise<Secret | undefined> {
    const { store, vault, onError } = this.#deps
    const name = NOTIFICATION_SECRETS[type]
    try {
      const sealed = await store.notifications.sealedSecret(id, name)
      return sealed && openNotification(vault, id, name, sealed)
    } catch (error) {
      // Without its secret the receiver is down, and says so; the broker runs.
      onError(error as Error)
      return undefined
    }
  }

  async #concerns({ userGroupIds, targetGroupIds }: Notification, { fields }: StoredEvent): Promise<boolean> {
    const { notifications } = this.#deps.store
    if (userGroupIds.length > 0) {
      if (fields.user === undefined) return false
      if (!(await notifications.isUserIn(String(fields.user), userGroupIds))) return false
    }
    if (targetGroupIds.length === 0) return true
    const place: NotifiedPlace = {}
    for (const name of ['account', 'domain', 'device', 'service'] as const) {
      const value = fields[name]
      if (value !== undefined) place[name] = String(value)
    }
    return await notifications.isTargetIn(place, targetGroupIds)
  }
}
