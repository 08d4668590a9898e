/** Relays between viewer and target: both directions, back-pressure, the time limits, and the end. */
import { Buffer } from 'node:buffer'
import { encodePointer } from '../../../recordings/decode/graphics/events.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { LAST_UPDATE_MS } from '../../desktop/limits.ts'
import { StallWatch } from '../../desktop/stall-watch.ts'
import { balance } from '../../net/balance.ts'
import type { ByteStream } from '../../net/byte-stream.ts'
import { end } from '../../net/disconnect.ts'
import { Sender } from '../../net/sender.ts'
import { ProvenOutput } from '../../session/proven-output.ts'
import type { SessionResult } from '../../session/session.ts'
import { TimeLimits } from '../../session/time-limits.ts'
import { encodeSetPixelFormat } from '../codec/client-encoder.ts'
import { isReadable, type PixelFormat, samePixelFormat } from '../codec/pixel-format.ts'
import type { ServerInit } from '../codec/server-init.ts'
import type { InputMessage } from '../guests/guest.ts'
import { SharedSession } from '../guests/shared-session.ts'
import { GraphicsTap } from '../guests/tap.ts'
import type { ViewerState } from '../local/display.ts'
import { Downstream } from './downstream.ts'
import { PictureWatch } from './picture-watch.ts'
import type { VncSession } from './session.ts'
import { desktopName } from './texts.ts'
import { Upstream } from './upstream.ts'
import type { Viewer } from './viewer.ts'

/** The state of a viewer whose session has ended. */
export interface LastWords {
  size: { width: number; height: number }
  format: PixelFormat
  encodings: readonly number[]
}

export interface RelayOptions {
  viewer: Viewer
  /** The viewer's state before the relay. */
  state: ViewerState
  target: { stream: ByteStream; init: ServerInit }
  session: VncSession
  /**
   * Called when the session has ended and the viewer can show the reason. The callee closes its connection.
   */
  onLastWords: (viewer: LastWords, reason: string) => void
  /** Called when both connections are closed, and the session is sealed and reported. */
  onClosed: () => void
}

export class VncRelay {
  /** The session that guests join. */
  readonly room: SharedSession
  readonly #options: RelayOptions
  readonly #viewer: ByteStream
  readonly #target: ByteStream
  readonly #session: VncSession
  /** The desktop's name, with its guests. */
  #name: string
  readonly #downstream: Downstream
  readonly #upstream: Upstream
  readonly #limits: TimeLimits
  readonly #stall: StallWatch
  readonly #watch: PictureWatch
  /** Present if output waits for its recording. */
  readonly #proven: ProvenOutput | undefined
  #ended = false
  /**
   * Set while the end waits for the last picture. `look` ends the session if it is complete, `close` at once.
   */
  #ending: { look(): void; close(): void } | undefined
  /** Set if the viewer has gone, or rejects the last picture: it is for the recording alone. */
  #isAlone = false
  /** A format that the viewer has requested, and the target was not asked for. */
  #unseenIn: PixelFormat | undefined

