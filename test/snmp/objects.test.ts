import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { SIGN_IN_METHODS } from '../../src/audit/events/fields.ts'
import { METRICS, managedObjects, type Sample, type Self } from '../../src/snmp/objects.ts'
import { type Oid, oid } from '../../src/snmp/oid.ts'
import { metricsOf } from '../broker/parts-of-metrics.ts'

const self: Self = {
  version: '0.1.0',
  hostname: 'b1.example.com',
  enterprise: 99999,
  engine: { id: Buffer.alloc(17, 1), boots: 3 },
  maxRequest: 4096,
  now: 1_900_000_000_000,
  uptimeSeconds: 12,
}
const OWN = '1.3.6.1.4.1.99999.1.'
const SYNTAX_TAGS: Readonly<Record<string, number>> = {
  SallyportText: 0x04,
  DateAndTime: 0x04,
  Integer32: 0x02,
  SallyportBrokerState: 0x02,
  TruthValue: 0x02,
  Counter32: 0x41,
  Gauge32: 0x42,
  TimeTicks: 0x43,
  Counter64: 0x46,
}

/** Returns the readable objects of the MIB by name: where they are below sallyportObjects, and their syntax. */
function readable(): Map<string, { name: string; syntax: string }> {
  const mib = readFileSync('config/SALLYPORT-MIB.txt', 'utf8')
  const places = new Map<string, string>([['sallyportObjects', '']])
  const found = new Map<string, { name: string; syntax: string }>()
  const definitions =
    /^(\w+)\s+(?:OBJECT IDENTIFIER|OBJECT-TYPE\s+SYNTAX ([^\n]+)[\s\S]*?)\s+::= \{ (\w+) (\d+) \}$/gm
  for (const [whole, name = '', syntax = '', parent = '', number] of mib.matchAll(definitions)) {
    const above = places.get(parent)
    if (above === undefined) continue
    const place = above === '' ? `${number}` : `${above}.${number}`
    places.set(name, place)
    if (whole.includes('MAX-ACCESS read-only')) found.set(place, { name, syntax })
  }
  return found
}

const series: Readonly<Record<string, Sample[]>> = {
  sallyport_sink_queued_messages: [{ labels: { sink: '0-log', receiver: 'log' }, value: 5 }],
  sallyport_certificate_expiry_timestamp_seconds: [{ labels: { listener: 'rdp' }, value: 1_899_999_999 }],
  sallyport_broker_state: [{ labels: { broker: 3, state: 'unlinked' }, value: 1 }],
}
const ofEach = [{ labels: { broker: 3, worker: 2 }, value: 1 }]
const objects = managedObjects(self, (metric) => series[metric] ?? ofEach)
const own = objects
  .map(({ name, instances }) => ({ place: name.join('.'), instances }))
  .filter(({ place }) => place.startsWith(OWN))
  .map(({ place, instances }) => ({ place: place.slice(OWN.length), instances }))

test('have a row for each way of a sign-in, by the names of the MIB', () => {
  const mib = readFileSync('config/SALLYPORT-MIB.txt', 'utf8')
  const [, listed = ''] = /^sallyportSignInMethod OBJECT-TYPE\s+SYNTAX INTEGER \{([^}]+)\}/m.exec(mib) ?? []
  const camel = (name: string) => name.replace(/[-_](\w)/g, (_, letter: string) => letter.toUpperCase())
  const wanted = ['other', ...SIGN_IN_METHODS].map((name, i) => `${camel(name)}(${i + 1})`)
  expect(listed.split(',').map((one) => one.trim())).toEqual(wanted)
})

test('are those of the MIB, of its types', () => {
  const mib = readable()
  expect(mib.size).toBeGreaterThan(40)
  expect(own.map(({ place }) => place).sort()).toEqual([...mib.keys()].sort())
  for (const { place, instances } of own) {
    expect(instances.length, mib.get(place)?.name).toBeGreaterThan(0)
    for (const [, value] of instances) {
      expect(value[0], mib.get(place)?.name).toBe(SYNTAX_TAGS[mib.get(place)!.syntax])
    }
  }
})

test('are made of metrics that there are', () => {
  const { registry } = metricsOf({ uploads: { totals: { bytes: 0, failures: 0 }, waiting: async () => 0 } })
  for (const metric of METRICS) expect(registry.getSingleMetric(metric), metric).toBeDefined()
})

const valueAt = (name: Oid, samples: (metric: string) => readonly Sample[] | undefined) =>
  managedObjects(self, samples)
    .find((object) => object.name.join('.') === name.join('.'))
    ?.instances.map(([index, value]) => [index, value.toString('hex')])
const below = (place: string) => oid(`${OWN}${place}`)

test('have no instance for a metric that is not there, or that could not be read', () => {
  expect(valueAt(below('5.1'), () => undefined)).toEqual([])
  expect(valueAt(below('5.1'), () => [{ labels: {}, value: Number.NaN }])).toEqual([])
  expect(valueAt(below('5.1'), () => [])).toEqual([[[0], '420100']])
})

test('wrap as counters do, stop as gauges do, and fit their types', () => {
  const at = (place: string, value: number) => valueAt(below(place), () => [{ labels: {}, value }])?.[0]?.[1]
  expect(at('3.4', 2 ** 32 + 5)).toBe('410105')
  expect(at('3.4', 2 ** 32 - 1)).toBe('410500ffffffff')
  expect(at('5.1', 2 ** 40)).toBe('420500ffffffff')
  expect(at('6.1', 2 ** 40)).toBe('4606010000000000')
  expect(at('1.4', 0)).toBe('020102')
})

test('have a row for each broker and each session worker, by its place', () => {
  const at = (place: string) => own.find((object) => object.place === place)?.instances
  expect(at('10.1.1.2')).toEqual([[[3], Buffer.from('020105', 'hex')]])
  expect(at('10.1.1.3')).toEqual([[[3], Buffer.from('420101', 'hex')]])
  expect(at('10.2.1.2')).toEqual([[[2], Buffer.from('020101', 'hex')]])
  expect(valueAt(below('10.2.1.2'), () => undefined)).toEqual([])
})

test('count the days of a certificate down, below zero too', () => {
  expect(own.find(({ place }) => place === '8.1.1.3')?.instances).toEqual([
    [[5], Buffer.from('0201ff', 'hex')],
  ])
})
