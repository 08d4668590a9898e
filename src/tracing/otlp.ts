/** Traces as OTLP says them in JSON (opentelemetry-proto 1.3, the JSON mapping of protobuf: ids in hex, times as text). */
import type { Buffer } from 'node:buffer'
import type { Span, Trace } from './openings.ts'

/** Crockford's base 32, which ids are written in. */
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const KIND_INTERNAL = 1
const STATUS_OK = 1
const STATUS_ERROR = 2
/** Results of steps that did not do what they were for. */
const FAULTS: ReadonlySet<string> = new Set(['denied', 'failed', 'unavailable'])

export interface Resource {
  version: string
  hostname: string
}

export interface Ids {
  randomBytes: (count: number) => Buffer
  /** Milliseconds since the epoch at 0 of the clock of the spans. */
  origin: number
}

/** Returns the 128 bits of a session's id, which are the id of its trace. */
export function traceIdOf(session: string): string | undefined {
  if (!ULID.test(session)) return undefined
  const number = [...session].reduce((sum, digit) => sum * 32n + BigInt(DIGITS.indexOf(digit)), 0n)
  return number.toString(16).padStart(32, '0')
}

/** Returns the body of an export request: a span for each opening, with its steps below it. */
export function exportRequest(traces: readonly Trace[], resource: Resource, ids: Ids): object {
  return {
    resourceSpans: [
      {
        resource: {
          attributes: attributes({
            'service.name': 'sallyport',
            'service.version': resource.version,
            'host.name': resource.hostname,
          }),
        },
        scopeSpans: [{ scope: { name: 'sallyport' }, spans: traces.flatMap((trace) => spansOf(trace, ids)) }],
      },
    ],
  }
}

function spansOf({ session, protocol, result, spans }: Trace, { randomBytes, origin }: Ids): object[] {
  const traceId = (session && traceIdOf(session)) ?? randomBytes(16).toString('hex')
  const root = randomBytes(8).toString('hex')
  const nanoseconds = (time: number) => String(BigInt(Math.round((origin + time) * 1000)) * 1000n)
  const said = { 'sallyport.protocol': protocol, ...(session && { 'sallyport.session': session }) }
  const span = (one: Span, spanId: string, parentSpanId?: string) => ({
    traceId,
    spanId,
    ...(parentSpanId && { parentSpanId }),
    name: one.name,
    kind: KIND_INTERNAL,
    startTimeUnixNano: nanoseconds(one.begin),
    endTimeUnixNano: nanoseconds(one.end),
    attributes: attributes({ ...said, 'sallyport.result': one.result }),
    status: { code: FAULTS.has(one.result) ? STATUS_ERROR : STATUS_OK },
  })
  const begin = Math.min(...spans.map((one) => one.begin))
  const end = Math.max(...spans.map((one) => one.end))
  return [
    span({ name: 'session opening', begin, end, result }, root),
    ...spans.map((one) => span(one, randomBytes(8).toString('hex'), root)),
  ]
}

const attributes = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).map(([key, stringValue]) => ({ key, value: { stringValue } }))
