import { type Static, Type } from 'typebox'
import { EVENTS } from '../../audit/events/catalogue.ts'
import { SEVERITIES } from '../../audit/events/fields.ts'
import {
  meansCode,
  NOTIFICATION_SECRETS,
  NOTIFICATION_TYPES,
  type Notification,
  type NotificationType,
} from '../../model/notifications.ts'
import type { Id } from '../../model/objects.ts'
import { Secret } from '../../model/secret.ts'
import { sealNotification } from '../../notifications/secrets.ts'
import { type ApiRequest, callerOf, requireRight } from '../access/caller.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { registerCollection } from '../collection/collection.ts'
import { paramsSchema } from '../collection/paths.ts'
import { referredIds } from '../collection/references.ts'
import { announced, resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import {
  check,
  checkName,
  exact,
  name,
  names,
  oneOf,
  partial,
  shown,
  text,
  titled,
} from '../schema/fields.ts'
import {
  Mail,
  mailOptionsOf,
  mailShown,
  Webhook,
  webhookOptionsOf,
  webhookShown,
} from '../schema/notification-options.ts'

/** Characters: an HMAC-SHA256 key of fewer can be guessed. */
const MIN_SIGNING_SECRET = 16
const MAX_EVENTS = 128
const SECRETS = ['signing_secret', 'password'] as const
/** Fields with the options of each type. */
export const NOTIFICATION_SECTIONS = { WEBHOOK: 'webhook', MAIL: 'mail' } as const

const notificationName = name('unique', 'soc')
const secret = (what: string, minLength: number) =>
  Type.Optional(
    Type.Union([Type.String({ minLength, maxLength: 1024 }), Type.Null()], {
      description: `${what}; never comes back, null removes it`,
    }),
  )
const Fields = {
  description: text('what the notification is for'),
  is_disabled: Type.Boolean({
    description: 'default false; nothing is sent, and what happens meanwhile never is',
  }),
  events: names('codes, or all of one kind as auth.*; empty: all', MAX_EVENTS),
  severity: oneOf(SEVERITIES, 'the least severe that is sent; warning unless given'),
  user_groups: names('only events of users in one of these; empty: all events'),
  target_groups: names('only events about targets in one of these; empty: all events'),
}
const Create = exact({
  notification_name: notificationName,
  type: oneOf(NOTIFICATION_TYPES, 'how it is sent'),
  ...partial(exact(Fields)).properties,
  webhook: Type.Optional(Webhook),
  mail: Type.Optional(Mail),
  signing_secret: secret(
    'key of the signatures (HMAC-SHA256) of a webhook, which sends nothing without it',
    MIN_SIGNING_SECRET,
  ),
  password: secret('password of mail/user_name', 1),
})
const Update = partial(Create)
const View = exact({
  ...shown,
  notification_name: notificationName,
  type: oneOf(NOTIFICATION_TYPES, 'how it is sent'),
  ...Fields,
  webhook: Webhook,
  mail: Mail,
  secrets: names('those that are set'),
})

type Change = Omit<Notification, 'id' | 'type' | 'secretNames' | 'secretRevision' | 'notificationName'> & {
  notificationName?: string
}

export function notificationResource(context: ResourceContext) {
  const { store, vault } = context.deps

  const changeOf = async (
    body: Static<typeof Update>,
    type: NotificationType,
    request: ApiRequest,
    own?: Notification,
  ): Promise<Change> => {
    // Events of sessions go to the receiver.
    requireRight(request, 'sessions', 'view')
    refuseForeign(body, type)
    const wanted = body.notification_name
    await checkName('notification_name', wanted, own, store.notifications, 'notificationName')
    for (const [at, pattern] of (body.events ?? []).entries()) {
      const isKnown = Object.keys(EVENTS).some((code) => meansCode(pattern, code))
      check(`events/${at}`, isKnown ? undefined : `there is no event "${pattern}"`)
    }
    const options =
      type === 'WEBHOOK'
        ? webhookOptionsOf(body.webhook ?? {}, own?.type === 'WEBHOOK' ? own.options : undefined)
        : mailOptionsOf(body.mail ?? {}, own?.type === 'MAIL' ? own.options : undefined)
    const groups = async <T extends { id: Id }>(
      field: 'user_groups' | 'target_groups',
      from: { find(ref: string): Promise<T | undefined> },
      old: Id[] = [],
    ) => (body[field] === undefined ? old : await referredIds(from, field, body[field]))
    return {
      ...(wanted !== undefined && { notificationName: wanted }),
      description: body.description ?? own?.description ?? '',
      isDisabled: body.is_disabled ?? own?.isDisabled ?? false,
      events: body.events ?? own?.events ?? [],
      severity: body.severity ?? own?.severity ?? 'warning',
      userGroupIds: await groups('user_groups', store.userGroups, own?.userGroupIds),
      targetGroupIds: await groups('target_groups', store.targetGroups, own?.targetGroupIds),
      options,
    }
  }

  const withSecret = (
    called: string,
    type: NotificationType,
    body: Static<typeof Update>,
    write: () => Promise<Notification>,
  ) => {
    const field = NOTIFICATION_SECRETS[type]
    const value = body[field]
    if (value === undefined) return write
    const event = { code: 'secret.change' as const, fields: { object_type: 'notification', object: called } }
    return announced([event], async () => {
      const { id } = await write()
      const sealed = value === null ? undefined : sealNotification(vault, id, field, Secret.of(value))
      await store.notifications.setSealedSecret(id, field, sealed)
      return (await store.notifications.find(id))!
    })
  }

  return resource({
    path: '/notifications',
    type: 'notification',
    title: 'Notifications',
    description:
      'Chosen events that are sent to a webhook, each as a signed request, or by mail. A caller needs `sessions: view` too. What a receiver does not take is sent again with growing pauses, for a day.',
    create: {
      schema: Create,
      async plan(body, request) {
        const { type } = body
        const change = await changeOf(body, type, request)
        return withSecret(body.notification_name, type, body, () =>
          store.notifications.create({
            ...change,
            type,
            notificationName: body.notification_name,
            secretNames: [],
            secretRevision: 0,
          } as Omit<Notification, 'id'>),
        )
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        if (body.type !== undefined && body.type !== old.type)
          throw fieldError('invalid_field', 'type', 'the type stays: make another notification')
        const change = await changeOf(body, old.type, request, old)
        refuseMovedPassword(old, change, body)
        return withSecret(old.notificationName, old.type, body, () =>
          store.notifications.update(old.id, change as Partial<Notification>, old),
        )
      },
    },
    removeFrom: (old) => store.notifications.remove(old.id, old),
    view: View,
    show: async (one, read) => ({
      notification_name: one.notificationName,
      type: one.type,
      description: one.description,
      is_disabled: one.isDisabled,
      events: one.events,
      severity: one.severity,
      user_groups: await read.userGroups(one.userGroupIds),
      target_groups: await read.targetGroups(one.targetGroupIds),
      webhook: one.type === 'WEBHOOK' ? webhookShown(one.options) : {},
      mail: one.type === 'MAIL' ? mailShown(one.options) : {},
      secrets: one.secretNames,
    }),
    label: (one) => String(one['notification_name']),
    secrets: [...SECRETS],
    list: (_request, page) => store.notifications.list(page),
    find: (_request, ref) => store.notifications.find(ref),
  })
}

/** @throws ApiError `invalid_field` for options and secrets of another type */
function refuseForeign(body: Static<typeof Update>, type: NotificationType): void {
  const own: readonly string[] = [NOTIFICATION_SECTIONS[type], NOTIFICATION_SECRETS[type]]
  for (const field of [...Object.values(NOTIFICATION_SECTIONS), ...SECRETS]) {
    if (own.includes(field)) continue
    // An import has every column: an empty one says nothing.
    const value = body[field]
    const isSaid = value != null && (typeof value === 'string' || Object.keys(value).length > 0)
    check(field, isSaid ? `a notification of type ${type} has no such field` : undefined)
  }
}

/** Another server, or another way to it, would get the old password. @throws ApiError `invalid_field` */
function refuseMovedPassword(old: Notification, change: Change, body: Static<typeof Update>): void {
  if (old.type !== 'MAIL' || old.secretNames.length === 0 || body.password !== undefined) return
  const { host, port, security, caCertificates } = change.options as typeof old.options
  const before = old.options
  const isSame =
    before.host === host &&
    before.port === port &&
    before.security === security &&
    before.caCertificates === caCertificates
  check(
    'password',
    isSame ? undefined : 'the password goes to another server, or by another way: give it again',
  )
}

const Answer = titled(
  'NotificationTestResult',
  exact({
    ok: Type.Boolean({ description: 'the receiver has taken the event' }),
    detail: Type.String({ description: 'what happened; nothing of what the receiver said but its status' }),
  }),
)

export function registerNotifications(app: Api, context: Context): void {
  registerCollection(app, context, notificationResource(context))
  const { audit, clock, notifications, store } = context.deps
  const path = '/notifications/:ref/test'
  app.post(
    path,
    {
      schema: {
        tags: ['Notifications'],
        summary: 'Send an event `notification.test`, whatever the notification chooses',
        description: 'Five at once, and ten a minute for each notification.',
        params: paramsSchema(path),
        response: { 200: Answer, ...errorResponses(400, 401, 403, 404, 413, 415, 503) },
      },
    },
    async (request) => {
      const one = await store.notifications.find((request.params as { ref: string }).ref)
      if (!one) throw new ApiError('not_found')
      const fields = {
        ...actor(callerOf(request)),
        object_type: 'notification',
        object: one.notificationName,
      }
      await record(audit, request, 'notification.test', fields)
      const trial = await notifications.try(one, {
        time: clock(),
        code: 'notification.test',
        fields,
      })
      if (!trial) throw new ApiError('busy')
      return trial
    },
  )
}
