/**
 * The session workers of a broker: as many as configured, replaced when they die. A connection goes to the worker
 * that has fewest; those of a protocol whose users meet in one session go to one worker.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FrontName, FrontSettings } from '../contract/front-settings.ts'
import type { Source } from '../contract/gate.ts'
import { SessionWorker, type WorkerEnd, type WorkerOptions } from './process.ts'

/** Milliseconds before a worker is replaced that died early; doubled with each further one, up to the last. */
const FIRST_DELAY_MS = 500
const LAST_DELAY_MS = 30_000
/** Milliseconds that a worker has to live to count as one that works. */
const EARLY_MS = 60_000
/** Workers in a row that died early: something is wrong with all of them. */
export const LOOP_LENGTH = 3
/** Connections that wait for a worker while none is there, and for how many milliseconds. */
const MAX_WAITING = 1_000
const WAIT_MS = 15_000

export interface WorkersOptions extends Omit<WorkerOptions, 'onEnded' | 'settings'> {
  count: number
  settings: FrontSettings
  /** Called for each worker that died; `early`: how many in a row have lived less than a minute. */
  onLost: (end: WorkerEnd, early: number) => void
}

/** Figures of the worker at one place; of one that is gone it has no memory, connections and sessions. */
export interface WorkerFigures {
  isUp: boolean
  sessions: number
  connections: number
  /** NaN if it is not known. */
  residentBytes: number
  /** Workers that have died at this place. */
  losses: number
}

/** An accepted connection: see sockets/accept.ts. */
interface Connection {
  front: FrontName
  handle: { readonly fd: number; close(): void }
  source: Source
}

export class Workers {
  readonly #options: WorkersOptions
  #settings: FrontSettings
  readonly #workers: (SessionWorker | undefined)[]
  /** Workers that have died, by place. */
  readonly #losses: number[]
  readonly #waiting: { connection: Connection; until: number }[] = []
  /** The worker of all desktops that guests can be invited to. */
  #desktops: SessionWorker | undefined
  #early = 0
  #isDraining = false
  #sweep: NodeJS.Timeout | undefined

  private constructor(options: WorkersOptions) {
    this.#options = options
    this.#settings = options.settings
    this.#workers = new Array(options.count).fill(undefined)
    this.#losses = new Array(options.count).fill(0)
  }

  /** Starts all of them. Rejects if one cannot be started. */
  static async start(options: WorkersOptions): Promise<Workers> {
    const workers = new Workers(options)
    try {
      await Promise.all(workers.#workers.map((_none, place) => workers.#start(place)))
    } catch (error) {
      await workers.drain(0, 'a session worker could not be started')
      throw error
    }
    return workers
  }

  /** Process ids of the workers that run. */
  get pids(): number[] {
    return this.#alive().map(({ pid }) => pid)
  }

  /** By place. */
  get figures(): WorkerFigures[] {
    return this.#workers.map((worker, place) => ({
      isUp: worker !== undefined,
      sessions: worker?.sessions ?? 0,
      connections: worker?.connections ?? 0,
      residentBytes: worker?.residentBytes ?? Number.NaN,
      losses: this.#losses[place]!,
    }))
  }

  /** Returns the longest delay of each worker's event loop since the last call, in milliseconds, by place. */
  takeDelays(): number[] {
    return this.#workers.map((worker) => worker?.takeDelay() ?? 0)
  }

  /** Takes over a connection: passes it to a worker, keeps it until one is there, or closes it. */
  serve(connection: Connection, until = performance.now() + WAIT_MS): void {
    if (this.#pass(connection)) return
    if (this.#isDraining || this.#waiting.length >= MAX_WAITING) {
      connection.handle.close()
      return
    }
    this.#waiting.push({ connection, until })
    this.#sweep ??= setInterval(() => this.#serveWaiting(), 100)
  }

  /** Settings for new connections. */
  change(settings: FrontSettings): void {
    this.#settings = settings
    for (const worker of this.#alive()) worker.change(settings)
  }

  /** Ends all connections after `graceMs`, with this reason, and all workers. */
  async drain(graceMs: number, reason: string): Promise<void> {
    this.#isDraining = true
    this.#serveWaiting()
    await Promise.all(this.#alive().map((worker) => worker.drain(graceMs, reason)))
  }

  #alive(): SessionWorker[] {
    return this.#workers.filter((worker) => worker !== undefined)
  }

  async #start(place: number): Promise<void> {
    const begin = performance.now()
    const settings = this.#settings
    const worker = await SessionWorker.start({
      ...this.#options,
      settings,
      onEnded: (end) => {
        this.#workers[place] = undefined
        if (this.#isDraining) return
        this.#lost(place, end, performance.now() - begin)
        void this.#replace(place)
      },
    })
    this.#workers[place] = worker
    // Changed while it began.
    if (settings !== this.#settings) worker.change(this.#settings)
    // Drained while it began.
    if (this.#isDraining) await worker.drain(0, 'the bastion is stopping')
    this.#serveWaiting()
  }

  #lost(place: number, end: WorkerEnd, lived: number): void {
    this.#losses[place]! += 1
    this.#early = lived < EARLY_MS ? this.#early + 1 : 0
    this.#options.onLost(end, this.#early)
  }

  async #replace(place: number): Promise<void> {
    while (!this.#isDraining) {
      if (this.#early > 0) {
        await sleep(Math.min(LAST_DELAY_MS, FIRST_DELAY_MS * 2 ** (this.#early - 1)), undefined, {
          ref: false,
        })
        if (this.#isDraining) return
      }
      try {
        await this.#start(place)
        return
      } catch (error) {
        this.#lost(place, { pid: 0, reason: (error as Error).message, sessions: 0 }, 0)
      }
    }
  }

  #pass({ front, handle, source }: Connection): boolean {
    const alive = this.#alive().toSorted((a, b) => a.load - b.load)
    // Guests of a desktop meet in the worker of its session.
    if (!this.#desktops || !alive.includes(this.#desktops)) this.#desktops = alive[0]
    const candidates = front === 'vnc' ? alive.filter((worker) => worker === this.#desktops) : alive
    const isPassed = candidates.some((worker) => worker.give(front, handle.fd, source))
    // The worker has a descriptor of its own.
    if (isPassed) handle.close()
    return isPassed
  }

  #serveWaiting(): void {
    const now = performance.now()
    for (const waiting of this.#waiting.splice(0)) {
      if (this.#isDraining || waiting.until < now) waiting.connection.handle.close()
      else this.serve(waiting.connection, waiting.until)
    }
    if (this.#waiting.length > 0) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}
