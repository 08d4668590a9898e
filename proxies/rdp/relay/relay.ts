/**
 * The relay between client and target: both directions of data, back-pressure with the recording, time
 * limits, redirection to another target, and the end.
 */

import { MalformedError } from '../../bytes/malformed.ts'
import { LAST_UPDATE_MS } from '../../desktop/limits.ts'
import { end } from '../../net/disconnect.ts'
import type { SessionResult } from '../../session/session.ts'
import { TimeLimits } from '../../session/time-limits.ts'
import { TargetError } from '../../wording/errors.ts'
import type { RdpTarget } from '../back/target.ts'
import type { Side } from '../channels/direction.ts'
import type { ChannelPlan } from '../channels/plan.ts'
import type { Desktop } from '../codec/capabilities.ts'
import { buildFastPathInput, type InputEvent } from '../codec/input.ts'
import { endsLicensing, parseLicense } from '../codec/licensing.ts'
import type { Redirection } from '../codec/redirection.ts'
import { parseSecured } from '../codec/security-header.ts'
import { ERROR_INFO } from '../codec/session-pdus.ts'
import { UPDATE } from '../codec/updates.ts'
import type { BackVisitor } from '../connection/back-connection.ts'
import type { SessionFilter, SessionVisitor } from '../connection/session-filter.ts'
import type { RdpClient } from '../front/client.ts'
import { Overlay } from '../local/overlay.ts'
import { drawFor, takeAway } from './client-desktop.ts'
import { DesktopWatch } from './desktop-watch.ts'
import { endByTarget, endOfConnection, type SessionEnd } from './ends.ts'
import { Flow } from './flow.ts'
import { LastEffect } from './last-effect.ts'
import { Pressed } from './pressed.ts'
import { SendQueue } from './send-queue.ts'
import { sentOn } from './sent-on.ts'
import type { RdpSession } from './session.ts'
import { SessionChannels } from './session-channels.ts'
import { TargetSide } from './target-side.ts'

export interface RelayOptions {
  client: RdpClient
  target: RdpTarget
  session: RdpSession
  plan: ChannelPlan
  /** As Opened.redirect. */
  redirect: (redirection: Redirection, signal: AbortSignal) => Promise<RdpTarget>
  /**
   * The session has ended for this reason, which can be shown to the client. `code` is for a following Set
   * Error Info, `desktop` the target's last one, now deactivated. The receiver closes the connection.
   */
  onLastWords: (desktop: Desktop | undefined, reason: string, code: number) => void
  /** Both sides are closed, and the session is sealed and accounted for. */
  onClosed: () => void
}

export class RdpRelay {
  readonly #options: RelayOptions
  readonly #client: RdpClient
  readonly #session: RdpSession
  readonly #sendQueue: SendQueue
  #channels: SessionChannels
  readonly #limits: TimeLimits
  /** Lines of the bastion over the desktop. */
  readonly #overlay: Overlay
  readonly #desktop: DesktopWatch
  readonly #flow: Flow
  readonly #effect = new LastEffect()
  readonly #pressed = new Pressed()
  /** The line about suspended input, while it is shown. */
  #heldText: string | undefined
  #side: TargetSide
  #takesFastInput = false
  /** The target's last Set Error Info. */
  #errorInfo: number = ERROR_INFO.none
  #isRedirecting = false
  /** The target's licensing, relayed to the client, has ended. */
  #hasEndedLicensing = false
  /** A message from the target is being processed: an end waits until it is complete. */
  #isReceiving = false
  #ending: (() => void) | undefined
  readonly #abandon = new AbortController()
  #ended = false
  /** A scheduled end of the session, after the last input had time to show its effect. */
  #closing: { timer: NodeJS.Timeout; from: number; over: () => void } | undefined

