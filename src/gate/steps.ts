/** How long the steps of a session's opening take, as the gate sees them: for metrics and traces. */
import type { Protocol } from '../model/rights.ts'

export type StepName =
  /** A proof, judged. The time in which a client is awaited does not count. */
  | 'sign_in'
  /** Rights, approval, credential, and the preparation of the recording. */
  | 'authorization'
  /** Within `authorization`: the credential is opened, or made. */
  | 'credential'
  /** From the grant to the target's host key, or else to the session's first channel. */
  | 'target_connect'
  /** The file of the recording is made, and on the disk. */
  | 'recording_open'
  /** Recorded bytes get to the disk. */
  | 'recording_append'

export interface Step {
  name: StepName
  /** Milliseconds of the clock that the gate was given. */
  begin: number
  end: number
  /** The result of the answer, or `failed` if there was none. */
  result: string
  protocol?: Protocol
  /** The client. */
  source?: { address: string; port: number }
  /** The token of the sign-in. */
  identity?: string
  session?: string
}

export interface StepsOptions {
  /** Milliseconds of a clock that never goes back. */
  monotonic: () => number
  onStep: (step: Step) => void
}

export class Steps {
  readonly #options: StepsOptions
  /** Sessions whose target is not there yet. */
  readonly #granted = new Map<string, { at: number; protocol: Protocol }>()

  constructor(options: StepsOptions) {
    this.#options = options
  }

  /** Reports how long `work` took; `of` says the rest of its answer, or of its failure. */
  async time<T>(
    name: StepName,
    work: () => Promise<T>,
    of: (answer: T | undefined) => Omit<Step, 'name' | 'begin' | 'end'>,
  ): Promise<T> {
    const begin = this.#options.monotonic()
    let answer: T | undefined
    try {
      answer = await work()
      return answer
    } finally {
      this.#options.onStep({ name, begin, end: this.#options.monotonic(), ...of(answer) })
    }
  }

  granted(session: string, protocol: Protocol): void {
    this.#granted.set(session, { at: this.#options.monotonic(), protocol })
  }

  /** Notes a sign that the target is there; the first one of a session counts. */
  reached(session: string): void {
    this.#connected(session, 'connected')
  }

  /** Notes that a session has ended, with its target or without it. */
  closed(session: string): void {
    this.#connected(session, 'failed')
  }

  #connected(session: string, result: string): void {
    const granted = this.#granted.get(session)
    if (!granted) return
    this.#granted.delete(session)
    const { at, protocol } = granted
    const end = this.#options.monotonic()
    this.#options.onStep({ name: 'target_connect', begin: at, end, result, protocol, session })
  }
}
