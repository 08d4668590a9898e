/**
 * The objects of config/SALLYPORT-MIB.txt and of the groups `system` and `snmpEngine`. Every figure is a metric that
 * Prometheus reads, so that there is one way of counting; a figure that is not known now has no instance.
 */
import { Buffer } from 'node:buffer'
import { cut } from '../audit/events/clean.ts'
import { SIGN_IN_METHODS } from '../audit/events/fields.ts'
import { PROTOCOLS } from '../model/rights.ts'
import type { Engine } from './agent.ts'
import { type Oid, oid } from './oid.ts'
import {
  counter64Value,
  counterValue,
  gaugeValue,
  integerValue,
  octetsValue,
  oidValue,
  textValue,
  ticksValue,
} from './value.ts'
import type { ManagedObject } from './view.ts'

/** SallyportText. */
const MAX_TEXT = 255
const MIB = 1024 * 1024
const DAY_SECONDS = 86_400
/** sysServices (RFC 3418 2): end to end, and applications. */
const SERVICES = 72

type Label = string | number | undefined
/** The series of a metric. */
export interface Sample {
  labels: Readonly<Record<string, Label>>
  value: number
}
/** Returns the series of a metric by its name, or undefined if there is no such metric. */
export type Samples = (metric: string) => readonly Sample[] | undefined

/** Figures of this broker beside its metrics. */
export interface Self {
  version: string
  hostname: string
  enterprise: number
  engine: Engine
  /** Largest datagram that the agent reads. */
  maxRequest: number
  /** Milliseconds since the epoch. */
  now: number
  /** Since the engine's start. */
  uptimeSeconds: number
}

type Kind = (value: number) => Buffer
export type Labels = Readonly<Record<string, Label>>
/** The sum of a metric's series with these labels. */
interface Figure {
  at: Oid
  kind: Kind
  metric: string
  labels?: Labels
}

/** TruthValue (RFC 2579). */
const truth: Kind = (value) => integerValue(value === 0 ? 2 : 1)
const mebibytes: Kind = (value) => gaugeValue(value / MIB)
const figure = (at: string, kind: Kind, metric: string, labels?: Labels): Figure => ({
  at: oid(at),
  kind,
  metric: `sallyport_${metric}`,
  ...(labels && { labels }),
})

/** Below sallyportObjects. */
const FIGURES: readonly Figure[] = [
  figure('1.4', truth, 'ready'),
  figure('1.5', truth, 'database_away'),
  figure('1.6', truth, 'crypto_binding_native'),
  figure('1.7', mebibytes, 'process_resident_memory_bytes'),
  figure('2.1', gaugeValue, 'sessions_current'),
  figure('3.1', counterValue, 'authentications_total', { result: 'success' }),
  figure('3.2', counterValue, 'authentications_total', { result: 'failure' }),
  figure('3.3', counterValue, 'authentications_total', { result: 'unavailable' }),
  figure('3.4', counterValue, 'lockouts_total'),
  figure('4.1', counterValue, 'checkouts_total', { result: 'out' }),
  figure('4.2', counterValue, 'checkouts_total', { result: 'in' }),
  figure('4.3', counterValue, 'checkouts_total', { result: 'expired' }),
  figure('4.4', counterValue, 'checkouts_total', { result: 'forced' }),
  figure('4.5', counterValue, 'checkouts_total', { result: 'denied' }),
  figure('5.1', gaugeValue, 'approvals_pending'),
  figure('5.2', counterValue, 'approvals_total', { result: 'requested' }),
  figure('5.3', counterValue, 'approvals_total', { result: 'accepted' }),
  figure('5.4', counterValue, 'approvals_total', { result: 'rejected' }),
  figure('5.5', counterValue, 'approvals_total', { result: 'cancelled' }),
  figure('5.6', counterValue, 'approvals_total', { result: 'expired' }),
  figure('5.7', counterValue, 'approvals_total', { result: 'revoked' }),
  figure('6.1', counter64Value, 'recording_bytes_total'),
  figure('6.2', counterValue, 'recording_failures_total'),
  figure('6.3', counterValue, 'recordings_deleted_total'),
  figure('6.4', mebibytes, 'recordings_free_bytes'),
  figure('6.5', gaugeValue, 'recording_uploads_waiting'),
  figure('6.6', counter64Value, 'recording_upload_bytes_total'),
  figure('6.7', counterValue, 'recording_upload_failures_total'),
  figure('9.1', gaugeValue, 'secrets_overdue'),
  figure('9.2', gaugeValue, 'secrets_mismatched'),
]