  constructor(options: RelayOptions) {
    const { viewer, state, target, session } = options
    this.#options = options
    this.#viewer = viewer.stream
    this.#target = target.stream
    this.#session = session
    this.#name = desktopName(target.init.name, session.isRecorded)
    const toViewer = new Sender(viewer.stream)
    const toTarget = new Sender(target.stream)
    const output = session.isStrict ? provenClient(viewer.stream) : undefined
    this.#proven = output && new ProvenOutput({ client: output, flush: () => session.recording.flush() })
    const { recorder, clipboard, isRecorded } = session
    const init = { ...target.init, format: state.format }
    this.#watch = new PictureWatch({
      ask: () => this.#upstream.askAgain(),
      onChange: () => this.#balance(),
    })
    this.#downstream = new Downstream(init, {
      send: (bytes) => {
        if (this.#isAlone) return
        session.bytesOut += bytes.length
        if (output) output.send(bytes)
        else toViewer.send(bytes)
      },
      recorder,
      clipboard,
      isRecorded,
      onExtension: (extension) => viewer.extended(extension),
      sendFence: (flags, payload) => this.#upstream.sendFence(flags, payload),
      watch: this.#watch,
      onResized: (isFollowed) => {
        this.#upstream.resized()
        if (!isFollowed) this.#lost('the size of the desktop has changed, which the viewer cannot follow')
      },
      onUpdate: () => {
        this.#stall.updated()
        this.#upstream.updateEnded()
        // The update's last bytes are forwarded first.
        if (this.#ending) queueMicrotask(this.#ending.look)
      },
    })
    this.#upstream = new Upstream({
      send: (bytes) => {
        session.bytesIn += bytes.length
        toTarget.send(bytes)
      },
      downstream: this.#downstream,
      recorder,
      clipboard,
      isViewOnly: session.vnc.viewOnly,
      get isSuspended() {
        return session.suspension.isOn
      },
      onPointer: (participant, x, y, buttons) =>
        this.room.pointer(encodePointer({ participant, x, y, buttons })),
      onAsked: () => this.#stall.asked(),
      watch: this.#watch,
      onSign: () => {
        session.signs += 1
      },
    })
    this.room = this.#newRoom()
    session.onGuest = (invitation, change) => this.room.change(invitation, change)
    this.#limits = new TimeLimits(session.options, {
      get signs() {
        return session.signs
      },
      warn: (text) => this.#tell(text),
      stop: (reason) => this.#stop('failure', reason),
    })
    this.#stall = new StallWatch({
      isOwed: () => this.#downstream.isInMessage && !this.#target.paused,
      isPaused: () => this.#target.paused,
      onStall: (reason) => this.#over('failure', reason),
    })
    recorder.open(target.init, init.format)
    if (output) output.onDrain = () => this.#balance()
    this.#viewer.onDrain = this.#target.onDrain = () => {
      toViewer.recycle()
      toTarget.recycle()
      this.#balance()
    }
    session.onDrain = () => this.#balance()
    this.#viewer.onClosed = () => this.#over('success')
    this.#target.onClosed = () => this.#targetGone()
    session.onStop = (result, reason) => this.#stop(result, reason)
    session.onTell = (text) => this.#tell(text)
    session.suspension.onChange = () => this.#tell(session.suspension.text)
    session.suspension.onBegin = () => {
      if (this.#ended || this.#ending) return
      this.#upstream.release()
      this.room.release()
    }
    viewer.onMessage = (message) => {
      if (this.#ended || this.#ending) return
      if (message.kind === 'set-pixel-format' && !this.#isSeenIn(message.format)) return
      this.#upstream.take(message)
    }
    viewer.onRead = () => {
      if (!this.#ended) this.#upstream.flush()
      this.#balance()
    }
    this.#target.onData = (chunk) => this.#fromTarget(chunk)
    this.#begin(state, target.init)
  }

  #newRoom(): SharedSession {
    const downstream = this.#downstream
    const upstream = this.#upstream
    const name = this.#name
    return new SharedSession({
      get size() {
        return { width: downstream.width, height: downstream.height }
      },
      name,
      isRecorded: this.#session.isRecorded && this.#session.vnc.sessionNotice,
      share: (post) => {
        downstream.tap = new GraphicsTap(
          { post, stream: downstream, askForAll: () => this.#askForAll() },
          downstream.format,
        )
        upstream.share(true)
        this.#askForAll()
        return downstream.tap
      },
      unshare: () => {
        downstream.tap = undefined
        if (!this.#ended) upstream.share(false)
      },
      input: (participant, message) => this.#guestInput(participant, message),
      rename: (shown) => {
        this.#name = shown
        if (!this.#ended && upstream.takesName) downstream.title(shown)
      },
      record: (entry) => this.#session.recorder.participant(entry),
    })
  }

  #askForAll(): void {
    if (this.#ended) return
    this.#upstream.requestAll()
    this.#upstream.flush()
  }

  /** Handles a guest's input: never queued, but dropped while the target or the recording is congested. */
  #guestInput(participant: number, message: InputMessage): void {
    if (this.#ended || this.#ending || this.#target.congested || this.#session.isFull) return
    if (this.#watch.isUnseen) return
    this.#upstream.input(participant, message)
  }

  /**
   * Returns true if the recording is legible in that format, or the target has no better one; else ends the
   * session.
   */
  #isSeenIn(format: PixelFormat): boolean {
    if (!this.#session.isRecorded || isReadable(format)) return true
    if (samePixelFormat(format, this.#options.target.init.format)) return true
    this.#unseenIn = format
    this.#stop(
      'failure',
      'the viewer asks for so few colours that the recording could not be read: 64 are enough',
    )
    return false
  }

  /** Called when the viewer has violated the protocol. */
  broken({ message }: Error): void {
    this.#over('failure', message)
  }

  /** Sends the viewer's earlier requests to the target. */
  #begin({ size, format, encodings, request, wish, cutText }: ViewerState, init: ServerInit): void {
    const { stopped } = this.#session
    if (stopped) this.#over(stopped.result, stopped.reason)
    else if (this.#viewer.closed) this.#over('success')
    else if (this.#target.closed) this.#targetGone()
    if (this.#ended || !this.#isSeenIn(format)) return
    if (!samePixelFormat(format, init.format)) this.#target.write(encodeSetPixelFormat(format))
    this.#upstream.setEncodings(encodings)
    if (size.width !== init.width || size.height !== init.height) this.#downstream.tellSize(encodings)
    if (request) this.#upstream.requestAll()
    if (wish) this.#upstream.take({ kind: 'set-desktop-size', ...wish, screens: [...wish.screens] })
    if (cutText) this.#upstream.take({ kind: 'cut-text', text: cutText })
    this.#upstream.flush()
    this.#balance()
  }

  #fromTarget(chunk: Uint8Array): void {
    if (this.#ended) return
    this.#stall.received(chunk.length)
    try {
      this.#downstream.receive(chunk)
    } catch (error) {
      // The stream cannot be read any further.
      if (error instanceof MalformedError)
        this.#closeNow(`the target broke the RFB protocol: ${error.message}`)
      else this.#closeNow('internal error')
      return
    }
    this.#upstream.flush()
    this.#balance()
  }

  /** Shows a line of the bastion's own in the title of the viewer's window. */
  #tell(text: string): void {
    if (!this.#ended && this.#upstream.takesName) this.#downstream.title(`${this.#name}: ${text}`)
  }

  /**
   * Reads each side only while the other and the recording accept data, the viewer only while its activity is
   * seen.
   */
  #balance(): void {
    if (this.#ended) return
    const viewer = this.#viewer
    const target = this.#target
    if (this.#ending) this.#isAlone ||= viewer.closed || viewer.congested
    if (this.#isAlone) {
      target.paused = this.#session.isFull
      return
    }
    const isFull = this.#session.isFull || (this.#proven?.isFull ?? false)
    balance(viewer, target, isFull, this.#watch.isUnseen)
    this.#watch.withheld(target.paused)
  }

  #targetGone(): void {
    const { failure } = this.#target
    this.#closeNow(
      failure ? `the target's connection broke: ${failure.message}` : 'the target closed the connection',
    )
  }

  /**
   * Stops the session on a request from anyone but the target. An update in progress is completed first,
   * since nothing else can be drawn inside it.
   */
  #stop(result: SessionResult, reason: string): void {
    this.#over(result, reason, this.#downstream.isInUpdate ? LAST_UPDATE_MS : 0)
  }

  /** Ends the session when the last activity has had its time to be seen, or `rest` milliseconds later. */
  #over(result: SessionResult, reason?: string, rest = 0): void {
    if (this.#ended) return
    if (this.#ending) {
      this.#balance()
      return
    }
    const wait = Math.max(rest, this.#watch.lookLeft)
    if (wait === 0 || this.#target.closed || this.#session.recording.hasFailed) {
      this.#close(result, reason)
      return
    }
    const close = () => {
      clearTimeout(timer)
      this.#close(result, reason)
    }
    const timer = setTimeout(close, wait)
    const look = () => {
      if (!this.#downstream.isInUpdate && this.#watch.lookLeft === 0) close()
    }
    this.#ending = { look, close }
    this.#balance()
    this.#watch.hurry()
  }

  /** Ends the session now, because the target sends nothing more. */
  #closeNow(reason: string): void {
    if (this.#ending) this.#ending.close()
    else this.#close('failure', reason)
  }

  /** Ends the session because the viewer cannot show anything more. Called in the middle of a message. */
  #lost(reason: string): void {
    this.#isAlone = true
    queueMicrotask(() => this.#over('failure', reason))
  }

  #close(result: SessionResult, reason: string | undefined): void {
    if (this.#ended) return
    this.#ended = true
    this.#limits.stop()
    this.#stall.stop()
    this.#watch.stop()
    this.#downstream.fences.stop()
    this.#upstream.stop()
    if (this.#proven && this.#session.recording.hasFailed) this.#proven.destroy()
    this.room.close(reason ?? 'the session has ended')
    this.#session.recorder.close()
    this.#target.onClosed = undefined
    end(this.#target)
    const viewer = this.#viewer
    const viewerClosed = new Promise<void>((resolve) => {
      viewer.onClosed = resolve
      if (viewer.closed) resolve()
    })
    const leave = () => this.#leave(reason)
    if (this.#proven) void this.#proven.flushAll().then(leave)
    else leave()
    Promise.allSettled([this.#session.close(result, reason), viewerClosed]).then(this.#options.onClosed)
  }

  /** Shows the reason to the viewer. Impossible inside an update, because its rest will not arrive. */
  #leave(reason: string | undefined): void {
    const { width, height, isInUpdate } = this.#downstream
    const format = this.#unseenIn ?? this.#upstream.viewerFormat
    if (reason === undefined || isInUpdate || this.#isAlone || this.#viewer.closed) {
      end(this.#viewer)
      return
    }
    this.#viewer.paused = false
    this.#options.onLastWords(
      { size: { width, height }, format, encodings: this.#upstream.encodings },
      reason,
    )
  }
}

/** Returns the viewer as the output that waits for its recording. */
function provenClient(stream: ByteStream) {
  const client = {
    onSend: undefined as ((payload: Uint8Array) => void) | undefined,
    onDrain: undefined as (() => void) | undefined,
    sendNow: (payload: Uint8Array) => stream.write(payload),
    send(bytes: Uint8Array): void {
      if (client.onSend) client.onSend(bytes)
      else client.sendNow(Buffer.from(bytes))
    },
  }
  return client
}
