/**
 * One viewer's connection from sign-in to the end: the target that its login names, or one chosen from a list that is
 * drawn for it; then the notice that the session is recorded; then the relay.
 */
import type { Gate, OpenRequest } from '../../src/gate/messages.ts'
import type { Connections, ProxyConnection } from '../connections.ts'
import { failureMessage, recordedNotice } from '../desktop/message.ts'
import type { Size } from '../desktop/screen.ts'
import { TargetList } from '../desktop/targets.ts'
import { WaitingScreen } from '../desktop/waiting.ts'
import { INTERNAL, TargetError } from '../errors.ts'
import { end } from '../farewell.ts'
import type { SessionResult } from '../session.ts'
import { openVncTarget, type VncTarget } from './back.ts'
import { RGB888 } from './codec/pixel-format.ts'
import { encodeServerInit, type ServerInit } from './codec/server-init.ts'
import type { SignedInViewer } from './front.ts'
import { NOTICE_SECONDS, OWN_SIZE } from './limits.ts'
import { LocalDisplay } from './local/display.ts'
import { type LastWords, VncRelay } from './relay.ts'
import { VncSession } from './session.ts'
import { desktopName } from './texts.ts'
import { Viewer } from './viewer.ts'

export interface ConnectionOptions extends SignedInViewer {
  gate: Gate
  /** The name that it shows itself by. */
  bastion: string
  /** Has the session once it has begun, so that the gate's notices reach it. */
  connections: Connections
  /** Nothing is left of the connection. */
  onGone: () => void
}

/** A session whose target is there. */
interface Opened {
  session: VncSession
  target: VncTarget
}