/**
 * A table with a row for each known value of a label, whose index is the value's place, from 1 on; or, without known
 * values, for each value that the first column's metric has: numbers, which are the index.
 */
interface FigureTable {
  label: string
  values?: readonly string[]
  columns: readonly [Figure, ...Figure[]]
}

const TABLES: readonly FigureTable[] = [
  {
    label: 'protocol',
    values: [...PROTOCOLS, 'HTTPS', 'other'],
    columns: [
      figure('2.2.1.2', gaugeValue, 'sessions_current'),
      figure('2.2.1.3', counterValue, 'sessions_total', { result: 'success' }),
      figure('2.2.1.4', counterValue, 'sessions_total', { result: 'failure' }),
      figure('2.2.1.5', counterValue, 'sessions_total', { result: 'killed' }),
      figure('2.2.1.6', counterValue, 'sessions_total', { result: 'lost' }),
      figure('2.2.1.7', counterValue, 'sessions_total', { result: 'denied' }),
    ],
  },
  {
    label: 'method',
    values: ['other', ...SIGN_IN_METHODS],
    columns: [
      figure('3.5.1.2', counterValue, 'authentications_total', { result: 'success' }),
      figure('3.5.1.3', counterValue, 'authentications_total', { result: 'failure' }),
      figure('3.5.1.4', counterValue, 'authentications_total', { result: 'unavailable' }),
    ],
  },
  { label: 'broker', columns: [figure('10.1.1.3', gaugeValue, 'broker_sessions')] },
  {
    label: 'worker',
    columns: [
      figure('10.2.1.2', truth, 'worker_up'),
      figure('10.2.1.3', gaugeValue, 'worker_sessions'),
      figure('10.2.1.4', gaugeValue, 'worker_connections'),
      figure('10.2.1.5', mebibytes, 'worker_resident_memory_bytes'),
      figure('10.2.1.6', counterValue, 'worker_losses_total'),
    ],
  },
]

const SINK_QUEUED = 'sallyport_sink_queued_messages'
const SINK_LOST = 'sallyport_sink_lost_messages'
const CERTIFICATES = 'sallyport_certificate_expiry_timestamp_seconds'
const STATES = 'sallyport_broker_state'
/** SallyportBrokerState. */
const NODE_STATES = ['starting', 'serving', 'draining', 'replaced', 'unlinked']
const LISTENERS = ['https', 'ssh', 'telnets', 'vnc', 'rdp']

/** The metrics that the objects are made of. */
export const METRICS: readonly string[] = [
  ...new Set([
    ...[...FIGURES, ...TABLES.flatMap(({ columns }) => columns)].map(({ metric }) => metric),
    ...[SINK_QUEUED, SINK_LOST, CERTIFICATES, STATES],
  ]),
]

export function managedObjects(self: Self, samples: Samples): ManagedObject[] {
  const own: Oid = oid(`1.3.6.1.4.1.${self.enterprise}`)
  const below = (at: Oid): Oid => [...own, 1, ...at]
  const scalar = (name: Oid, value: Buffer): ManagedObject => ({ name, instances: [[[0], value]] })
  const text = (value: string) => textValue(cut(value, MAX_TEXT))
  const uptime = ticksValue(self.uptimeSeconds * 100)
  return [
    scalar(oid('1.3.6.1.2.1.1.1'), text(`Sallyport ${self.version}`)),
    scalar(oid('1.3.6.1.2.1.1.2'), oidValue(own)),
    scalar(oid('1.3.6.1.2.1.1.3'), uptime),
    scalar(oid('1.3.6.1.2.1.1.4'), text('')),
    scalar(oid('1.3.6.1.2.1.1.5'), text(self.hostname)),
    scalar(oid('1.3.6.1.2.1.1.6'), text('')),
    scalar(oid('1.3.6.1.2.1.1.7'), integerValue(SERVICES)),
    scalar(oid('1.3.6.1.6.3.10.2.1.1'), octetsValue(self.engine.id)),
    scalar(oid('1.3.6.1.6.3.10.2.1.2'), integerValue(self.engine.boots)),
    scalar(oid('1.3.6.1.6.3.10.2.1.3'), integerValue(self.uptimeSeconds)),
    scalar(oid('1.3.6.1.6.3.10.2.1.4'), integerValue(self.maxRequest)),
    scalar(below([1, 1]), text(self.version)),
    scalar(below([1, 2]), text(self.hostname)),
    scalar(below([1, 3]), uptime),
    ...FIGURES.map((one) => ({ name: below(one.at), instances: instance([0], one, samples) })),
    ...TABLES.flatMap((table) =>
      table.columns.map((column) => ({
        name: below(column.at),
        instances: rowsOf(table, samples).flatMap(([index, value]) =>
          instance([index], { ...column, labels: { ...column.labels, [table.label]: value } }, samples),
        ),
      })),
    ),
    { name: below([10, 1, 1, 2]), instances: nodeStates(samples) },
    ...sinks(samples, text).map(({ name, instances }) => ({ name: below(name), instances })),
    ...certificates(samples, self.now).map(({ name, instances }) => ({ name: below(name), instances })),
  ]
}

