/**
 * A client's requests on a channel that the bastion serves, kept for the target: variables, terminal, display
 * and agent, and what it asked to run.
 */
import { Buffer } from 'node:buffer'
import { buildChannelRequest, buildEnv, buildEof, buildPtyRequest } from '../codec/build.ts'
import type { ChannelRequest } from '../codec/messages.ts'
import { type PtyRequest, parseEnv, parsePtyRequest, parseWindowChange } from '../codec/requests.ts'
import { mayPass } from '../policy/environment.ts'

const MAX_VARIABLES = 32
const AGENT_REQUEST = 'auth-agent-req@openssh.com'
const WISHES: ReadonlySet<string> = new Set(['x11-req', AGENT_REQUEST])
/** Largest request for X11 in bytes: its protocol and cookie have under 100. */
const MAX_WISH = 1024

export class PreparedRequests {
  #terminal: PtyRequest | undefined
  /** The client's requests for its display and agent, for the target. */
  readonly #wishes = new Map<string, Uint8Array>()
  readonly #variables: { name: string; value: Uint8Array }[] = []
  #main: Buffer | undefined
  /** Set once the client has announced that it sends no more. */
  isEnded = false

  get terminal(): PtyRequest | undefined {
    return this.#terminal
  }

  /** Whether the client forwards its agent. */
  get hasAgent(): boolean {
    return this.#wishes.has(AGENT_REQUEST)
  }

  /**
   * Keeps a request other than the main one, and returns whether it is granted. `mayWish`: display and agent
   * may be asked for. The rights for them are checked when the requests are sent to the target.
   */
  take(request: ChannelRequest, mayWish: boolean): boolean {
    const hasBegun = this.#main !== undefined
    if (request.type === 'pty-req' && !this.#terminal && !hasBegun) {
      const terminal = parsePtyRequest(request.data)
      // Copies, here and below: the next read overwrites the message.
      this.#terminal = { ...terminal, modes: Uint8Array.from(terminal.modes) }
      return true
    }
    if (request.type === 'window-change') {
      const size = parseWindowChange(request.data)
      if (this.#terminal) this.#terminal = { ...this.#terminal, ...size }
      return true
    }
    if (WISHES.has(request.type) && !this.#wishes.has(request.type) && !hasBegun) {
      if (!mayWish || request.data.length > MAX_WISH) return false
      this.#wishes.set(request.type, Uint8Array.from(request.data))
      return true
    }
    if (request.type === 'env' && this.#variables.length < MAX_VARIABLES) {
      const { name, value } = parseEnv(request.data)
      if (!mayPass(name, value)) return false
      this.#variables.push({ name, value: Uint8Array.from(value) })
      return true
    }
    return false
  }

  /** Keeps the main request. */
  begin(payload: Buffer): void {
    this.#main = Buffer.from(payload)
  }

  /** Returns the messages for the target, as if the client sent them now. `id`: of the bastion. */
  messages(id: number): Buffer[] {
    return [
      ...[...this.#wishes].map(([type, data]) => buildChannelRequest(id, type, false, data)),
      ...this.#variables.map(({ name, value }) => buildEnv(id, false, name, value)),
      ...(this.#terminal ? [buildPtyRequest(id, false, this.#terminal)] : []),
      ...(this.#main ? [this.#main] : []),
      ...(this.isEnded ? [buildEof(id)] : []),
    ]
  }
}