  constructor(options: RelayOptions) {
    const { client, target, session } = options
    this.#options = options
    this.#client = client
    this.#session = session
    this.#sendQueue = new SendQueue({
      client,
      flush: session.isStrict ? () => session.recording.flush() : undefined,
      isWithinUpdate: () => this.#filter.isWithinUpdate,
      onDrain: () => this.#balance(),
    })
    this.#channels = this.#newChannels()
    this.#overlay = new Overlay({
      isBusy: () =>
        this.#isIdle || !this.#filter.isConfirmed || this.#filter.isWithinUpdate || client.stream.congested,
      // Not recorded: it is no picture of the target.
      draw: (update) => drawFor(client, this.#filter, update),
      refresh: (area) => this.#side.refresh(area),
    })
    this.#limits = new TimeLimits(session.options, {
      get signs() {
        return session.signs
      },
      warn: (text) => this.#overlay.show(text),
      stop: (reason) => this.#close('failure', reason),
    })
    this.#desktop = new DesktopWatch({
      overlay: this.#overlay,
      isOwed: () => this.#filter.isOwed && !this.#target.stream.paused,
      isPaused: () => this.#target.stream.paused,
      onStall: (reason) => this.#over('failure', reason),
    })
    client.onBroken = ({ message }) => this.#close('failure', message)
    client.onClosed = () => this.#close('success')
    client.onRead = () => {
      this.#side.flush()
      this.#balance()
    }
    session.onDrain = () => this.#balance()
    session.onStop = (result, reason) => this.#close(result, reason)
    session.onTell = (text) => {
      if (!this.#ended) this.#overlay.show(text)
    }
    session.suspension.onBegin = () => this.#releasePressed()
    session.suspension.onChange = () => this.#suspensionChanged()
    this.#flow = new Flow({
      client,
      session,
      sendQueue: this.#sendQueue,
      side: () => this.#side,
      onChange: () => this.#balance(),
    })
    this.#side = this.#attach(target)
    this.#begin()
  }

  /** Receives the client's messages from now on. */
  #listen(): void {
    this.#client.handler = {
      license: (data) => this.#target.connection.sendIo(data),
      io: (data) => this.#fromClient(data),
      fastPath: (pdu) => this.#fastPathFromClient(pdu),
      channel: (index, chunk) => {
        if (!this.#isIdle) this.#channels.fromClient(index, chunk)
      },
    }
  }

  #newChannels(): SessionChannels {
    const { session, plan } = this.#options
    return new SessionChannels({
      session,
      plan,
      flags: this.#client.info.flags,
      send: (to, index, chunk) => this.#sendChannel(to, index, chunk),
    })
  }

  #begin(): void {
    const { stopped } = this.#session
    if (stopped) this.#over(stopped.result, stopped.reason)
    else if (this.#client.stream.closed) this.#over('success')
    else {
      this.#channels.tellDenied()
      this.#take(this.#target)
    }
  }

  /** Receives the target's messages; none arrives before `#take`. */
  #attach(target: RdpTarget): TargetSide {
    return new TargetSide({
      target,
      visitor: this.#visitor(),
      onData: (chunk) => this.#fromTarget(chunk),
      onDrain: () => this.#balance(),
      onClosed: () => this.#targetGone(),
      onRefused: (reason) => this.#close('failure', reason),
    })
  }

  get #target(): RdpTarget {
    return this.#side.target
  }

  get #filter(): SessionFilter {
    return this.#side.filter
  }

  /** Receives the messages kept by the target, then new ones. */
  #take(target: RdpTarget): void {
    if (target.stream.closed) {
      this.#targetGone()
      return
    }
    this.#listen()
    target.watch?.start()
    this.#desktop.begin()
    this.#guarded(() => {
      target.visitor = this.#listener()
    })
  }

  /** The client's data is dropped, finally or for now. */
  get #isIdle(): boolean {
    return this.#isOver || this.#closing !== undefined || this.#isRedirecting
  }

  /** The target's data is dropped. */
  get #isDeaf(): boolean {
    return this.#isOver || this.#isRedirecting
  }

  get #isOver(): boolean {
    return this.#ended || this.#ending !== undefined
  }

  #listener(): BackVisitor {
    const client = this.#client
    return {
      license: (data) => {
        this.#hasEndedLicensing = endsLicensing(parseLicense(parseSecured(data).body))
        this.#sendIo(data)
      },
      licensed: () => {
        if (client.isLicensed) return
        if (this.#hasEndedLicensing) client.startSession()
        else client.license()
      },
      io: (data) => {
        if (this.#isDeaf) return
        for (const share of this.#filter.fromTarget(data)) if (!this.#isDeaf) this.#sendIo(share)
      },
      fastPath: (pdu) => {
        const kept = this.#isDeaf ? undefined : this.#filter.fastPathFromTarget(pdu)
        if (kept && !this.#isDeaf) this.#sendFastPath(kept)
      },
      channel: (index, chunk) => {
        if (!this.#isDeaf) this.#channels.fromTarget(index, chunk)
      },
      disconnect: () => {
        if (!this.#isDeaf) this.#endAs(endByTarget(this.#errorInfo))
      },
    }
  }

  #visitor(): SessionVisitor {
    const session = this.#session
    return {
      desktop: (desktop) => {
        this.#desktop.offered()
        this.#flow.offered(desktop)
        session.recorder.desktop(desktop)
      },
      deactivated: () => {
        this.#desktop.deactivated()
        this.#flow.deactivated()
      },
      confirmed: () => {
        this.#desktop.confirmed(this.#filter.desktop)
        this.#flow.confirmed()
        this.#channels.begin()
      },
      skips: () => this.#flow.skips,
      update: (update, isSkipped) => {
        session.recorder.update(update)
        if (update.code === UPDATE.bitmap) this.#desktop.painted()
        this.#flow.drawn(update, isSkipped)
        if (!this.#side.isIn) this.#target.watch?.update(update)
      },
      input: (events) => this.#input(events),
      sessionInfo: (info) => this.#target.watch?.sessionInfo(info),
      errorInfo: (code) => {
        this.#errorInfo = code
        this.#target.watch?.errorInfo(code)
      },
      redirected: (redirection) => void this.#redirect(redirection),
    }
  }

  /** Reports whether the input may be sent to the target. */
  #input(events: readonly InputEvent[]): boolean {
    const session = this.#session
    session.signs += 1
    if (session.rdp.viewOnly || session.suspension.isOn) return false
    // The state of locks is no typing, and clients send it only once, when the desktop starts.
    if (!this.#side.isIn && events.some(({ kind }) => kind !== 'locks')) return false
    session.recorder.input(events)
    this.#pressed.note(events)
    this.#effect.act()
    return true
  }

  /** Forwards held input that need not wait any more. */
  #release(): void {
    if (this.#isIdle) return
    try {
      for (const { isFast, bytes } of this.#flow.released()) {
        if (isFast) this.#fastPathFromClient(bytes)
        else this.#fromClient(bytes)
      }
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error
      this.#close('failure', `the client broke the RDP protocol: ${error.message}`)
    }
    this.#side.flush()
  }

  /** Input of a suspended client never waits: it is dropped. */
  #holds(isFast: boolean, pdu: Uint8Array): boolean {
    return !this.#session.suspension.isOn && this.#flow.holds(isFast, pdu)
  }

  /** Releases the keys and buttons that the client holds, before its input is suspended. */
  #releasePressed(): void {
    this.#flow.dropInput()
    const events = this.#pressed.release()
    // A client that has never used the fast path may have a target without it.
    if (this.#isIdle || events.length === 0 || !this.#takesFastInput) return
    this.#session.recorder.input(events)
    this.#target.connection.sendFastPath(buildFastPathInput(events))
    this.#side.flush()
  }

  /** Shows that input is suspended for as long as it is. */
  #suspensionChanged(): void {
    if (this.#ended) return
    const { suspension } = this.#session
    if (this.#heldText !== undefined) this.#overlay.show(this.#heldText, 0)
    this.#heldText = suspension.isOn ? suspension.text : undefined
    this.#overlay.show(suspension.text, suspension.isOn ? Number.POSITIVE_INFINITY : undefined)
    if (suspension.isOn) return
    try {
      this.#channels.goOn()
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error
      this.#close('failure', `the client broke the RDP protocol: ${error.message}`)
    }
    this.#side.flush()
  }

  #fromClient(data: Uint8Array): void {
    if (this.#isIdle || this.#holds(false, data)) return
    for (const share of this.#filter.fromClient(data)) {
      this.#session.bytesIn += share.length
      this.#target.connection.sendIo(share)
    }
  }

  #fastPathFromClient(pdu: Uint8Array): void {
    if (this.#isIdle || this.#holds(true, pdu)) return
    this.#takesFastInput = true
    const kept = this.#filter.fastPathFromClient(pdu)
    if (!kept) return
    this.#session.bytesIn += kept.length
    this.#target.connection.sendFastPath(kept)
  }

  #sendIo(data: Uint8Array): void {
    this.#session.bytesOut += data.length
    this.#client.sendIo(data)
  }

  #sendFastPath(pdu: Uint8Array): void {
    this.#session.bytesOut += pdu.length
    this.#client.sendFastPath(pdu)
  }

  #sendChannel(to: Side, index: number, chunk: Uint8Array): void {
    if (to === 'client') {
      this.#session.bytesOut += chunk.length
      this.#client.sendChannel(index, chunk)
    } else {
      this.#session.bytesIn += chunk.length
      this.#target.connection.sendChannel(index, chunk)
    }
  }

  #fromTarget(chunk: Uint8Array): void {
    if (this.#ended || this.#isRedirecting) return
    this.#desktop.received(chunk.length)
    this.#guarded(() => this.#target.receive(chunk))
  }

  /** Runs `receive` with data from the target. */
  #guarded(receive: () => void): void {
    this.#isReceiving = true
    try {
      receive()
    } catch (error) {
      this.#broken(error)
    }
    this.#isReceiving = false
    this.#session.recorder.flush()
    this.#ending?.()
    this.#sendQueue.flush()
    this.#side.flush()
    const closing = this.#closing
    if (closing && closing.from <= performance.now() && !this.#filter.isWithinUpdate) closing.over()
    this.#balance()
  }

  #broken(error: unknown): void {
    if (error instanceof MalformedError)
      this.#over('failure', `the target broke the RDP protocol: ${error.message}`)
    else this.#over('failure', error instanceof TargetError ? error.message : 'internal error')
  }

  #balance(): void {
    if (this.#ended || this.#isRedirecting || this.#isReceiving) return
    if (this.#closing && this.#client.stream.closed) {
      this.#flow.part()
      return
    }
    this.#flow.look()
    this.#release()
    this.#flow.balance()
  }

  /** Closes the current target and starts again with the one it redirects to. */
  async #redirect(redirection: Redirection): Promise<void> {
    if (this.#isIdle) return
    this.#isRedirecting = true
    this.#desktop.deactivated()
    this.#flow.deactivated(true)
    this.#side.close()
    const { client, session, redirect } = this.#options
    const { signal } = this.#abandon
    try {
      const target = await sentOn({ client, filter: this.#filter, session, redirection, redirect, signal })
      this.#channels.redirect()
      this.#channels = this.#newChannels()
      this.#errorInfo = ERROR_INFO.none
      this.#side = this.#attach(target)
      this.#isRedirecting = false
      this.#take(target)
    } catch (error) {
      this.#broken(error)
    }
  }

  #targetGone(): void {
    const { failure } = this.#target.stream
    this.#endAs(endOfConnection(this.#errorInfo, failure, this.#desktop.isBlank))
  }

  #endAs({ result, reason, code }: SessionEnd): void {
    this.#over(result, reason, code)
  }

  /** Milliseconds for which the last input may still have an effect. */
  get #unseen(): number {
    return this.#session.recording.hasFailed || this.#isRedirecting ? 0 : this.#effect.left
  }

  /**
   * Schedules the end for every cause but the target: first the effect of the client's last input is
   * recorded, and an update in progress is completed, since nothing else can be drawn inside it.
   */
  #close(result: SessionResult, reason?: string): void {
    if (this.#isOver || this.#closing) return
    const over = () => this.#over(result, reason)
    const unseen = this.#unseen
    const isWithin = this.#filter.isWithinUpdate && !this.#client.stream.closed
    if (this.#session.recording.hasFailed || (!isWithin && unseen === 0)) {
      over()
      return
    }
    const timer = setTimeout(over, isWithin ? Math.max(unseen, LAST_UPDATE_MS) : unseen)
    this.#closing = { timer, from: performance.now() + unseen, over }
    this.#balance()
  }

  #over(result: SessionResult, reason?: string, code: number = ERROR_INFO.administratorDisconnect): void {
    if (this.#isOver && !(this.#ending && !this.#isReceiving)) return
    if (this.#isReceiving) {
      this.#ending = () => this.#over(result, reason, code)
      return
    }
    const closing = this.#closing
    if (closing) {
      // Keeps the reason of the scheduled end.
      this.#closing = undefined
      clearTimeout(closing.timer)
      if (!this.#session.recording.hasFailed) {
        closing.over()
        return
      }
    }
    this.#ending = undefined
    this.#ended = true
    this.#abandon.abort(reason ?? 'the session has ended')
    this.#limits.stop()
    this.#desktop.stop()
    this.#flow.stop()
    if (this.#session.isStrict && this.#session.recording.hasFailed) this.#sendQueue.destroy()
    this.#channels.close()
    this.#session.recorder.close()
    if (!this.#isRedirecting) this.#side.close()
    const client = this.#client
    const clientClosed = new Promise<void>((resolve) => {
      client.onClosed = resolve
      if (client.stream.closed) resolve()
    })
    void this.#sendQueue.flushAll().then(() => this.#leave(reason, code))
    Promise.allSettled([this.#session.close(result, reason), clientClosed]).then(this.#options.onClosed)
  }

  /** Shows the reason unless an update is incomplete: nothing else can be drawn inside it. */
  async #leave(reason: string | undefined, code: number): Promise<void> {
    const client = this.#client
    const mayShow = reason !== undefined && !this.#sendQueue.isWithinUpdate && !client.stream.closed
    if (!mayShow || !(await takeAway(client, this.#filter))) {
      client.sendDisconnect()
      end(client.stream)
      return
    }
    client.stream.paused = false
    this.#options.onLastWords(this.#filter.desktop, reason, code)
  }
}
