/**
 * Gauges of the processes that serve sessions: this broker, those that it has replaced and whose sessions run on, and
 * the session workers. There are no others: one broker works on a database at a time.
 */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { ControlStatus } from '../control/messages.ts'
import type { WorkerFigures } from '../workers/workers.ts'

export interface BrokerFigures {
  /** 1 for this broker; a replaced one keeps its own as long as it runs. */
  place: number
  /** `unlinked`: a replaced broker that does not answer now; its sessions are those that it had last. */
  state: ControlStatus['state'] | 'unlinked'
  sessions: number
}

export interface NodesOptions {
  brokers: () => readonly BrokerFigures[]
  /** Returns the figures of the session workers by place; none if sessions run in the broker's process. */
  workers: () => readonly WorkerFigures[]
}

export function nodeMetrics({ brokers, workers }: NodesOptions, registers: Registry[]): void {
  new Gauge({
    name: 'sallyport_broker_sessions',
    help: 'Sessions that run in this broker (1), and in each that it has replaced.',
    labelNames: ['broker'],
    registers,
    collect() {
      this.reset()
      for (const { place, sessions } of brokers()) this.set({ broker: place }, sessions)
    },
  })
  new Gauge({
    name: 'sallyport_broker_state',
    help: 'Always 1; the state is a label: starting, serving, draining, replaced, or unlinked.',
    labelNames: ['broker', 'state'],
    registers,
    collect() {
      this.reset()
      for (const { place, state } of brokers()) this.set({ broker: place, state }, 1)
    },
  })

  const perWorker = (name: string, help: string, figure: (worker: WorkerFigures) => number) =>
    new Gauge({
      name: `sallyport_worker_${name}`,
      help: `${help}, by its place.`,
      labelNames: ['worker'],
      registers,
      collect() {
        this.reset()
        for (const [i, worker] of workers().entries()) this.set({ worker: i + 1 }, figure(worker))
      },
    })
  perWorker('up', 'Whether a session worker runs (1)', ({ isUp }) => (isUp ? 1 : 0))
  perWorker('sessions', 'Sessions that run in a session worker', ({ sessions }) => sessions)
  perWorker(
    'connections',
    'Connections of a session worker, signed in or not',
    ({ connections }) => connections,
  )
  perWorker(
    'resident_memory_bytes',
    'Resident memory of a session worker',
    ({ residentBytes }) => residentBytes,
  )
  new Counter({
    name: 'sallyport_worker_losses_total',
    help: 'Session workers that died, by their place.',
    labelNames: ['worker'],
    registers,
    collect() {
      this.reset()
      for (const [i, { losses }] of workers().entries()) this.inc({ worker: i + 1 }, losses)
    },
  })
}
