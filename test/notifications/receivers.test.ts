/** Notifications, received by Python: requests whose signatures its hmac proves, and mail that aiosmtpd takes. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { StoredEvent } from '../../src/audit/chain.ts'
import type { EventFields } from '../../src/audit/events/fields.ts'
import type { MailOptions, Notification, WebhookOptions } from '../../src/model/notifications.ts'
import { Secret } from '../../src/model/secret.ts'
import { isOwnOrGuarded } from '../../src/notifications/addresses.ts'
import { MailSender } from '../../src/notifications/mail.ts'
import { DeliveryRefused, type NotificationSender } from '../../src/notifications/sender.ts'
import { NotificationSink } from '../../src/notifications/sink.ts'
import { WebhookSender } from '../../src/notifications/webhook.ts'
import { type Fed, feeding, removeFolders, until } from '../audit/feeding.ts'
import { describeWithPeers } from '../peers/program.ts'
import { certificateFiles } from '../peers/vnc/certificate.ts'
import { type Receivers, startReceivers } from './receivers.ts'

const SIGNING = 'a signing secret'
const maker = { hostname: 'bastion.lab.test', version: '1.2.3' }
const event = (fields: EventFields = {}): StoredEvent => ({
  sequence: 7,
  time: Date.UTC(2026, 10, 20),
  code: 'auth.failure',
  fields: { user: 'ops1', ...fields },
})
const never = () => false
const signal = new AbortController().signal

describeWithPeers('a receiver', ['python3', 'python3-aiosmtpd'], () => {
  let receivers: Receivers
  let ca: string
  let port: number
  let mailPort: number
  const running: Fed[] = []

  beforeAll(async () => {
    receivers = await startReceivers(SIGNING)
    ;({ ca, port, mailPort } = receivers)
  })
  afterAll(() => receivers.stop())
  afterEach(async () => {
    await Promise.all(running.splice(0).map((one) => one.close()))
    removeFolders()
  })

  const lines = () => receivers.lines()
  /** Returns what came since `before`, when it is `count` lines; none more come within a moment. */
  const heard = async (before: number, count: number) => {
    await until(() => lines().length >= before + count)
    await sleep(50)
    expect(lines()).toHaveLength(before + count)
    return lines().slice(before)
  }
  const webhook = (status: number, more: Partial<WebhookOptions> = {}, secret = SIGNING) =>
    new WebhookSender({
      options: { url: `https://localhost:${port}/${status}`, caCertificates: ca, ...more },
      secret: Secret.of(secret),
      maker,
      now: Date.now,
      isBarred: never,
    })
  const mail = (more: Partial<MailOptions> = {}, password = 'mail-password', limitMs?: number) =>
    new MailSender({
      ...(limitMs !== undefined && { limitMs }),
      options: {
        host: 'localhost',
        port: mailPort,
        security: 'starttls',
        caCertificates: ca,
        userName: 'bastion',
        from: 'bastion@lab.test',
        to: ['soc@lab.test'],
        ...more,
      },
      secret: Secret.of(password),
      hostname: maker.hostname,
      isBarred: never,
    })
  const refusal = async (sender: NotificationSender, fields?: EventFields): Promise<Error> =>
    await sender.send([event(fields)], signal).then(
      () => new Error('it was taken'),
      (error: Error) => error,
    )

  test('of a webhook proves the signature of each event, whatever is in it', async () => {
    const user = 'x"\r\nx-sallyport-event: auth.success\\ud800 日本'.slice(0, 40)
    const before = lines().length
    await webhook(200).send([event({ user: 'é' }), event({ reason: user })], signal)
    const [first, second] = await heard(before, 2)
    expect(first).toMatchObject({ valid: true, event: 'auth.failure', delivery: '7' })
    expect(first?.body).toMatchObject({ event: { action: 'auth.failure', sequence: 7 }, user: { name: 'é' } })
    expect(second).toMatchObject({ valid: true, event: 'auth.failure', body: { event: { reason: user } } })
    expect(second?.headers).toEqual([
      'connection',
      'content-length',
      'content-type',
      'host',
      'user-agent',
      'x-sallyport-delivery',
      'x-sallyport-event',
      'x-sallyport-signature',
      'x-sallyport-timestamp',
    ])
    await webhook(200, {}, 'another secret').send([event()], signal)
    expect(await heard(before + 2, 1)).toMatchObject([{ valid: false }])
  })

  test('of a webhook is not followed elsewhere, and nothing that it says is shown', async () => {
    for (const [status, isRefused] of [
      [302, true],
      [404, true],
      [429, false],
      [503, false],
    ] as const) {
      const before = lines().length
      const error = await refusal(webhook(status))
      expect(error.message).toContain(`got ${status}`)
      expect(error.message).not.toContain('canary')
      expect(error instanceof DeliveryRefused).toBe(isRefused)
      await heard(before, 1)
    }
  })

  test('of a webhook is believed only by its certificate, and is not this machine', async () => {
    const { caCertificates: _none, ...options } = { url: `https://localhost:${port}/200`, caCertificates: ca }
    const deps = { secret: Secret.of(SIGNING), maker, now: Date.now }
    const before = lines().length
    const unknown = new WebhookSender({ ...deps, options, isBarred: never })
    expect((await refusal(unknown)).message).toMatch(/self-signed|certificate/)
    for (const host of ['localhost', '127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0']) {
      const own = { url: `https://${host}:${port}/200`, caCertificates: ca }
      const sender = new WebhookSender({ ...deps, options: own, isBarred: isOwnOrGuarded })
      expect((await refusal(sender)).message, host).toMatch(/expected an address that may be connected to/)
    }
    expect(lines()).toHaveLength(before)
  })

  test('of mail gets it by STARTTLS with a password, and what users chose stands in its body only', async () => {
    const hostile = { user: 'x\r\nBcc: mallory@lab.test\r\n\r\n.\r\nMAIL FROM:<x>', object: 'é日' }
    const begin = lines().length
    await mail().send([event(hostile), event()], signal)
    const [got] = await heard(begin, 1)
    expect(got).toMatchObject({
      sender: 'bastion@lab.test',
      recipients: ['soc@lab.test'],
      tls: true,
      login: 'bastion',
    })
    const [head] = got!.mail.split(/\r?\n\r?\n/)
    expect(head).toMatch(/^Subject: sallyport: 2 events$/m)
    expect(head).not.toMatch(/mallory/)
    const before = lines().length
    expect((await refusal(mail({}, 'wrong'))).message).toBe('the mail was not taken: EAUTH, reply 535')
    expect(await refusal(mail({ security: 'none' }))).toBeInstanceOf(DeliveryRefused)
    const refused = await refusal(mail({ to: ['refused@lab.test'] }))
    expect(refused).toBeInstanceOf(DeliveryRefused)
    const later = await refusal(mail({ to: ['later@lab.test'] }))
    expect(later).not.toBeInstanceOf(DeliveryRefused)
    for (const { message } of [refused, later]) expect(message).not.toContain('canary')
    expect(lines()).toHaveLength(before)
  })

  test('is tried without a delivery: by its certificate, by the sign-in', async () => {
    const files = await certificateFiles()
    const other = { caCertificates: files.pem.cert }
    files.remove()
    const before = lines().length
    const reached = (sender: NotificationSender) =>
      sender.reach(signal).then(
        () => 'reached',
        ({ message }: Error) => message,
      )
    expect(await reached(webhook(200))).toBe('reached')
    expect(await reached(mail())).toBe('reached')
    expect(await reached(webhook(200, other))).toMatch(/self-signed|certificate/)
    expect(await reached(mail({}, 'wrong'))).toBe('no sign-in: EAUTH, reply 535')
    expect(await reached(mail(other))).toMatch(/^no sign-in: E(TLS|SOCKET)$/)
    await sleep(50)
    expect(lines()).toHaveLength(before)
  })

  test('of mail that goes on saying a little is left: by the limit of a mail, and when the sink is closed', async () => {
    const ended: Promise<unknown>[] = []
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      const drip = setInterval(() => socket.write('2'), 20)
      // Not `once` of node:events: a client that leaves unread bytes resets the connection.
      ended.push(new Promise((resolve) => socket.once('close', resolve)).finally(() => clearInterval(drip)))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port: drips } = server.address() as AddressInfo
    const close = new AbortController()
    const plain = { port: drips, host: '127.0.0.1', security: 'none' } as const
    await expect(mail(plain, '', 300).send([event()], signal)).rejects.toThrow('not taken within 0.3 s')
    const closed = mail(plain, '').send([event()], close.signal)
    const tried = mail(plain, '').reach(close.signal)
    await until(() => ended.length === 3)
    close.abort()
    await expect(closed).rejects.toThrow('the mail was not taken')
    await expect(tried).rejects.toThrow('no sign-in')
    await Promise.all(ended)
    server.close()
  })

  test('as a receiver of the audit log gets what it chose, in order, and each of it once', async () => {
    const missed: string[] = []
    const notification: Notification = {
      id: 'id',
      notificationName: 'soc',
      description: '',
      isDisabled: false,
      type: 'WEBHOOK',
      events: ['auth.*', 'sink.*'],
      severity: 'warning',
      userGroupIds: [],
      targetGroupIds: [],
      options: { url: '' },
      secretNames: [],
      secretRevision: 0,
    }
    const begin = lines().length
    const sink = new NotificationSink({
      notification,
      sender: webhook(200),
      concerns: async ({ fields }) => fields.user !== 'stranger',
      onMissed: (count, reason) => missed.push(`${count} ${reason}`),
      oldest: () => 0,
    })
    const one = await feeding([sink])
    running.push(one)
    for (const user of ['a', 'stranger', 'b']) await one.record('auth.failure', { user })
    await one.record('auth.success', { user: 'c' })
    await one.record('session.denied', { user: 'd' })
    await one.record('auth.failure', { user: 'e' })
    await until(() => one.feed.position === one.repository.rows.at(-1)!.sequence)
    // sink.begin of the receiver itself is not sent.
    expect((await heard(begin, 3)).map(({ body }) => body.user.name)).toEqual(['a', 'b', 'e'])
    expect(missed).toEqual([])
  })
})
