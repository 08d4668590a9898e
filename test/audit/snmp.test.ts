import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { StoredEvent } from '../../src/audit/chain.ts'
import { kindOf, TRAP_CODES } from '../../src/audit/events/catalogue.ts'
import { cleanFields } from '../../src/audit/events/clean.ts'
import { EVENT_FIELDS, type EventFields, NUMERIC_FIELDS } from '../../src/audit/events/fields.ts'
import { sentenceOf } from '../../src/audit/sentence.ts'
import { notificationOf, SnmpSink } from '../../src/audit/sinks/snmp.ts'
import type { TrapTarget } from '../../src/config/config.ts'
import { Secret } from '../../src/model/secret.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Notification, type Snmptrapd, startSnmptrapd } from '../peers/snmptrapd.ts'
import { EVENT_CODES } from './codes.ts'
import { type Fed, feeding, removeFolders, until } from './feeding.ts'

const event = (code: StoredEvent['code'], fields: EventFields): StoredEvent => ({
  sequence: 1,
  time: 1_795_000_000_000,
  code,
  fields: cleanFields(fields),
})
const camel = (name: string) => name.replace(/(?:^|[._])(.)/g, (_, letter: string) => letter.toUpperCase())
const object = (notification: Notification | undefined, field: string) =>
  notification?.objects[`SALLYPORT-MIB::sallyport${camel(field)}.0`]
const trapOid = (notification: Notification) => notification.objects['SNMPv2-MIB::snmpTrapOID.0']
const numeric = (field: string) => NUMERIC_FIELDS.some((candidate) => candidate === field)

test('an event that the catalogue gives no notification has none', () => {
  for (const code of EVENT_CODES) {
    expect(notificationOf(event(code, {}), 32473) !== undefined, code).toBe(kindOf(code).trap)
  }
})

test('the enterprise number is the configured one', () => {
  const notification = notificationOf(event('auth.failure', { user: 'u' }), 99999)
  expect(notification?.oid).toBe('1.3.6.1.4.1.99999.0.1')
  expect(notification?.varbinds.every(({ oid }) => oid.startsWith('1.3.6.1.4.1.99999.2.'))).toBe(true)
})

describeWithPeers('a real snmptrapd', ['snmptrapd'], () => {
  let trapd: Snmptrapd
  let running: Fed[] = []
  beforeEach(async () => {
    trapd = await startSnmptrapd()
    running = []
  })
  afterEach(async () => {
    await Promise.all(running.map((one) => one.close()))
    removeFolders()
    await trapd.stop()
  })
  async function fedTo(target: TrapTarget): Promise<Fed> {
    const one = await feeding([new SnmpSink({ target, enterprise: 32473 })])
    running.push(one)
    return one
  }
  const v2c = (inform: boolean, port = trapd.port): TrapTarget => ({
    host: '127.0.0.1',
    port,
    inform,
    version: '2c',
    community: Secret.of(trapd.community),
  })
  const v3 = (password = trapd.user.authPassword): TrapTarget => ({
    host: '127.0.0.1',
    port: trapd.port,
    inform: true,
    version: 3,
    user: trapd.user.name,
    auth: 'sha256',
    authPassword: Secret.of(password),
    priv: 'aes',
    privPassword: Secret.of(trapd.user.privPassword),
  })

  test('decodes a version 2c trap of every event that has one, with all of its fields', async () => {
    const one = await fedTo(v2c(false))
    const fields = Object.fromEntries(
      EVENT_FIELDS.map((field, i) => [field, numeric(field) ? i * 1000 : `value of ${field}`]),
    ) as EventFields
    for (const code of EVENT_CODES) await one.record(code, fields)
    // The first is about the receiver itself.
    const [, ...notifications] = await trapd.waitFor(TRAP_CODES.length + 1)
    expect(notifications.map(trapOid).sort()).toEqual(
      TRAP_CODES.map((code) => `OID: SALLYPORT-MIB::sallyport${camel(code)}`).sort(),
    )
    for (const code of TRAP_CODES) {
      const found = notifications.find((one) => trapOid(one)?.endsWith(`sallyport${camel(code)}`))
      expect(found?.kind).toContain('TRAP2, SNMP v2c')
      expect(object(found, 'event_text')).toBe(`STRING: ${sentenceOf(event(code, fields))}`)
      expect(Object.keys(found?.objects ?? {})).toHaveLength(kindOf(code).fields.length + 4)
      expect(object(found, 'sequence')).toBe(`Counter64: ${one.events(code).at(-1)?.sequence}`)
      for (const field of kindOf(code).fields) {
        expect(object(found, field), field).toMatch(
          numeric(field)
            ? new RegExp(`^(Gauge32|Counter64): ${fields[field]}$`)
            : `STRING: value of ${field}`,
        )
      }
    }
    expect(one.events('sink.down')).toHaveLength(1)
  })

  test('reads hostile and extreme values as values', async () => {
    const one = await fedTo(v2c(false))
    await one.record('session.close', {
      user: 'a"b\\c]\nNOTIFICATION forged\u0000',
      account: '日'.repeat(2000),
      client_port: -5,
      bytes_in: Number.MAX_SAFE_INTEGER,
      bytes_out: 1e300,
      duration: 1e12,
    })
    const [, found, ...rest] = await trapd.waitFor(2)
    await sleep(100)
    expect(rest).toHaveLength(0)
    expect(object(found, 'user')).toBe('STRING: a"b\\c]\\nNOTIFICATION forged\\u0000')
    expect(object(found, 'account')).toMatch(/^STRING: 日+…$/)
    expect(object(found, 'client_port')).toBe('Gauge32: 0')
    expect(object(found, 'bytes_in')).toBe('Counter64: 9007199254740991')
    expect(object(found, 'bytes_out')).toBe('Counter64: 9007199254740991')
    expect(object(found, 'duration')).toBe('Gauge32: 4294967295')
    expect(one.feed.lost).toBe(0)
  })

  test.each(['2c', 3] as const)('acknowledges informs of version %s', async (version) => {
    const one = await fedTo(version === 3 ? v3() : v2c(true))
    for (let i = 0; i < 5; i++) await one.record('session.open', { user: `ops${i}` })
    const notifications = await trapd.waitFor(6)
    expect(notifications.every(({ kind }) => kind.includes(`INFORM, SNMP v${version}`))).toBe(true)
    await until(() => one.feed.position === one.repository.rows.at(-1)?.sequence)
    expect(notifications.map((found) => object(found, 'sequence'))).toEqual(
      [1, 2, 3, 4, 5, 6].map((row) => `Counter64: ${row}`),
    )
  })

  test('refuses a wrong password, which is told', async () => {
    const one = await fedTo(v3('another-password'))
    await one.record('session.open', { user: 'ops1' })
    for (let i = 0; i < 400 && one.events('sink.down').length === 0; i++) await sleep(20)
    expect(one.events('sink.down')).toHaveLength(1)
    expect(one.feed.position).toBe(0)
    expect(trapd.notifications()).toHaveLength(0)
  })
})
