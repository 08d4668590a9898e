import { afterEach, describe, expect, test } from 'vitest'
import type { StoredEvent } from '../../src/audit/chain.ts'
import { addressFlaw, meansCode, type Notification, webhookFlaw } from '../../src/model/notifications.ts'
import { Ages } from '../../src/notifications/ages.ts'
import { bodyOf, subjectOf } from '../../src/notifications/mail.ts'
import { DeliveryRefused } from '../../src/notifications/sender.ts'
import { NotificationSink, type NotificationSinkOptions } from '../../src/notifications/sink.ts'
import { type Fed, feeding, removeFolders, until } from '../audit/feeding.ts'
import { newNotification } from '../store/fixture.ts'

const running: Fed[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.close()))
  removeFolders()
})

const last = ({ repository }: Fed) => repository.rows.at(-1)!.sequence

/** Takes events in memory, unless `answer` throws. */
function receiver(most = 1) {
  const deliveries: StoredEvent[][] = []
  const made = {
    most,
    deliveries,
    answer: (_events: readonly StoredEvent[]): void => undefined,
    send: async (events: readonly StoredEvent[]) => {
      made.answer(events)
      deliveries.push([...events])
    },
  }
  return made
}

async function fed(sender: NotificationSinkOptions['sender'], oldest = () => 0) {
  const missed: string[] = []
  const sink = new NotificationSink({
    notification: { ...newNotification('soc'), id: 'id', severity: 'notice' } as Notification,
    sender,
    concerns: async () => true,
    onMissed: (count, reason) => missed.push(`${count} ${reason}`),
    oldest,
  })
  const one = await feeding([sink])
  running.push(one)
  return { one, missed }
}

test('a receiver that is away gets all of it when it is back, and is asked no more often than the pauses allow', async () => {
  const sender = receiver()
  let attempts = 0
  sender.answer = () => {
    attempts++
    throw new Error('away')
  }
  const { one, missed } = await fed(sender)
  for (const user of ['a', 'b', 'c']) await one.record('auth.failure', { user })
  await until(() => one.events('sink.down').length === 1)
  await until(() => attempts >= 3)
  sender.answer = () => undefined
  await until(() => one.feed.position === last(one))
  expect(sender.deliveries.flat().map(({ fields }) => fields.user)).toEqual(['a', 'b', 'c'])
  expect(attempts).toBeLessThan(10)
  expect(missed).toEqual([])
})

test('what a receiver refuses three times is left out, and counted; the rest goes on', async () => {
  const sender = receiver()
  let refusals = 0
  sender.answer = ([event]) => {
    if (event?.fields.user !== 'b') return
    refusals++
    throw new DeliveryRefused('expected status 2xx, got 400')
  }
  const { one, missed } = await fed(sender)
  for (const user of ['a', 'b', 'c']) await one.record('auth.failure', { user })
  await until(() => sender.deliveries.flat().some(({ fields }) => fields.user === 'c'))
  expect(refusals).toBe(3)
  expect(missed).toEqual(['1 refused: expected status 2xx, got 400'])
})

test('what is older than a day is left out, and counted', async () => {
  const sender = receiver()
  const { one, missed } = await fed(sender, () => Date.now() + 1000)
  await one.record('auth.failure', { user: 'a' })
  await until(() => one.feed.position === last(one))
  expect(sender.deliveries).toEqual([])
  expect(missed).toEqual(['1 older than a day when the receiver was back'])
})

