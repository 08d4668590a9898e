/**
 * Whether the input of a session's client is held, by order of the broker: nothing of it reaches the target
 * until it is released. Output goes on.
 */
export class Suspension {
  /** Read by relays for each message of the client. */
  isOn = false
  /** Set by the relay. Called when input is held, with a new reason too, or released. */
  onChange: (() => void) | undefined
  /** Set by the relay of a desktop. Called just before input is held, to release what is pressed. */
  onBegin: (() => void) | undefined
  #reason = ''
  #released: (() => void)[] = []

  /** `reason`: present if the session begins with held input. */
  constructor(reason?: string) {
    if (reason === undefined) return
    this.isOn = true
    this.#reason = reason
  }

  /** Why input is held; the last reason if it is not. */
  get reason(): string {
    return this.#reason
  }

  begin(reason: string): void {
    if (this.isOn && this.#reason === reason) return
    if (!this.isOn) this.onBegin?.()
    this.isOn = true
    this.#reason = reason
    this.onChange?.()
  }

  end(): void {
    if (!this.isOn) return
    this.isOn = false
    this.onChange?.()
    for (const then of this.#released.splice(0)) then()
  }

  /** Resolves when input is not held. Rejects with the signal's reason if it is aborted first. */
  released(signal: AbortSignal): Promise<void> {
    if (!this.isOn) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const abandon = () => reject(new Error(String(signal.reason)))
      if (signal.aborted) {
        abandon()
        return
      }
      signal.addEventListener('abort', abandon, { once: true })
      this.#released.push(() => {
        signal.removeEventListener('abort', abandon)
        resolve()
      })
    })
  }

  /** The line that users read. */
  get text(): string {
    return this.isOn
      ? `your input is suspended, and what you type is discarded: ${this.#reason}`
      : 'your input is accepted again'
  }
}
