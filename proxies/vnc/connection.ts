/**
 * One viewer's connection from the sign-in to its end: the target that the login names, or one chosen from a
 * drawn list; the notice of recording; the relay.
 */

import type { DesktopOpeningOptions } from '../desktop/opening.ts'
import { NOTICE_SECONDS, OWN_SCREENS_MS } from '../desktop/screens/limits.ts'
import { failureMessage, recordedNotice } from '../desktop/screens/message.ts'
import { WaitingScreen } from '../desktop/screens/waiting.ts'
import { type Choice, isRefusal, type Refusal, TargetChoice } from '../desktop/target-choice.ts'
import { end } from '../net/disconnect.ts'
import type { ProxyConnection } from '../session/connections.ts'
import { Patience } from '../session/patience.ts'
import type { SessionResult } from '../session/session.ts'
import { INTERNAL } from '../wording/errors.ts'
import { ENCODING } from './codec/encodings.ts'
import { RGB888 } from './codec/pixel-format.ts'
import { encodeServerInit, type ServerInit } from './codec/server-init.ts'
import type { SignedInViewer } from './front.ts'
import type { SharedSession } from './guests/shared-session.ts'
import { LocalDisplay } from './local/display.ts'
import { type Opened, type OpeningOptions, openSession } from './opening.ts'
import { OWN_SIZE, RELEASE_MS } from './relay/limits.ts'
import { type LastWords, VncRelay } from './relay/relay.ts'
import { desktopName } from './relay/texts.ts'
import { Viewer } from './relay/viewer.ts'

export interface ConnectionOptions extends SignedInViewer, Omit<OpeningOptions, 'onHeld' | 'onPatience'> {
  /** The name that the bastion shows. */
  bastion: string
  /** The shared sessions by the ids of sessions with a relay, for guests. */
  rooms: Map<string, SharedSession>
  /** Called when nothing is left of the connection. */
  onClosed: () => void
}

const SIZES: ReadonlySet<number> = new Set([ENCODING.DESKTOP_SIZE, ENCODING.EXTENDED_DESKTOP_SIZE])
/** The interval at which the countdown of the final message is drawn. */
const ASK_MS = 1_000

