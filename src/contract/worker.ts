/** The messages between the broker and a session worker; contract/wire.ts has their form. */
import type { CageReport } from '../confine/report.ts'
import type { FrontName, FrontSettings } from './front-settings.ts'
import type { Gate, GateNotice, Source } from './gate.ts'

/** Version of these messages and of the gate's. A worker of another version is not used. */
export const WORKER_VERSION = 4

/** Descriptors that a worker is started with. */
export const MESSAGES_DESCRIPTOR = 3
/** Node's own channel, by which the broker passes accepted connections. */
export const HANDLES_DESCRIPTOR = 4
/** For messages too: the sealing thread writes those with recorded bytes, and nothing is read there. */
export const RECORDINGS_DESCRIPTOR = 5
export const WORKER_DESCRIPTORS = [MESSAGES_DESCRIPTOR, HANDLES_DESCRIPTOR, RECORDINGS_DESCRIPTOR] as const

/** Milliseconds between two looks at an event loop, and so the least delay; prom-client measures the broker's so. */
export const LOOP_LOOK_MS = 10
/** Longest delay of an event loop that a worker reports; a broker that hangs does not ping. */
export const MAX_LOOP_DELAY_MS = 3_600_000

/** The message that comes with a connection. */
export interface PassedConnection {
  front: FrontName
  /** The connection's number, for `closed`. */
  connection: number
  /** The client, which may be another than the peer: a balancer's. */
  source: Source
}

/** The message that comes with a connection to a target, which the gate's `dial` has answered with its number. */
export interface PassedTarget {
  dialled: number
}

/** The gate's requests. */
export type GateMethod = Exclude<keyof Gate, 'onNotice'>
export type GateRequest<M extends GateMethod> = Parameters<Gate[M]>[0]
export type GateAnswer<M extends GateMethod> = Awaited<ReturnType<Gate[M]>>

/** From the broker to a worker. */
export type ToWorker =
  /** The first message. */
  | { type: 'begin'; version: number; settings: FrontSettings }
  /** Settings for new connections. */
  | { type: 'settings'; settings: FrontSettings }
  | { type: 'answer'; id: number; answer: unknown }
  /** The request failed. */
  | { type: 'failure'; id: number; message: string }
  | { type: 'notice'; notice: GateNotice }
  | { type: 'ping'; number: number }
  /** End every connection: after `graceMs`, with this reason. Answered by `drained`. */
  | { type: 'drain'; graceMs: number; reason: string }

/** From a worker to the broker. */
export type FromWorker =
  /** The fronts are there: connections may come. */
  | { type: 'ready'; version: number; cage: CageReport }
  | { type: 'ask'; id: number; method: GateMethod; request: unknown }
  /** `delayMs`: the longest delay of the worker's event loop since its last pong. */
  | { type: 'pong'; number: number; delayMs: number }
  /** A connection that the worker was given is closed. */
  | { type: 'closed'; connection: number }
  | { type: 'drained' }
