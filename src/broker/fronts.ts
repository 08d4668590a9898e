/** The listeners for sessions, and the place where their connections are served: session workers, or this process. */
import type { Fronts } from '../../proxies/worker/fronts.ts'
import { securitiesOf } from '../../proxies/worker/securities.ts'
import type { Config, ListenAddress } from '../config/config.ts'
import { FRONT_NAMES, type FrontName, type FrontSettings } from '../contract/front-settings.ts'
import type { Gate, Source } from '../contract/gate.ts'
import { type UrgentData, WITHOUT_URGENCY } from '../contract/urgent-data.ts'
import { type Bound, listenAt, type TcpHandle } from '../sockets/accept.ts'
import { peerOf } from '../sockets/claimed.ts'
import type { ProxyHeaders } from '../sockets/proxy-headers.ts'
import { openUrgentData } from '../sockets/urgent.ts'
import type { WorkerFigures, WorkersOptions } from '../workers/workers.ts'
import { Workers } from '../workers/workers.ts'
import type { FrontKeys } from './front-keys.ts'
import { changedSettings, frontSettings } from './front-settings.ts'

type Warn = (message: string) => void

export interface Listener {
  /** The name in the configuration. */
  name: FrontName
  address: ListenAddress
  listen: (host: string, port: number) => Promise<{ address: string; port: number }>
}

/** Where connections are served. */
interface Place {
  serve(front: FrontName, handle: TcpHandle): void
  change(settings: FrontSettings): void
  drain(graceMs: number, reason: string): Promise<void>
  /** See `FrontDoors.takeDelays`. */
  takeDelays(): number[]
  /** See `FrontDoors.workers`. */
  workers(): WorkerFigures[]
}

export interface FrontsOptions {
  config: Config
  keys: FrontKeys
  gate: Gate
  /** Absent: the connections are served in this process. */
  workers?: Omit<WorkersOptions, 'settings'>
  proxyHeaders: ProxyHeaders
  /** Returns what is called when a client has come; undefined while nothing is. */
  onArrived: () => ((source: Source) => void) | undefined
  /** Gets faults that do not prevent the start. */
  warn: Warn
}

export class FrontDoors {
  readonly #place: Place
  readonly #proxyHeaders: ProxyHeaders
  readonly #bound: Bound[] = []
  readonly #warn: Warn
  readonly #onArrived: FrontsOptions['onArrived']
  readonly #keys: FrontKeys
  /** The settings that the fronts were started with. */
  readonly #begun: FrontSettings
  /** The listeners to bind, in the order in which they are reported. */
  readonly listeners: Listener[]

  private constructor(
    place: Place,
    begun: FrontSettings,
    { config, keys, proxyHeaders, onArrived, warn }: FrontsOptions,
    urgent: UrgentData,
  ) {
    this.#begun = begun
    this.#place = place
    this.#warn = warn
    this.#onArrived = onArrived
    this.#proxyHeaders = proxyHeaders
    this.#keys = keys
    this.listeners = FRONT_NAMES.flatMap((name) => {
      const address = config.listen[name]
      return address ? [{ name, address, listen: this.#listenFor(name, urgent) }] : []
    })
  }

  /** Starts the workers; nothing listens yet. */
  static async open(options: FrontsOptions): Promise<FrontDoors> {
    const { config, keys, gate, workers, warn } = options
    const urgent = await urgentData(warn)
    const settings = await frontSettings(config, keys, warn)
    // A wrong certificate is an error here, and not of a worker.
    securitiesOf(settings)
    const place = workers
      ? placeOf(await Workers.start({ ...workers, settings }))
      : inProcess(await frontsHere(settings, gate, urgent))
    return new FrontDoors(place, settings, options, urgent)
  }

  #listenFor(name: FrontName, urgent: UrgentData): Listener['listen'] {
    return async (host, port) => {
      const bound = await listenAt({
        host,
        port,
        ...(isTerminal(name) && { urgent }),
        onConnection: (handle) => void this.#admit(name, handle),
      })
      this.#bound.push(bound)
      return bound
    }
  }

  async #admit(name: FrontName, handle: TcpHandle): Promise<void> {
    if (!this.#proxyHeaders.isExpected(handle)) {
      this.#serve(name, handle)
      return
    }
    const admitted = await this.#proxyHeaders.read(name, handle)
    if (admitted) this.#serve(name, admitted)
  }

  #serve(name: FrontName, handle: TcpHandle): void {
    const onArrived = this.#onArrived()
    const source = onArrived && peerOf(handle)
    if (source) onArrived(source)
    this.#place.serve(name, handle)
  }

  /**
   * Reads the files of a changed configuration, and throws if that fails. Returns a function that applies
   * them to new connections. Listeners stay.
   */
  async prepareReload(config: Config): Promise<() => void> {
    const settings = changedSettings(this.#begun, await frontSettings(config, this.#keys, this.#warn))
    securitiesOf(settings)
    return () => this.#place.change(settings)
  }

  /** Returns the longest delay of each session worker's event loop since the last call, in milliseconds. */
  takeDelays(): number[] {
    return this.#place.takeDelays()
  }

  /** Figures of the session workers by place; none if the connections are served in this process. */
  get workers(): WorkerFigures[] {
    return this.#place.workers()
  }

  /** Closes the listeners; connections stay. */
  close(): void {
    for (const bound of this.#bound.splice(0)) bound.close()
  }

  /**
   * Accepts no new connections; running ones get `graceMs`, then they are closed with the reason. A second call
   * can shorten the grace of the first. Resolves at the end.
   */
  async drain(graceMs: number, reason: string): Promise<void> {
    this.close()
    await this.#place.drain(graceMs, reason)
  }
}

/** Whether the front's protocol has urgent data. */
function isTerminal(name: FrontName): boolean {
  return name === 'telnet' || name === 'rlogin' || name === 'telnets'
}

/** Loads the protocols, which a broker with session workers does without. */
async function frontsHere(settings: FrontSettings, gate: Gate, urgent: UrgentData): Promise<Fronts> {
  const { Fronts } = await import('../../proxies/worker/fronts.ts')
  return new Fronts(settings, gate, urgent)
}

function inProcess(fronts: Fronts): Place {
  return {
    serve: (front, handle) => void fronts.accept(front, handle),
    change: (settings) => fronts.change(settings),
    drain: (graceMs, reason) => fronts.drain(graceMs, reason),
    takeDelays: () => [],
    workers: () => [],
  }
}

function placeOf(workers: Workers): Place {
  return {
    serve: (front, handle) => {
      const source = peerOf(handle)
      // A client that is gone already has no address.
      if (source) workers.serve({ front, handle, source })
      else handle.close()
    },
    change: (settings) => workers.change(settings),
    drain: (graceMs, reason) => workers.drain(graceMs, reason),
    takeDelays: () => workers.takeDelays(),
    workers: () => workers.figures,
  }
}

async function urgentData(warn: Warn): Promise<UrgentData> {
  const opened = await openUrgentData()
  if ('urgent' in opened) return opened.urgent
  warn(
    `there is no way to TCP's urgent data (${opened.missing}): Telnet and rlogin sessions lose bytes of it, and rlogin may not learn the window's size`,
  )
  return WITHOUT_URGENCY
}