/** Returns index and label's value of each row. */
function rowsOf({ label, values, columns: [first] }: FigureTable, samples: Samples): [number, Label][] {
  if (values) return values.map((value, i) => [i + 1, value])
  return (samples(first.metric) ?? []).map(({ labels }) => [Number(labels[label]), labels[label]])
}

/** The label `broker` is the row, and `state` its value. */
function nodeStates(samples: Samples): ManagedObject['instances'] {
  return (samples(STATES) ?? []).map(({ labels }) => [
    [Number(labels['broker'])],
    integerValue(NODE_STATES.indexOf(String(labels['state'])) + 1),
  ])
}

/** Returns no instance for a metric that is not there, or that could not be read. */
function instance(
  index: Oid,
  { kind, metric, labels = {} }: Figure,
  samples: Samples,
): ManagedObject['instances'] {
  const all = samples(metric)
  if (!all) return []
  const counted = all.filter((sample) =>
    Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )
  const sum = counted.reduce((total, { value }) => total + value, 0)
  return Number.isNaN(sum) ? [] : [[index, kind(sum)]]
}

/** The label `sink` is `0-log`: place and type. */
function sinks(samples: Samples, text: (value: string) => Buffer): ManagedObject[] {
  const rows = (samples(SINK_QUEUED) ?? []).map(({ labels, value: queued }) => {
    const [place = '', ...type] = String(labels['sink']).split('-')
    const lost = samples(SINK_LOST)?.find((sample) => sample.labels['sink'] === labels['sink'])?.value ?? 0
    const index: Oid = [Number(place) + 1]
    return { index, type: type.join('-'), receiver: String(labels['receiver']), queued, lost }
  })
  const column = (number: number, value: (row: (typeof rows)[number]) => Buffer): ManagedObject => ({
    name: [7, 1, 1, number],
    instances: rows.map((row) => [row.index, value(row)]),
  })
  return [
    column(2, ({ type }) => text(type)),
    column(3, ({ receiver }) => text(receiver)),
    column(4, ({ queued }) => gaugeValue(queued)),
    column(5, ({ lost }) => gaugeValue(lost)),
  ]
}

function certificates(samples: Samples, now: number): ManagedObject[] {
  const rows = (samples(CERTIFICATES) ?? []).flatMap(({ labels, value: end }) => {
    const index = LISTENERS.indexOf(String(labels['listener'])) + 1
    return index > 0 && Number.isFinite(end) ? [{ index: [index], end }] : []
  })
  return [
    { name: [8, 1, 1, 2], instances: rows.map(({ index, end }) => [index, dateAndTime(end)]) },
    {
      name: [8, 1, 1, 3],
      instances: rows.map(({ index, end }) => [
        index,
        integerValue(Math.floor((end - now / 1000) / DAY_SECONDS)),
      ]),
    },
  ]
}

/** Returns a DateAndTime in UTC (RFC 2579). */
function dateAndTime(seconds: number): Buffer {
  const date = new Date(seconds * 1000)
  const bytes = Buffer.alloc(11)
  bytes.writeUInt16BE(date.getUTCFullYear())
  bytes[2] = date.getUTCMonth() + 1
  bytes[3] = date.getUTCDate()
  bytes[4] = date.getUTCHours()
  bytes[5] = date.getUTCMinutes()
  bytes[6] = date.getUTCSeconds()
  bytes[8] = '+'.charCodeAt(0)
  return octetsValue(bytes)
}
