/**
 * The socket of the SNMP agent: datagrams of few networks at a bounded rate, and figures that are read once a second
 * at most, and only when a manager asks.
 */
import { randomBytes } from 'node:crypto'
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { type AddressInfo, isIPv6 } from 'node:net'
import { Allowances } from '../audit/allowances.ts'
import type { ListenAddress, SnmpAgentConfig } from '../config/config.ts'
import { fromAny, networkOf } from '../model/networks.ts'
import { type Access, Agent, type Engine, MAX_REQUEST, type Result } from '../snmp/agent.ts'
import { METRICS, managedObjects, type Sample } from '../snmp/objects.ts'
import { userKeys } from '../snmp/usm.ts'
import { View } from '../snmp/view.ts'
import type { Metrics } from './metrics.ts'
import { startSnmpEngine } from './snmp-engine.ts'

/** Milliseconds for which figures are used, and for which new ones are waited for. */
const FRESH_MS = 1000
const PATIENCE_MS = 1000
/** Datagrams of one host's network, and of all: a walk asks for each object in a datagram of its own. */
const RATE = { burst: 1000, perSecond: 200 }
const RATE_OF_ALL = { burst: 4000, perSecond: 1000 }
/** Reports, which go to senders that may have proved nothing. */
const REPORTS = { burst: 50, perSecond: 10 }
const REPORTS_OF_ALL = { burst: 500, perSecond: 100 }
const ALL = 'all'
/** Requests that wait for figures at a time. */
const MAX_WAITING = 256

/** The end of a datagram, at the agent or before it. */
type Outcome = Result | 'source' | 'rate' | 'busy'

export interface SnmpAgentOptions {
  config: SnmpAgentConfig
  enterprise: number
  dataDir: string
  version: string
  hostname: string
  metrics: Pick<Metrics, 'registry' | 'snmpMessages'>
  /** Milliseconds since the epoch. */
  now: () => number
  /** Milliseconds of a clock that never goes back. */
  monotonic: () => number
  onError: (error: Error) => void
}

export class SnmpAgent {
  #options: SnmpAgentOptions
  readonly #socket: Socket
  readonly #engine: Engine
  readonly #begin: number
  readonly #agent: Agent
  #isAllowed: (address: string) => boolean
  readonly #rates = [new Allowances(RATE), new Allowances(RATE_OF_ALL)] as const
  readonly #reports = [new Allowances(REPORTS), new Allowances(REPORTS_OF_ALL)] as const
  #view: View | undefined
  #viewed = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined
  #waiting = 0

  /** Counts a start of the engine. Rejects if it cannot bind. */
  static async open(options: SnmpAgentOptions): Promise<SnmpAgent> {
    const agent = new SnmpAgent(options)
    await agent.#bind()
    return agent
  }

  private constructor(options: SnmpAgentOptions) {
    const { config, dataDir, enterprise, monotonic } = options
    this.#options = options
    this.#engine = startSnmpEngine(dataDir, { enterprise, randomBytes })
    this.#begin = monotonic()
    this.#agent = new Agent({
      engine: this.#engine,
      access: this.#accessOf(config),
      seconds: () => this.#seconds(),
      randomBytes,
    })
    this.#isAllowed = fromAny(config.allow)
    this.#socket = createSocket(isIPv6(config.host) ? 'udp6' : 'udp4', (datagram, from) =>
      this.#receive(datagram, from),
    )
  }

  get address(): AddressInfo {
    return this.#socket.address()
  }

  /** The address of the configuration. */
  get place(): ListenAddress {
    return this.#options.config
  }

  isAt({ host, port }: ListenAddress): boolean {
    return host === this.place.host && port === this.place.port
  }

  /** Applies another community, user and networks, and what the figures say of the broker; the address stays. */
  prepareReload(changed: Pick<SnmpAgentOptions, 'config' | 'enterprise' | 'hostname'>): () => void {
    const access = this.#accessOf(changed.config)
    const isAllowed = fromAny(changed.config.allow)
    return () => {
      this.#options = { ...this.#options, ...changed }
      this.#agent.access = access
      this.#isAllowed = isAllowed
    }
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#socket.close(resolve))
  }

  #bind(): Promise<void> {
    const { host, port } = this.#options.config
    return new Promise((resolve, reject) => {
      this.#socket.once('error', reject)
      this.#socket.bind({ address: host, port }, () => {
        this.#socket.off('error', reject)
        this.#socket.on('error', this.#options.onError)
        resolve()
      })
    })
  }

  #seconds(): number {
    return Math.floor((this.#options.monotonic() - this.#begin) / 1000)
  }

  #accessOf({ community, v3 }: SnmpAgentConfig): Access {
    return {
      ...(community && { community }),
      ...(v3 && { user: userKeys({ ...v3, name: v3.user }, this.#engine.id) }),
    }
  }

  #receive(datagram: Buffer, from: RemoteInfo): void {
    this.#serve(datagram, from).then(
      (result) => this.#options.metrics.snmpMessages.inc({ result }),
      (error: Error) => this.#options.onError(error),
    )
  }

  async #serve(datagram: Buffer, { address, port }: RemoteInfo): Promise<Outcome> {
    if (!this.#isAllowed(address)) return 'source'
    const network = networkOf(address)
    if (!this.#may(this.#rates, network)) return 'rate'
    const { result, reply, respond } = this.#agent.receive(datagram)
    if (reply) {
      if (!this.#may(this.#reports, network)) return 'rate'
      this.#send(reply, port, address)
    }
    if (!respond) return result
    const view = await this.#current()
    if (!view) return 'busy'
    this.#send(respond(view), port, address)
    return result
  }

  #may([each, all]: readonly [Allowances, Allowances], network: string): boolean {
    const now = this.#options.monotonic()
    return each.take(network, now) && all.take(ALL, now)
  }

  #send(answer: Buffer, port: number, address: string): void {
    // An answer that is lost is asked for again.
    this.#socket.send(answer, port, address, () => undefined)
  }

  /**
   * Returns the present figures; the last ones if the present ones take long, or undefined if there are none yet or
   * too many requests wait.
   */
  async #current(): Promise<View | undefined> {
    const { monotonic } = this.#options
    if (monotonic() - this.#viewed < FRESH_MS) return this.#view
    if (this.#waiting === MAX_WAITING) return this.#view
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    this.#waiting += 1
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, PATIENCE_MS)
    })
    try {
      await Promise.race([this.#reading, patience])
    } finally {
      clearTimeout(timer)
      this.#waiting -= 1
    }
    return this.#view
  }

  async #read(): Promise<void> {
    const { version, hostname, enterprise, metrics, now, monotonic } = this.#options
    const samples = new Map<string, readonly Sample[]>()
    await Promise.all(
      METRICS.map(async (name) => {
        const found = await metrics.registry.getSingleMetric(name)?.get()
        if (found) samples.set(name, found.values)
      }),
    )
    const self = {
      ...{ version, hostname, enterprise, engine: this.#engine, now: now() },
      maxRequest: MAX_REQUEST,
      uptimeSeconds: this.#seconds(),
    }
    this.#view = new View(managedObjects(self, (metric) => samples.get(metric)))
    this.#viewed = monotonic()
  }
}
