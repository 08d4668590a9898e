/**
 * The messages on a broker's control socket: a line of JSON each. Requests have a number that their answer
 * repeats; a linked client also gets messages without one.
 */
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'

/** Version of these messages, but for `status` and `drain`, which every version has. */
export const CONTROL_VERSION = 3
/** Longest line in bytes, both ways. */
export const MAX_LINE = 64 * 1024
/** Sessions in one message: it stays far below the longest line. */
export const SESSIONS_TOGETHER = 100
/** Longest grace of a drain. */
export const MAX_GRACE_MS = 86_400_000

const exact = { additionalProperties: false } as const
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Id = Type.String({ minLength: 1, maxLength: 128 })
const Text = Type.String({ maxLength: 4096 })
const Grace = Type.Integer({ minimum: 0, maximum: MAX_GRACE_MS })

const Request = Type.Union([
  Type.Object({ id: Count, type: Type.Literal('status') }, exact),
  /** Accept no new sessions, give the running ones a grace, and end. Absent: the configured grace. */
  Type.Object({ id: Count, type: Type.Literal('drain'), graceMs: Type.Optional(Grace) }, exact),
  /** Leave listeners and data folder to the sender. Without a grace the running sessions run on until they end. */
  Type.Object(
    { id: Count, type: Type.Literal('takeOver'), pid: Count, graceMs: Type.Optional(Grace) },
    exact,
  ),
  /** Report the running sessions now, and the end of each. */
  Type.Object({ id: Count, type: Type.Literal('link') }, exact),
  Type.Object(
    {
      id: Count,
      type: Type.Literal('kill'),
      session: Id,
      reason: Text,
      by: Text,
      apiKey: Type.Optional(Text),
    },
    exact,
  ),
  /** Hold the input of the session's client, or release it if there is no reason. */
  Type.Object(
    {
      id: Count,
      type: Type.Literal('suspend'),
      session: Id,
      reason: Type.Optional(Text),
      by: Text,
      apiKey: Type.Optional(Text),
    },
    exact,
  ),
])

/** Why input is held, and since when. */
const Held = Type.Object({ reason: Text, by: Type.Optional(Text), since: Count }, exact)

const Running = Type.Object(
  {
    id: Id,
    userId: Id,
    accountId: Type.Optional(Id),
    begin: Count,
    isRecorded: Type.Boolean(),
    hold: Type.Optional(Held),
  },
  exact,
)

const Reply = Type.Union([
  Type.Object(
    {
      id: Count,
      type: Type.Literal('status'),
      version: Count,
      /** Version of the database's schema that the broker works with. */
      schema: Count,
      pid: Count,
      state: Type.Enum(['starting', 'serving', 'draining', 'replaced']),
      sessions: Count,
    },
    exact,
  ),
  Type.Object({ id: Count, type: Type.Literal('done') }, exact),
  Type.Object({ id: Count, type: Type.Literal('killed'), wasRunning: Type.Boolean() }, exact),
  Type.Object(
    {
      id: Count,
      type: Type.Literal('suspended'),
      result: Type.Enum(['suspended', 'released', 'not_suspended', 'not_running']),
    },
    exact,
  ),
  Type.Object({ id: Count, type: Type.Literal('refused'), message: Text }, exact),
  Type.Object(
    { type: Type.Literal('sessions'), sessions: Type.Array(Running, { maxItems: SESSIONS_TOGETHER }) },
    exact,
  ),
  Type.Object({ type: Type.Literal('closed'), session: Id }, exact),
  /** Input is held there, for another reason too, or released if there is no `hold`. */
  Type.Object({ type: Type.Literal('held'), session: Id, hold: Type.Optional(Held) }, exact),
])

export type ControlRequest = Static<typeof Request>
export type ControlReply = Static<typeof Reply>
export type ControlAnswer = Extract<ControlReply, { id: number }>
/** A session that runs in a broker, as another broker has to know it. */
export type LinkedSession = Static<typeof Running>
export type LinkedHold = Static<typeof Held>
export type ControlStatus = Omit<Extract<ControlReply, { type: 'status' }>, 'id' | 'type'>

const REQUEST = Compile(Request)
const REPLY = Compile(Reply)

/** The other side does not speak this protocol. */
export class ControlError extends Error {
  override readonly name = 'ControlError'
}

/** @throws ControlError for anything but a request */
export function requestOf(line: string): ControlRequest {
  const value = parse(line)
  if (REQUEST.Check(value)) return value
  throw new ControlError('expected a request of a control socket')
}

/** @throws ControlError for anything but a message of a broker */
export function replyOf(line: string): ControlReply {
  const value = parse(line)
  if (REPLY.Check(value)) return value
  throw new ControlError('expected a message of a broker')
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    throw new ControlError('expected a line of JSON')
  }
}
