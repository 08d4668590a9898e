/**
 * The parts that most brokers do without: the SNMP agent, and traces of sessions' openings. Their code is loaded when the
 * configuration names them; a reload opens, changes and closes them.
 */
import type { AddressInfo } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Config, ListenAddress } from '../config/config.ts'
import { meet } from '../config/ports.ts'
import type { Source } from '../contract/gate.ts'
import type { Step } from '../gate/steps.ts'
import type { Logger } from '../host/log.ts'
import type { Metrics } from './metrics.ts'
import type { SnmpAgent } from './snmp-agent.ts'
import type { Tracing } from './tracing.ts'

export interface OptionalPartsOptions {
  version: string
  metrics: Metrics
  logger: Pick<Logger, 'warn' | 'error'>
  /** Binds by `listen`; rejects with an explanation and a remedy. */
  bind<T>(
    name: string,
    address: ListenAddress,
    listen: (host: string, port: number) => Promise<T>,
  ): Promise<T>
}

/** A change that is prepared. One of both is called. */
export interface Prepared {
  apply(): void
  discard(): Promise<void>
}

const nothing = async () => undefined

export class OptionalParts {
  readonly #options: OptionalPartsOptions
  #agent: SnmpAgent | undefined
  #tracing: Tracing | undefined
  /** Settles when the parts that a reload has taken away are closed. */
  #left: Promise<void> = Promise.resolve()

  constructor(options: OptionalPartsOptions) {
    this.#options = options
  }

  /** Begins to trace. Throws if a file of the collector cannot be read. */
  async openTracing(config: Config): Promise<void> {
    const prepared = await this.#prepareTracing(config)
    prepared.apply()
  }

  /** Binds the agent. Returns its address, or undefined if there is none. */
  async openAgent(config: Config): Promise<AddressInfo | undefined> {
    const prepared = await this.#prepareAgent(config)
    prepared.apply()
    return this.#agent?.address
  }

  /** Called when a client has come; undefined while nothing is traced. */
  get onArrived(): ((source: Source) => void) | undefined {
    const tracing = this.#tracing
    return tracing && ((source) => tracing.arrived(source))
  }

  /** Adds a step to the trace of its opening. */
  add(step: Step): void {
    this.#tracing?.add(step)
  }

  /** Opens what a changed configuration adds. Rejects if that fails, with everything as it was. */
  async prepareReload(config: Config): Promise<Prepared> {
    const tracing = await this.#prepareTracing(config)
    const discarding = async (error: unknown) => {
      await tracing.discard()
      throw error
    }
    const agent = await this.#prepareAgent(config).catch(discarding)
    return {
      apply: () => {
        tracing.apply()
        agent.apply()
      },
      discard: async () => {
        await tracing.discard()
        await agent.discard()
      },
    }
  }

  async closeAgent(): Promise<void> {
    await this.#left
    await this.#agent?.close()
  }

  /** Sends what there is, once. */
  async closeTracing(): Promise<void> {
    await this.#tracing?.close()
  }

  async #prepareTracing({ traces, hostname }: Config): Promise<Prepared> {
    const { version, logger } = this.#options
    const running = this.#tracing
    if (!traces) return { apply: () => this.#replaceTracing(undefined), discard: nothing }
    const resource = { version, hostname }
    if (running) return { apply: running.prepareReload(traces, resource), discard: nothing }
    const { Tracing } = await import('./tracing.ts')
    const opened = new Tracing({
      config: traces,
      resource,
      monotonic: () => performance.now(),
      now: Date.now,
      onError: (error) => logger.warn({ error }, 'traces do not reach their collector'),
    })
    return { apply: () => this.#replaceTracing(opened), discard: () => opened.close() }
  }

  async #prepareAgent({ snmp, dataDir, hostname }: Config): Promise<Prepared> {
    const { version, metrics, logger, bind } = this.#options
    const running = this.#agent
    const { agent, enterprise } = snmp
    if (!agent) return { apply: () => this.#replaceAgent(undefined), discard: nothing }
    if (running?.isAt(agent)) {
      return { apply: running.prepareReload({ config: agent, enterprise, hostname }), discard: nothing }
    }
    if (running && meet(running.place, agent)) {
      throw new Error(
        `snmp.agent.host: expected ${running.place.host} as long as the port stays, got ${agent.host}: restart the broker`,
      )
    }
    const { SnmpAgent } = await import('./snmp-agent.ts')
    const opened = await bind('snmp', agent, (host, port) =>
      SnmpAgent.open({
        config: { ...agent, host, port },
        ...{ dataDir, hostname, enterprise, version, metrics },
        now: Date.now,
        monotonic: () => performance.now(),
        onError: (error) => logger.error({ error }, 'the SNMP agent failed at a request'),
      }),
    )
    return { apply: () => this.#replaceAgent(opened), discard: () => opened.close() }
  }

  #replaceTracing(tracing: Tracing | undefined): void {
    this.#leave(this.#tracing?.close())
    this.#tracing = tracing
  }

  #replaceAgent(agent: SnmpAgent | undefined): void {
    this.#leave(this.#agent?.close())
    this.#agent = agent
  }

  #leave(closing: Promise<void> | undefined): void {
    const before = this.#left
    if (closing) this.#left = Promise.all([before, closing]).then(() => undefined)
  }
}