describe('by a clock that jumps', () => {
  const HOUR = 60 * 60_000
  const clocks = { wall: 1e12, steady: 0 }
  const pass = (ms: number) => {
    clocks.wall += ms
    clocks.steady += ms
  }
  const agesOf = () => new Ages({ now: () => clocks.wall, monotonic: () => clocks.steady })

  test('forward, events of just before it are not too old, until a day later', () => {
    const ages = agesOf()
    pass(HOUR)
    const before = clocks.wall
    clocks.wall += 25 * HOUR
    expect(ages.oldest()).toBeLessThan(before)
    pass(23 * HOUR)
    expect(ages.oldest()).toBeLessThan(before)
    clocks.wall += 25 * HOUR
    const second = clocks.wall
    expect(ages.oldest()).toBeLessThan(before)
    pass(25 * HOUR)
    expect(ages.oldest()).toBe(second + HOUR)
  })

  test('back, a day is a day of the clock as it goes then', () => {
    const ages = agesOf()
    clocks.wall -= 25 * HOUR
    expect(ages.oldest()).toBe(clocks.wall - 24 * HOUR)
    clocks.wall += 25 * HOUR
    expect(ages.oldest()).toBe(clocks.wall - 49 * HOUR)
  })

  test('a little each day, a day stays a day', () => {
    const ages = agesOf()
    for (let day = 0; day < 100; day++) {
      pass(24 * HOUR)
      clocks.wall += 2000
      expect(ages.oldest()).toBe(clocks.wall - 24 * HOUR)
    }
  })
})

test('a receiver gets events together as far as it takes them so', async () => {
  const sender = receiver(50)
  let isHeld = true
  sender.answer = () => {
    if (isHeld) throw new Error('away')
  }
  const { one } = await fed(sender)
  await one.record('auth.failure', { user: 'first' })
  await until(() => one.events('sink.down').length === 1)
  for (let at = 0; at < 120; at++) void one.record('auth.failure', { user: `${at}` })
  await one.audit.flush()
  isHeld = false
  await until(() => one.feed.position === last(one))
  expect(sender.deliveries.every((events) => events.length <= 50)).toBe(true)
  expect(sender.deliveries.length).toBeLessThan(10)
  expect(sender.deliveries.flat().filter(({ code }) => code === 'auth.failure')).toHaveLength(121)
})

test('a receiver is not sent what is said of it', async () => {
  const sender = receiver()
  const { one } = await fed(sender)
  await one.record('sink.missed', { object_type: 'webhook', object: 'soc', count: 1 })
  await one.record('sink.missed', { object_type: 'webhook', object: 'other', count: 1 })
  await until(() => one.feed.position === last(one))
  expect(sender.deliveries.flat().map(({ fields }) => fields.object)).toEqual(['other'])
})

test.each([
  ['http://soc.lab.test/', /expected https/],
  ['https://user:pass@soc.lab.test/', /without a user name/],
  ['https://soc.lab.test/#x', /without a fragment/],
  ['https://169.254.169.254/latest', /no metadata service/],
  ['https://0xa9fea9fe/', /no metadata service/],
  ['https://metadata.google.internal/', /no metadata service/],
  ['file:///etc/passwd', /expected https/],
  ['soc', /expected a URL/],
])('no webhook is at %s', (url, flaw) => {
  expect(webhookFlaw(url)).toMatch(flaw)
})

test.each(['a@b\r\nBcc: c@d', 'a b@c', '"a\\"b"@c', 'A <a@b>', 'a@b,c@d', '@b', 'a@', 'a@b@c', 'a@-b'])(
  'no mail goes to %j',
  (address) => {
    expect(addressFlaw(address)).toMatch(/expected an address/)
  },
)

test('a webhook in a private network, and plain addresses, are in order', () => {
  expect(webhookFlaw('https://10.0.0.7:8443/events?x=1')).toBeUndefined()
  expect(addressFlaw("o'neil+soc@mail.lab.test")).toBeUndefined()
})

test('a pattern means a code, or all of its kind', () => {
  expect(meansCode('auth.*', 'auth.failure')).toBe(true)
  expect(meansCode('auth.*', 'authority.x')).toBe(false)
  expect(meansCode('command', 'command')).toBe(true)
})

test('the subject of a mail has codes only', () => {
  const event = { sequence: 7, time: 0, code: 'auth.failure', fields: { user: 'ops1' } } as const
  expect(subjectOf([event])).toBe('sallyport: warning: auth.failure')
  expect(bodyOf([event])).toBe(
    '1970-01-01T00:00:00.000Z warning auth.failure, row 7\nops1 could not sign in by ?\n  user: ops1\n',
  )
})
