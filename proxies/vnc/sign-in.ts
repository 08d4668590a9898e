/**
 * Goes through the gate's questions after a viewer's password. RFB has no room for them in its handshake, so
 * the handshake ends well, and they are asked on the bastion's own desktop, before any target is named on it.
 */
import type { Challenge, Identity } from '../../src/contract/gate.ts'
import { Rounds, type RoundsOptions } from '../desktop/rounds.ts'
import { failureMessage } from '../desktop/screens/message.ts'
import type { ByteStream } from '../net/byte-stream.ts'
import { end } from '../net/disconnect.ts'
import { INTERNAL } from '../wording/errors.ts'
import { RGB888 } from './codec/pixel-format.ts'
import { encodeServerInit } from './codec/server-init.ts'
import { LocalDisplay } from './local/display.ts'
import { OWN_SIZE } from './relay/limits.ts'
import { Viewer } from './relay/viewer.ts'

export interface VncSignInOptions extends Omit<RoundsOptions, 'protocol' | 'display'> {
  stream: ByteStream
  /** Milliseconds for all answers; an error is shown afterwards. */
  patienceMs: number
}

/** A viewer that has its ServerInit, and the desktop that is shown to it. */
export interface BegunViewer {
  viewer: Viewer
  display: LocalDisplay
}

/** The text for wrong proofs of every kind, before and after the end of the handshake. */
export const REJECTED = 'wrong user name, password or ticket'
const LATE = 'no answer came in time'

export class VncSignIn {
  readonly #options: VncSignInOptions
  readonly #rounds: Rounds
  readonly #viewer: Viewer
  readonly #display: LocalDisplay
  #late: NodeJS.Timeout | undefined
  #isOver = false

  constructor(options: VncSignInOptions) {
    const { stream, bastion } = options
    this.#options = options
    this.#viewer = new Viewer(stream)
    this.#display = new LocalDisplay({ stream, size: OWN_SIZE, format: RGB888, mayResize: true })
    const onWaiting = (milliseconds: number) => {
      options.onWaiting(milliseconds)
      this.#expectWithin(milliseconds)
    }
    const display = () => this.#display
    this.#rounds = new Rounds({ ...options, protocol: 'VNC', display, onWaiting }, REJECTED)
    stream.onClosed = () => this.#close()
    stream.onDrain = () => this.#display.drained()
    this.#viewer.onBroken = () => end(stream)
    this.#viewer.onMessage = (message) => this.#display.message(message)
    this.#viewer.begin(encodeServerInit({ ...OWN_SIZE, format: RGB888, name: bastion }))
  }

  /**
   * Returns the identity and the viewer once the gate has accepted, or undefined: the viewer is then shown why
   * and leaves. Never rejects; stays pending if the connection closes before.
   */
  async run(
    login: string,
    challenge: Challenge,
  ): Promise<(BegunViewer & { identity: Identity }) | undefined> {
    this.#expectWithin(this.#options.patienceMs)
    const verdict = await this.#rounds.answer(login, challenge).catch(() => ({ refused: INTERNAL }))
    if (this.#isOver) {
      // The gate accepted a viewer that has gone. If this fails, the identity ends with the broker.
      if (typeof verdict === 'object' && 'identity' in verdict)
        this.#options.gate.leave({ identity: verdict.identity.token }).catch(() => undefined)
      return undefined
    }
    clearTimeout(this.#late)
    if (verdict === 'left') end(this.#options.stream)
    else if ('refused' in verdict) this.#fail(verdict.refused)
    else return { identity: verdict.identity, viewer: this.#viewer, display: this.#display }
    return undefined
  }

  #expectWithin(milliseconds: number): void {
    clearTimeout(this.#late)
    this.#late = setTimeout(() => this.#fail(LATE), milliseconds)
  }

  /** Shows the reason until the viewer has read it, or the grace time of the connection has passed. */
  #fail(text: string): void {
    const { stream, bastion } = this.#options
    this.#isOver = true
    this.#rounds.onClosed()
    const display = this.#display
    display.show(failureMessage({ bastion, heading: 'No sign-in', text }, display.size), () => end(stream))
  }

  #close(): void {
    this.#isOver = true
    clearTimeout(this.#late)
    this.#rounds.onClosed()
    this.#display.close()
  }
}