export class VncConnection implements ProxyConnection {
  readonly #options: ConnectionOptions
  readonly #viewer: Viewer
  readonly #abandon = new AbortController()
  #display: LocalDisplay | undefined
  #opened: Opened | undefined
  #choice: TargetChoice<Opened> | undefined
  /** The connection to the target, while it is being made. */
  #opening: Promise<unknown> | undefined
  #relay: VncRelay | undefined
  #asking: NodeJS.Timeout | undefined
  /** Limits the time before the relay; from then on the policy's limits hold. */
  readonly #idle: Patience
  #isLeaving = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#viewer = options.begun?.viewer ?? new Viewer(options.stream)
    this.#display = options.begun?.display
    options.stream.onClosed = () => void this.#leave('success')
    options.stream.onDrain = () => this.#display?.drained()
    this.#viewer.onBroken = (error) => this.#broken(error)
    this.#viewer.onMessage = (message) => {
      if (message.kind === 'key' || message.kind === 'pointer') this.#idle.refresh()
      this.#display?.message(message)
    }
    this.#idle = new Patience(OWN_SCREENS_MS, () => void this.#leave('failure', 'nothing was done in time'))
    this.#run().catch(() => this.#leave('failure', INTERNAL))
  }

  /** Called when the broker is stopping. */
  stop(result: SessionResult, reason: string): void {
    if (this.#relay) this.#opened?.session.stop(result, reason)
    else void this.#leave(result, reason)
  }

  onTargets(text: string): void {
    this.#choice?.refresh(text)
  }

  async #run(): Promise<void> {
    const { gate, identity, bastion } = this.#options
    const choice = new TargetChoice<Opened>({
      gate,
      identity,
      protocol: 'VNC',
      bastion,
      display: () => this.#display ?? this.#beginOwn(),
      open: (choice, signal) => this.#open(choice, signal),
      approvals: this.#options.connections.approvals,
      onPatience: (milliseconds) => this.#idle.extend(milliseconds),
      signal: this.#abandon.signal,
    })
    this.#choice = choice
    const opened = identity.hasTarget ? await choice.reach({}) : await choice.fromList()
    if (this.#isLeaving) return
    if (opened === 'left') await this.#leave('success')
    else if (isRefusal(opened)) await this.#fail(opened.message)
    else await this.#handOver(opened)
  }

  /** Begins a desktop of the bastion's own, while there is no target yet. */
  #beginOwn(): LocalDisplay {
    return this.#begin({ ...OWN_SIZE, format: RGB888, name: this.#options.bastion }, true)
  }

  /** Sends the viewer's ServerInit, and returns the display for the bastion's own screens. */
  #begin(init: ServerInit, mayResize: boolean): LocalDisplay {
    const { stream } = this.#options
    const { width, height, format } = init
    const display = new LocalDisplay({ stream, size: { width, height }, format, mayResize })
    this.#display = display
    this.#viewer.begin(encodeServerInit(init))
    return display
  }

  /** Returns the steps of a session whose target is not connected yet. */
  #held(): Pick<DesktopOpeningOptions, 'onHeld' | 'onPatience'> {
    const { bastion, identity } = this.#options
    return {
      onHeld: (text, cancel) => {
        const display = this.#display ?? this.#beginOwn()
        const words = { bastion, user: identity.user, heading: 'Waiting', text }
        display.show(new WaitingScreen(words, display.size), cancel)
      },
      onPatience: (milliseconds) => this.#idle.extend(milliseconds),
    }
  }

  /** Never rejects. */
  async #open(choice: Choice, signal: AbortSignal): Promise<Opened | Refusal> {
    const opening = openSession({ ...this.#options, ...this.#held() }, choice, signal)
    this.#opening = opening
    const opened = await opening
    return isRefusal(opened) ? opened : this.#fitting(opened)
  }

  /** Fits the target's desktop to a viewer that has a size already: the viewer has to accept the new one. */
  async #fitting(opened: Opened): Promise<Opened | Refusal> {
    const display = this.#display
    const { session, target } = opened
    const { width, height } = target.init
    const fits =
      !display || display.canResize || (display.size.width === width && display.size.height === height)
    if (fits && !this.#isLeaving) {
      this.#opened = opened
      return opened
    }
    target.stream.destroy()
    const reason = fits ? 'the viewer has gone' : 'the viewer cannot change the size of its desktop'
    await this.#over(opened, 'failure', reason)
    const remedy = this.#options.identity.hasTarget
      ? 'take one that can'
      : `name the target in the login, ${session.user}+${session.target.canonical}`
    return { message: `this viewer cannot change the size of its desktop: ${remedy}` }
  }

  /** Shows the notice and starts the relay. */
  async #handOver(opened: Opened): Promise<void> {
    const { session, target } = opened
    const { init } = target
    const { bastion, identity } = this.#options
    session.onStop = (result, reason) => void this.#leave(result, reason)
    target.stream.onClosed = () => void this.#leave('failure', 'the target closed the connection')
    if (session.stopped) {
      await this.#leave('failure')
      return
    }
    const name = desktopName(init.name, session.isRecorded)
    const display = this.#display ?? this.#begin({ ...init, name }, false)
    display.rename(name)
    if (session.vnc.sessionNotice && session.isRecorded) {
      const of = { bastion, user: identity.user, target: session.target.canonical, seconds: NOTICE_SECONDS }
      await display.ask(recordedNotice(of, init))
    }
    await session.opens('VNC')
    // A viewer that does not read would hold the session without any of its limits.
    const late = setTimeout(() => void this.#leave('failure', 'the viewer does not read'), RELEASE_MS)
    const state = await display.release().finally(() => clearTimeout(late))
    if (this.#isLeaving) return
    this.#idle.stop()
    this.#display = undefined
    this.#relay = new VncRelay({
      viewer: this.#viewer,
      state,
      target,
      session,
      onLastWords: (viewer, reason) => this.#lastWords(viewer, reason),
      onClosed: () => void this.#leave('success'),
    })
    this.#options.rooms.set(session.id, this.#relay.room)
  }

  async #over({ session }: Opened, result: SessionResult, reason: string | undefined): Promise<void> {
    this.#options.rooms.delete(session.id)
    this.#options.connections.onClosed(session)
    await session.close(result, reason)
  }

  /** Shows the reason for a session that could not be opened, then leaves. */
  async #fail(text: string): Promise<void> {
    const { bastion, identity } = this.#options
    const display = this.#display ?? this.#beginOwn()
    const words = { bastion, user: identity.user, heading: 'No session', text }
    await display.ask(failureMessage(words, display.size))
    await this.#leave('failure')
  }

  /** Shows why the session has ended, while the viewer stays. */
  #lastWords({ size, format, encodings }: LastWords, reason: string): void {
    const { stream, bastion, identity } = this.#options
    this.#relay = undefined
    const display = new LocalDisplay({ stream, size, format, mayResize: false })
    this.#display = display
    this.#viewer.onMessage = (message) => display.message(message)
    this.#viewer.onRead = undefined
    this.#viewer.onBroken = () => end(stream)
    stream.onDrain = () => display.drained()
    // The size is unchanged: reporting it would make a viewer request another one, which is not allowed
    // (below).
    const known = encodings.filter((encoding) => !SIZES.has(encoding))
    display.message({ kind: 'set-encodings', encodings: known })
    // A viewer with continuous updates sends no requests.
    const ask = () => display.message({ kind: 'update-request', isIncremental: true, x: 0, y: 0, ...size })
    ask()
    this.#asking = setInterval(ask, ASK_MS)
    const words = {
      bastion,
      user: identity.user,
      heading: 'The session has ended',
      text: reason,
      isSudden: true,
    }
    display.show(failureMessage(words, size), () => end(stream))
  }

  #broken(error: Error): void {
    if (this.#relay) this.#relay.broken(error)
    else void this.#leave('failure', error.message)
  }

  /** Ends everything on this connection. Never rejects. */
  async #leave(result: SessionResult, reason?: string): Promise<void> {
    if (this.#isLeaving) return
    this.#isLeaving = true
    const { stream, gate, identity, onClosed } = this.#options
    this.#abandon.abort(reason ?? 'the viewer has gone')
    this.#display?.close()
    clearInterval(this.#asking)
    this.#idle.stop()
    end(stream)
    try {
      await this.#opening
      const opened = this.#opened
      if (opened) {
        opened.target.stream.onClosed = undefined
        opened.target.stream.destroy()
        await this.#over(opened, result, reason)
      }
      await gate.leave({ identity: identity.token })
    } catch {
      // The broker has gone: there is no recipient.
    } finally {
      onClosed()
    }
  }
}
