/**
 * A target that shows only a terminal: its socket, the protocol's side of it (wire.ts), and the login before
 * the user's first key (login-dialog.ts).
 */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import type { UrgentData } from '../../src/contract/urgent-data.ts'
import { MalformedError } from '../bytes/malformed.ts'
import { KEEPALIVE_MS, LINGER_MS, SEND_HIGH_WATER } from '../net/limits.ts'
import { ReadTurn } from '../net/read-turns.ts'
import { takeReads } from '../net/shared-read.ts'
import type { LoginDialog, LoginStep } from './login-dialog.ts'
import type { Terminal, TerminalSize, Wire, WireSurroundings } from './wire.ts'

/** Silence after which the target's last line counts as a prompt. */
const SILENCE_MS = 200
/** Silence after which any last line counts as the end of the target's output. */
const LONG_SILENCE_MS = 3_000

export interface TerminalTargetOptions {
  socket: Socket
  urgent: UrgentData
  /** The target's name as the user knows it. */
  name: string
  /** The protocol's name for people. */
  protocol: string
  wire: (around: WireSurroundings) => Wire
  /** Absent if the user logs in. */
  login?: LoginDialog | undefined
  loginTimeoutMs: number
}

export class TerminalTarget {
  /** Receives output. Valid during the call only. */
  onOutput: ((bytes: Uint8Array) => void) | undefined
  /** Called once, when typed input goes to the target from now on. */
  onReady: (() => void) | undefined
  /** Called when `congested` has become false. */
  onDrain: (() => void) | undefined
  /** Called once, when the connection has closed; `failure` has the reason unless it closed in order. */
  onClosed: ((failure: string | undefined) => void) | undefined

  readonly protocol: string
  readonly #options: TerminalTargetOptions
  readonly #socket: Socket
  readonly #wire: Wire
  #login: LoginDialog | undefined
  #silence: NodeJS.Timeout | undefined
  #expiry: NodeJS.Timeout | undefined
  #hasStarted = false
  #paused = false
  #isUrgent = false
  readonly #turn = new ReadTurn(() => this.#flow())
  #failure: string | undefined
  #ended = false

  constructor(options: TerminalTargetOptions) {
    const { socket, urgent } = options
    this.#options = options
    this.#socket = socket
    this.protocol = options.protocol
    this.#login = options.login
    this.#wire = options.wire({
      write: (bytes) => this.#write(bytes),
      writeUrgent: (bytes) => urgent.write(socket, bytes),
      output: (bytes) => this.#output(bytes),
    })
    socket.setKeepAlive(true, KEEPALIVE_MS)
    takeReads(socket, (view) => this.#read(view))
    socket.on('drain', () => {
      this.#flow()
      this.onDrain?.()
    })
    // Any error ends the connection.
    socket.on('error', () => undefined)
    socket.on('close', () => this.#closed())
    this.#flow()
  }

  /** Begins the session with the user's terminal. */
  start(terminal: Terminal): void {
    this.#hasStarted = true
    this.#wire.start(terminal)
    if (this.#login) {
      this.#expiry = setTimeout(() => this.#take(this.#login?.expired()), this.#options.loginTimeoutMs)
    } else {
      this.onReady?.()
    }
    this.#flow()
  }

  /** Sends typed input; not before `onReady`. Copies it: it may be a view of a buffer that all sessions share. */
  send(bytes: Uint8Array): void {
    this.#wire.send(Buffer.from(bytes))
  }

  resize(size: TerminalSize): void {
    this.#wire.resize(size)
  }

  /** Sends a break. Returns false if this protocol has none. */
  break(): boolean {
    return this.#wire.break()
  }

  interrupt(): void {
    this.#wire.interrupt()
  }

  /** While paused, the target is not read. */
  set paused(paused: boolean) {
    this.#paused = paused
    this.#flow()
  }

  get congested(): boolean {
    return this.#socket.writableLength > SEND_HIGH_WATER
  }

  /** Sends the queued bytes and closes. */
  close(): void {
    this.#login = undefined
    this.#stopTimers()
    this.#socket.end()
    // A target that does not close its side, or does not read, would keep the connection open.
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }

  destroy(): void {
    this.#stopTimers()
    this.#socket.destroy()
  }

  #flow(): void {
    const mayRead = this.#hasStarted && !this.#paused && !this.#turn.isResting
    // A target that negotiates without reading the replies is not read either.
    if (!mayRead || this.congested) this.#socket.pause()
    else this.#socket.resume()
  }

  #write(bytes: Uint8Array): void {
    if (this.#socket.writable) this.#socket.write(bytes)
  }

  #read(view: Uint8Array): void {
    if (this.#failure !== undefined) return
    try {
      this.#wire.receive(view, this.#isUrgent)
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error
      this.#fail(`${this.#options.name} broke the ${this.protocol} protocol: ${error.message}`)
      return
    }
    this.#isUrgent = this.#options.urgent.isNext(this.#socket)
    this.#turn.spend(view.length)
    this.#flow()
  }

  #output(bytes: Uint8Array): void {
    if (!this.#login) {
      this.onOutput?.(bytes)
      return
    }
    this.#show(this.#login.receive(bytes))
    const { flaw } = this.#login
    if (flaw === undefined) this.#awaitSilence(SILENCE_MS)
    else this.#fail(flaw)
  }

  #show(bytes: Uint8Array): void {
    if (bytes.length > 0) this.onOutput?.(bytes)
  }

  #awaitSilence(ms: typeof SILENCE_MS | typeof LONG_SILENCE_MS): void {
    clearTimeout(this.#silence)
    this.#silence = setTimeout(() => {
      const step = this.#login?.silent(ms === LONG_SILENCE_MS)
      if (step) this.#take(step)
      else if (ms === SILENCE_MS) this.#awaitSilence(LONG_SILENCE_MS)
    }, ms)
  }

  #take(step: LoginStep): void {
    if (!step || !this.#login) return
    if ('type' in step) this.#wire.send(Buffer.from(step.type))
    else if ('failed' in step) this.#fail(step.failed)
    else {
      const login = this.#login
      this.#login = undefined
      this.#stopTimers()
      this.#show(login.flush())
      this.onReady?.()
    }
  }

  #stopTimers(): void {
    clearTimeout(this.#silence)
    clearTimeout(this.#expiry)
  }

  #fail(failure: string): void {
    this.#failure ??= failure
    this.destroy()
  }

  #closed(): void {
    if (this.#ended) return
    this.#ended = true
    this.#stopTimers()
    this.#turn.onClosed()
    const { refusal } = this.#wire
    const refused =
      refusal === undefined ? undefined : `${this.#options.name} refused the session: ${refusal}`
    const failure = this.#failure ?? refused ?? this.#login?.brokenOff
    this.onClosed?.(failure)
  }
}
