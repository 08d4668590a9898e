/**
 * The requests of session workers, each checked by its schema before the gate sees it: a worker that was taken
 * over sends whatever it likes. The bounds are above all that a client can make an honest worker send, because a
 * breach ends the worker with all of its sessions.
 */
import { type TSchema, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { FRAME } from '../../recordings/container/frames.ts'
import { MAX_APPEND, MAX_APPEND_PARTS } from '../../recordings/container/recording-file.ts'
import { CageReportSchema } from '../confine/report-schema.ts'
import { MAX_SCREEN_COLUMNS, MAX_SCREEN_LINES } from '../contract/gate.ts'
import { type FromWorker, type GateMethod, type GateRequest, MAX_LOOP_DELAY_MS } from '../contract/worker.ts'
import { PROTOCOLS, RIGHTS } from '../model/rights.ts'

/** Longest text that a client can bring into a request: SSH packets have at most 256 KiB. */
const MAX_TEXT = 1024 * 1024
const MAX_BYTES = 1024 * 1024
const MAX_ID = 128
/** Frames of one request about a watched session: LIVE_BUFFER of proxies/session/live-tap.ts in frames without payload. */
const MAX_FRAMES = 16_384

const exact = { additionalProperties: false } as const

const Text = Type.String({ maxLength: MAX_TEXT })
const Id = Type.String({ minLength: 1, maxLength: MAX_ID })
const Bytes = bytes(MAX_BYTES)
const Protocol = Type.Enum([...PROTOCOLS])
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Optional = Type.Optional

function bytes(most: number) {
  return Type.Refine(
    Type.Unsafe<Uint8Array>({}),
    (value) => value instanceof Uint8Array && value.length <= most,
  )
}

const Source = Type.Object(
  { address: Type.String({ maxLength: 64 }), port: Type.Integer({ minimum: 0, maximum: 65_535 }) },
  exact,
)

const Answers = Type.Array(Text, { maxItems: 16 })

const Proof = Type.Union([
  Type.Object({ method: Type.Literal('none') }, exact),
  Type.Object({ method: Type.Literal('browser') }, exact),
  Type.Object({ method: Type.Enum(['password', 'keyboard-interactive']), password: Text }, exact),
  Type.Object(
    {
      method: Type.Literal('keyboard-interactive'),
      challenge: Id,
      answers: Answers,
    },
    exact,
  ),
  Type.Object(
    {
      method: Type.Literal('publickey'),
      key: Bytes,
      signed: Optional(Type.Object({ data: Bytes, signature: Bytes }, exact)),
    },
    exact,
  ),
  Type.Object({ method: Type.Literal('gssapi-with-mic'), token: Bytes }, exact),
  Type.Object({ method: Type.Literal('gssapi-with-mic'), context: Id, data: Bytes, mic: Bytes }, exact),
  Type.Object({ method: Type.Literal('ticket'), challenge: bytes(16), response: bytes(16) }, exact),
  Type.Object(
    {
      method: Type.Literal('ntlm'),
      proof: Type.Object({ user: Text, domain: Text, serverChallenge: bytes(8), response: Bytes }, exact),
    },
    exact,
  ),
])

const Logon = Type.Object({ login: Optional(Text), password: Text }, exact)

/** The gate judges its lengths: a client may bring any. */
const Reason = Type.Object({ comment: Text, ticket: Text, duration: Optional(Count) }, exact)
const Screen = Type.Array(Type.String({ maxLength: MAX_SCREEN_COLUMNS }), { maxItems: MAX_SCREEN_LINES })

/** The broker's catalogue judges the code and the fields. */
const EventFields = Type.Record(Type.String({ maxLength: 64 }), Type.Unknown(), { maxProperties: 32 })

const LiveFrame = Type.Object(
  {
    type: Type.Enum(Object.values(FRAME)),
    channel: Type.Integer({ minimum: 0, maximum: 0xffff_ffff }),
    time: Count,
    payload: bytes(4 * MAX_BYTES),
    after: Count,
  },
  exact,
)

/** The recording service bounds all of them together. */
const Parts = Type.Array(bytes(MAX_APPEND), { maxItems: MAX_APPEND_PARTS })

/** By the gate's methods. Exported for the test that they agree with the types. */
export const REQUESTS = {
  authenticate: Type.Object({ protocol: Protocol, source: Source, login: Text, proof: Proof }, exact),
  targets: Type.Object({ identity: Id, protocol: Protocol }, exact),
  open: Type.Object(
    {
      identity: Id,
      protocol: Protocol,
      source: Source,
      target: Optional(Text),
      logon: Optional(Logon),
      reason: Optional(Reason),
      approval: Optional(Id),
      factor: Optional(Type.Object({ challenge: Id, answers: Answers }, exact)),
    },
    exact,
  ),
  hostKey: Type.Object({ session: Id, key: Bytes, kind: Optional(Type.Enum(['ssh', 'x509', 'rsa'])) }, exact),
  serviceTicket: Type.Object({ session: Id }, exact),
  targetGssapi: Type.Object(
    { session: Id, answer: Optional(Type.Object({ token: Bytes, data: Bytes }, exact)) },
    exact,
  ),
  dial: Type.Object({ session: Id }, exact),
  event: Type.Object({ session: Id, code: Type.String({ maxLength: 64 }), fields: EventFields }, exact),
  denied: Type.Object({ identity: Id, protocol: Protocol, what: Text, reason: Text }, exact),
  sign: Type.Object({ session: Id, statement: bytes(4096) }, exact),
  close: Type.Object(
    {
      session: Id,
      result: Type.Enum(['success', 'failure', 'killed']),
      reason: Optional(Text),
      bytesIn: Count,
      bytesOut: Count,
      rightsUsed: Type.Array(Type.Enum([...RIGHTS]), { maxItems: RIGHTS.length }),
    },
    exact,
  ),
  live: Type.Object(
    {
      session: Id,
      frames: Type.Array(LiveFrame, { maxItems: MAX_FRAMES }),
      synced: Optional(Type.Object({ sync: Count, frames: Count }, exact)),
      lost: Optional(Type.Literal(true)),
    },
    exact,
  ),
  counted: Type.Object({ session: Id, bytesIn: Count, bytesOut: Count }, exact),
  beginRecording: Type.Object({ session: Id, parts: Parts }, exact),
  appendRecording: Type.Object({ session: Id, offset: Count, parts: Parts }, exact),
  endRecording: Type.Object({ session: Id }, exact),
  giveUpCommand: Type.Object({ session: Id, ask: Count }, exact),
  askCommand: Type.Object({ session: Id, ask: Count, line: Text, rule: Text, screen: Screen }, exact),
  withdraw: Type.Object({ identity: Id, approval: Id }, exact),
  leave: Type.Object({ identity: Id }, exact),
} as const satisfies Record<GateMethod, TSchema>

const METHODS = Object.keys(REQUESTS) as GateMethod[]

const MESSAGES = Type.Union([
  Type.Object({ type: Type.Literal('ready'), version: Count, cage: CageReportSchema }, exact),
  Type.Object(
    { type: Type.Literal('ask'), id: Count, method: Type.Enum(METHODS), request: Type.Unknown() },
    exact,
  ),
  Type.Object(
    {
      type: Type.Literal('pong'),
      number: Count,
      delayMs: Type.Number({ minimum: 0, maximum: MAX_LOOP_DELAY_MS }),
    },
    exact,
  ),
  Type.Object({ type: Type.Literal('closed'), connection: Count }, exact),
  Type.Object({ type: Type.Literal('drained') }, exact),
])

const MESSAGE = Compile(MESSAGES)
const COMPILED = Object.fromEntries(
  METHODS.map((method) => [method, Compile<TSchema>(REQUESTS[method])]),
) as unknown as Record<GateMethod, { Check(value: unknown): boolean }>

/** The worker did what no honest one does: it is ended. */
export class BreachError extends Error {
  override readonly name = 'BreachError'
}

/** @throws BreachError for anything but a message of a worker */
export function messageOf(value: unknown): FromWorker {
  if (MESSAGE.Check(value)) return value as FromWorker
  throw new BreachError('expected a message of a session worker')
}

/** @throws BreachError for a request that is not as the schema has it */
export function requestOf<M extends GateMethod>(method: M, request: unknown): GateRequest<M> {
  if (COMPILED[method].Check(request)) return request as GateRequest<M>
  // The schema's own errors visit every value of the request, which may be millions.
  throw new BreachError(`expected a request ${method}`)
}
