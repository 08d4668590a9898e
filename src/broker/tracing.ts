/** Sends traces of sessions' openings to a collector (OTLP over HTTP), late rather than at the users' expense. */
import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { TracesConfig } from '../config/config.ts'
import type { Step } from '../gate/steps.ts'
import { Openings, type Trace } from '../tracing/openings.ts'
import { exportRequest, type Resource } from '../tracing/otlp.ts'

const INTERVAL_MS = 5_000
const TIMEOUT_MS = 10_000
/** Traces that wait for a collector which is away: the oldest are dropped. */
const MAX_WAITING = 2_000
const MAX_BATCH = 200
/** A collector that refuses these refuses them again (OTLP 1.3, failures). */
const isFinal = (status: number) => 400 <= status && status < 500 && status !== 429

export interface TracingOptions {
  config: TracesConfig
  resource: Resource
  /** Milliseconds of the clock of the steps, and since the epoch. */
  monotonic: () => number
  now: () => number
  /** Called once when the collector cannot be reached, until it can. */
  onError: (error: Error) => void
}

export class Tracing {
  #options: TracingOptions
  #ca: Buffer | undefined
  readonly #openings = new Openings()
  readonly #timer: NodeJS.Timeout
  #waiting: Trace[] = []
  #sending: Promise<void> | undefined
  #isDown = false

  /** Throws if the file of the collector's authorities cannot be read. */
  constructor(options: TracingOptions) {
    this.#options = options
    this.#ca = authorities(options.config)
    this.#timer = setInterval(() => this.#flush(), INTERVAL_MS).unref()
  }

  /**
   * Applies another collector, which gets what the present one has not taken. Throws if the file of its authorities cannot be
   * read.
   */
  prepareReload(config: TracesConfig, resource: Resource): () => void {
    const ca = authorities(config)
    return () => {
      this.#options = { ...this.#options, config, resource }
      this.#ca = ca
      this.#isDown = false
    }
  }

  arrived(source: { address: string; port: number }): void {
    this.#openings.arrived(source, this.#options.monotonic())
  }

  add(step: Step): void {
    this.#openings.add(step)
  }

  /** Sends what there is, once. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#sending
    this.#flush(true)
    await this.#sending
  }

  #flush(isLast = false): void {
    this.#waiting.push(...this.#openings.take(this.#options.monotonic(), isLast))
    this.#waiting.splice(0, this.#waiting.length - MAX_WAITING)
    if (this.#waiting.length === 0) return
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined
    })
  }

  async #send(): Promise<void> {
    const batch = this.#waiting.splice(0, MAX_BATCH)
    let isKept = true
    try {
      const status = await this.#post(batch)
      isKept = !isFinal(status)
      if (status < 200 || 300 <= status) throw new Error(`the collector of traces answered ${status}`)
      this.#isDown = false
    } catch (error) {
      if (isKept) this.#waiting.unshift(...batch)
      if (!this.#isDown) this.#options.onError(error as Error)
      this.#isDown = true
    }
  }

  async #post(batch: readonly Trace[]): Promise<number> {
    const { config, resource, monotonic, now } = this.#options
    const ids = { randomBytes, origin: now() - monotonic() }
    const body = JSON.stringify(exportRequest(batch, resource, ids))
    const url = new URL(config.endpoint)
    const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(this.#ca && { ca: this.#ca }),
    })
    request.end(body)
    const [response] = await once(request, 'response')
    response.resume()
    return response.statusCode
  }
}

const authorities = ({ ca }: TracesConfig) => (ca === undefined ? undefined : readFileSync(ca))