export class VncConnection implements ProxyConnection {
  readonly #options: ConnectionOptions
  readonly #viewer: Viewer
  readonly #abandon = new AbortController()
  #display: LocalDisplay | undefined
  #opened: Opened | undefined
  #session: VncSession | undefined
  #relay: VncRelay | undefined
  #isLeaving = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#viewer = new Viewer(options.pipe)
    options.pipe.onClose = () => this.#viewerGone()
    this.#viewer.onBroken = (error) => this.#broken(error)
    this.#viewer.onMessage = (message) => this.#display?.message(message)
    options.pipe.onDrain = () => this.#display?.drained()
    // What is left of a viewer that has gone while it was waited for something.
    this.#run().catch(() => this.#leave('failure', INTERNAL))
  }

  /** The broker is stopping. */
  stop(result: SessionResult, reason: string): void {
    if (this.#session) this.#session.stop(result, reason)
    else this.#abandon.abort(reason)
    if (!this.#relay) void this.#leave(result, reason)
  }

  async #run(): Promise<void> {
    const { identity } = this.#options
    if (!identity.hasTarget) {
      await this.#choose()
      return
    }
    const opened = await this.#open({})
    if (typeof opened === 'string') {
      await this.#fail(opened)
      return
    }
    const { init } = opened.target
    const display = this.#begin({ ...init, name: desktopName(init.name, opened.session.isRecorded) }, false)
    await this.#handOver(opened, display)
  }

  /** The list of targets, until one of them is there or the user leaves. */
  async #choose(): Promise<void> {
    const { gate, identity } = this.#options
    const { user } = identity
    const display = this.#begin({ ...OWN_SIZE, format: RGB888, name: this.#options.bastion }, true)
    let notice: string | undefined
    while (!this.#isLeaving) {
      const { targets, total } = await gate.targets({ identity: identity.token, protocol: 'VNC' })
      const list = new TargetList(
        { bastion: this.#options.bastion, user, targets, total, ...(notice !== undefined && { notice }) },
        display.size,
      )
      const outcome = await display.ask(list)
      if (outcome === 'left') {
        await this.#leave('success')
        return
      }
      const { target } = outcome.choice
      const waiting = new WaitingScreen(
        { bastion: this.#options.bastion, user, heading: 'Connecting', text: target },
        display.size,
      )
      const interrupt = new AbortController()
      display.show(waiting, () => interrupt.abort('interrupted'))
      const opened = await this.#open({ target }, interrupt.signal)
      if (typeof opened === 'string') {
        notice = opened
        continue
      }
      if (!this.#fits(display, opened.target.init)) {
        await this.#drop(opened, 'the viewer keeps the size of its desktop')
        notice = `this viewer cannot change the size of its desktop: name the target in the login, ${user}+${target}`
        continue
      }
      display.rename(desktopName(opened.target.init.name, opened.session.isRecorded))
      await this.#handOver(opened, display)
      return
    }
  }

  /** The viewer gets its ServerInit, and screens of the bastion's own. */
  #begin(init: ServerInit, mayResize: boolean): LocalDisplay {
    const { pipe } = this.#options
    const { width, height, format } = init
    this.#display = new LocalDisplay({ pipe, size: { width, height }, format, mayResize })
    this.#viewer.begin(encodeServerInit(init))
    return this.#display
  }

  #fits(display: LocalDisplay, { width, height }: Size): boolean {
    return display.canResize || (display.size.width === width && display.size.height === height)
  }

  /** The notice, and the relay. */
  async #handOver(opened: Opened, display: LocalDisplay): Promise<void> {
    const { session, target } = opened
    const { width, height } = target.init
    const { user } = this.#options.identity
    if (session.vnc.sessionNotice && session.isRecorded) {
      const of = {
        bastion: this.#options.bastion,
        user,
        target: session.target.canonical,
        seconds: NOTICE_SECONDS,
      }
      await display.ask(recordedNotice(of, { width, height }))
    }
    await session.opens('VNC')
    const state = await display.release()
    if (this.#isLeaving) return
    this.#display = undefined
    this.#relay = new VncRelay({
      viewer: this.#viewer,
      state,
      target,
      session,
      onLastWords: (state, reason) => this.#lastWords(state, reason),
      onEnd: () => void this.#leave('success'),
    })
  }

  /** The session that the gate opens, and its target; or why there is none. Never rejects. */
  async #open(choice: Pick<OpenRequest, 'target'>, interrupt?: AbortSignal): Promise<Opened | string> {
    const { gate, identity, source, connections, isShared } = this.#options
    const signals = [this.#abandon.signal, ...(interrupt ? [interrupt] : [])]
    let session: VncSession | undefined
    try {
      const answer = await gate.open({ identity: identity.token, protocol: 'VNC', source, ...choice })
      if (answer.result === 'denied') return answer.message
      if (answer.result === 'logon_needed') return `${answer.question.target} has no stored password`
      session = await VncSession.of(answer.session, gate)
      this.#session = session
      connections.begun(session)
      const stopped = new AbortController()
      session.onStop = (_result, reason) => stopped.abort(reason)
      const signal = AbortSignal.any([...signals, stopped.signal])
      const target = await openVncTarget(answer.session, { gate, signal, isShared })
      const opened = { session, target }
      if (session.stopped || signal.aborted) {
        target.pipe.destroy()
        throw new TargetError(session.stopped?.reason ?? String(signal.reason))
      }
      session.onStop = (result, reason) => void this.#leave(result, reason)
      target.pipe.onClose = () => void this.#leave('failure', 'the target closed the connection')
      this.#opened = opened
      return opened
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (session) await this.#over(session, 'failure', reason)
      return error instanceof TargetError || session?.stopped ? reason : INTERNAL
    }
  }

  /** A session that came to nothing. */
  async #drop({ session, target }: Opened, reason: string): Promise<void> {
    target.pipe.onClose = undefined
    target.pipe.destroy()
    this.#opened = undefined
    await this.#over(session, 'failure', reason)
  }

  async #over(session: VncSession, result: SessionResult, reason: string | undefined): Promise<void> {
    this.#options.connections.over(session)
    this.#session = undefined
    await session.end(result, reason)
  }

  /** There is no target: the viewer is shown why, and leaves. */
  async #fail(reason: string): Promise<void> {
    if (this.#isLeaving) return
    const display = this.#begin({ ...OWN_SIZE, format: RGB888, name: this.#options.bastion }, true)
    const { user } = this.#options.identity
    await display.ask(
      failureMessage({ bastion: this.#options.bastion, user, heading: 'No session', text: reason }, OWN_SIZE),
    )
    await this.#leave('failure')
  }

  /** Why the session has ended, as long as somebody reads it. */
  #lastWords({ size, format, encodings }: LastWords, reason: string): void {
    const { pipe, bastion, identity } = this.#options
    const display = new LocalDisplay({ pipe, size, format, mayResize: false })
    this.#display = display
    this.#viewer.onMessage = (message) => display.message(message)
    pipe.onDrain = () => display.drained()
    display.message({ kind: 'set-encodings', encodings: [...encodings] })
    display.message({ kind: 'update-request', isIncremental: false, x: 0, y: 0, ...size })
    const words = { bastion, user: identity.user, heading: 'The session has ended', text: reason }
    display.show(failureMessage(words, size), () => end(pipe))
  }

  #viewerGone(): void {
    this.#abandon.abort('the viewer has gone')
    void this.#leave('success')
  }

  #broken(error: Error): void {
    if (this.#relay) this.#relay.broken(error)
    else void this.#leave('failure', error.message)
  }

  /** Nothing goes on. Never rejects. */
  async #leave(result: SessionResult, reason?: string): Promise<void> {
    if (this.#isLeaving) return
    this.#isLeaving = true
    const { pipe, gate, identity, onGone } = this.#options
    this.#abandon.abort(reason ?? 'the viewer has gone')
    this.#display?.close()
    const target = this.#relay ? undefined : this.#opened?.target.pipe
    if (target) {
      target.onClose = undefined
      target.destroy()
    }
    if (!this.#relay) end(pipe)
    try {
      if (this.#session) await this.#over(this.#session, result, reason)
      await gate.leave({ identity: identity.token })
    } catch {
      // The broker has gone away: there is nobody left to tell.
    } finally {
      onGone()
    }
  }
}
