/** One session worker: its process, the messages to and from it, and how it is found to hang. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { cleanValue } from '../audit/events/clean.ts'
import type { CageReport } from '../confine/report.ts'
import type { FrontName, FrontSettings } from '../contract/front-settings.ts'
import type { DialAnswer, Source } from '../contract/gate.ts'
import { MessageReader } from '../contract/message-reader.ts'
import { encodeMessage, MAX_WORKER_TEXT, WireError } from '../contract/wire.ts'
import {
  type FromWorker,
  HANDLES_DESCRIPTOR,
  MESSAGES_DESCRIPTOR,
  type PassedConnection,
  type PassedTarget,
  RECORDINGS_DESCRIPTOR,
  type ToWorker,
  WORKER_VERSION,
} from '../contract/worker.ts'
import { takeHandle } from '../sockets/accept.ts'
import { takeDialled } from '../sockets/dialled.ts'
import type { PassConnection } from '../sockets/pass.ts'
import { Slices } from '../threads/slices.ts'
import { BreachError, messageOf } from './requests.ts'
import { Seat, type SeatGate } from './seat.ts'

/** Milliseconds between two pings. */
const PING_MS = 1_000
/** Pings without an answer after which a worker hangs; a busy machine delays some. */
const MAX_UNANSWERED = 10
/** Milliseconds for the start; a machine may be busy. */
const START_MS = 60_000
/** Milliseconds for the end of a worker whose connection is closed: most often it has died, and its exit says how. */
const EXIT_MS = 1_000
/** Bytes that wait for a worker to read them: it does not read any more. */
const MAX_UNREAD = 64 * 1024 * 1024
/** Milliseconds that a worker may need after the grace of a drain. */
const DRAIN_MARGIN_MS = 15_000
/** Requests in progress above which nothing more of the worker is read, until half of them are answered. */
const MAX_REQUESTS = 4_000
/**
 * Bytes of the large requests in progress above which no more recorded bytes are read, and at twice as many nothing: a
 * worker that was taken over cannot fill the broker's memory. On a slow disk signatures and sign-ins go on.
 */
const MAX_REQUEST_BYTES = 128 * 1024 * 1024
/** Bytes of one report on standard error, and reports a second. */
const MAX_REPORT = 4_096
const MAX_REPORTS = 20
const PAGE = 4096

/** How a worker is started. */
export interface WorkerCommand {
  file: string
  arguments: string[]
  env: Record<string, string>
  uid?: number
  gid?: number
}

export interface WorkerOptions {
  command: WorkerCommand
  settings: FrontSettings
  gate: SeatGate
  pass: PassConnection
  /** Resident bytes at which the worker is ended. */
  maxMemory: number
  /** Called when the worker takes connections, with the bounds that hold it, as it reports them. */
  onBegun: (report: CageReport) => void
  /** Called with the longest delay of its event loop since its last answer, in milliseconds, as it reports it. */
  onDelay?: (delayMs: number) => void
  /** Milliseconds between two pings, and for the start; defaults: see above. */
  pingMs?: number
  startMs?: number
  /** A line for the log. */
  warn: (message: string, details: object) => void
  /** Called once, when the worker is gone and all that it had is closed. */
  onEnded: (end: WorkerEnd) => void
}

export interface WorkerEnd {
  pid: number
  /** Why, as a user reads it: `its session worker …`. */
  reason: string
  /** Sessions that ended with it. */
  sessions: number
}

export class SessionWorker {
  readonly #options: WorkerOptions
  readonly #child: ChildProcess
  readonly #messages: Socket
  readonly #handles: Socket
  readonly #recordings: Socket
  readonly #seat: Seat
  readonly #connections = new Map<number, Source>()
  readonly #pings: NodeJS.Timeout
  #next = 1
  #sent = 0
  #answered = 0
  #requests = 0
  #requestBytes = 0
  /** Whether too many requests are in progress. */
  #isFull = false
  /** One read may hold hundreds of requests. */
  readonly #turns = new Slices(() => this.#balance())
  #delayMs = 0
  #residentBytes = Number.NaN
  #reports = MAX_REPORTS
  #reason: string | undefined
  #isReady = false
  #onReady: { resolve: () => void; reject: (error: Error) => void } | undefined
  #onDrained: (() => void) | undefined
  /** Reports that there is no process, or none that can be ended. */
  #onGone: (() => void) | undefined
  readonly #ended: Promise<void>

  private constructor(options: WorkerOptions) {
    this.#options = options
    const { file, env, uid, gid, arguments: words } = options.command
    const stdio = ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe'] as const
    this.#child = spawn(file, words, {
      stdio: [...stdio],
      env,
      cwd: '/',
      ...(uid !== undefined && { uid }),
      ...(gid !== undefined && { gid }),
    })
    this.#child.on('error', (error) => {
      this.#reason ??= `could not be started: ${error.message}`
      if (this.#child.pid === undefined) this.#onGone?.()
    })
    // Without a free descriptor there is no process, and not even its streams.
    if (this.#child.stdio === undefined) throw new Error('the session worker could not be started')
    this.#messages = this.#readingMessages(MESSAGES_DESCRIPTOR)
    this.#handles = this.#child.stdio[HANDLES_DESCRIPTOR] as Socket
    this.#recordings = this.#readingMessages(RECORDINGS_DESCRIPTOR)
    this.#seat = new Seat(options.gate, (notice) => this.#send({ type: 'notice', notice }))
    for (const socket of this.#sockets) {
      socket.on('error', () => undefined)
      socket.on('close', () => {
        const left = () => this.destroy('closed its connection to the broker, and was ended')
        setTimeout(left, EXIT_MS).unref()
      })
    }
    // Acknowledgements of Node's own channel: they tell nothing, and are not parsed.
    this.#handles.resume()
    this.#child.stderr?.on('data', (text: Buffer) => this.#report(text))
    this.#pings = setInterval(() => this.#look(), options.pingMs ?? PING_MS)
    this.#ended = new Promise<void>((resolve) => {
      this.#onGone = resolve
      if (this.#child.pid === undefined && this.#reason !== undefined) resolve()
      this.#child.once('exit', (code, signal) => {
        this.#reason ??= signal === null ? `ended by itself (exit code ${code})` : `was ended by ${signal}`
        resolve()
      })
    }).then(() => this.#onExit())
    this.#send({ type: 'begin', version: WORKER_VERSION, settings: options.settings })
  }

  /** Resolves when the worker takes connections. Rejects if it ends before, or takes too long. */
  static async start(options: WorkerOptions): Promise<SessionWorker> {
    const worker = new SessionWorker(options)
    const late = setTimeout(() => worker.destroy('did not begin in time'), options.startMs ?? START_MS)
    try {
      await new Promise<void>((resolve, reject) => {
        worker.#onReady = { resolve, reject }
      })
    } finally {
      clearTimeout(late)
    }
    return worker
  }

  /** 0 if it could not be started. */
  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Number of connections, signed in or not. */
  get connections(): number {
    return this.#connections.size
  }

  get sessions(): number {
    return this.#seat.sessions
  }

  /** Connections, at least as many as sessions: a worker that was taken over may say that they are closed. */
  get load(): number {
    return Math.max(this.connections, this.sessions)
  }

  /** Resident memory, as the system reports it; NaN before it was first looked at. */
  get residentBytes(): number {
    return this.#residentBytes
  }

  /** Returns the longest delay of its event loop since the last call, in milliseconds, as it reports it. */
  takeDelay(): number {
    const delay = this.#delayMs
    this.#delayMs = 0
    return delay
  }

  /** Passes a connection on. Returns false if the worker cannot have it: the caller still owns it. */
  give(front: FrontName, descriptor: number, source: Source): boolean {
    if (this.#reason !== undefined) return false
    const connection = this.#next++
    this.#connections.set(connection, source)
    this.#seat.arrived(source)
    const passed: PassedConnection = { front, connection, source }
    if (this.#options.pass(this.#handles, descriptor, passed)) return true
    this.#closed(connection)
    return false
  }

  /** Settings for new connections. */
  change(settings: FrontSettings): void {
    this.#send({ type: 'settings', settings })
  }

  /** Ends all connections after `graceMs`, with this reason, and then the worker. Resolves when it is gone. */
  async drain(graceMs: number, reason: string): Promise<void> {
    if (this.#reason !== undefined) return await this.#ended
    const drained = new Promise<void>((resolve) => {
      this.#onDrained = resolve
    })
    this.#send({ type: 'drain', graceMs, reason })
    // A worker that was taken over need not say that it is drained.
    const late = setTimeout(() => this.destroy(reason), graceMs + DRAIN_MARGIN_MS)
    await Promise.race([drained, this.#ended])
    clearTimeout(late)
    this.destroy(reason)
    await this.#ended
  }

  /** Ends the worker now: its sessions are closed for this reason. */
  destroy(reason: string): void {
    if (this.#reason !== undefined) return
    this.#reason = cleanValue(reason)
    if (this.#child.kill('SIGKILL') || !isThere(this.pid)) return
    // An honest worker ends without the broker; no other may go on with the gate.
    for (const socket of this.#sockets) socket.destroy()
    this.#options.warn('a session worker cannot be ended: the broker needs CAP_KILL', { pid: this.pid })
    this.#onGone?.()
  }

  async #onExit(): Promise<void> {
    clearInterval(this.#pings)
    for (const socket of this.#sockets) socket.destroy()
    const reason = `the session worker ${this.#reason}`
    const { sessions } = this.#seat
    const { warn } = this.#options
    // Its replacement need not wait until everything is sealed.
    if (this.#isReady) this.#options.onEnded({ pid: this.pid, reason, sessions })
    const { closed, failures } = await this.#seat.close(reason)
    for (const line of closed) warn(line, {})
    for (const error of failures) warn('what a session worker left could not be closed', { error })
    this.#onReady?.reject(new Error(reason))
  }

  get #sockets(): readonly Socket[] {
    return [this.#messages, this.#handles, this.#recordings]
  }

  #send(message: ToWorker): void {
    if (this.#reason !== undefined) return
    if (this.#messages.writableLength > MAX_UNREAD) {
      this.destroy('did not read what the broker sent')
      return
    }
    // The answers of one turn go out in one write.
    if (this.#messages.writableCorked === 0) {
      this.#messages.cork()
      process.nextTick(() => this.#messages.uncork())
    }
    for (const part of encodeMessage(message)) this.#messages.write(part)
  }

  /** Returns a socket for this descriptor, which reads right into the memory of the messages. */
  #readingMessages(descriptor: number): Socket {
    const reader = new MessageReader(MAX_WORKER_TEXT)
    const onread = {
      buffer: () => reader.room(),
      callback: (bytes: number) => {
        this.#read(reader, bytes)
        return this.#reason === undefined
      },
    }
    const handle = takeHandle(this.#child.stdio[descriptor as 3 | 4] as Socket)
    return new Socket({ handle, onread } as object)
  }

  #read(reader: MessageReader, bytes: number): void {
    if (this.#reason !== undefined) return
    try {
      for (const message of reader.take(bytes)) this.#turns.run(() => this.#handle(message, reader))
    } catch (error) {
      this.#breach(error)
    }
    this.#balance()
  }

  #handle(message: unknown, reader: MessageReader): void {
    if (this.#reason !== undefined) return
    try {
      this.#take(messageOf(message), reader)
    } catch (error) {
      this.#breach(error)
    }
  }

  /** Reads on when all that was read has been handled, and not too many requests are in progress. */
  #balance(): void {
    const isHeld = this.#turns.waiting > 0 || this.#isFull
    setReading(this.#messages, !isHeld && this.#requestBytes < 2 * MAX_REQUEST_BYTES)
    setReading(this.#recordings, !isHeld && this.#requestBytes < MAX_REQUEST_BYTES)
  }

  #breach(error: unknown): void {
    if (!(error instanceof BreachError || error instanceof WireError)) throw error
    this.destroy(`was ended, because it broke the rules of its messages: ${error.message}`)
  }

  #take(message: FromWorker, reader: MessageReader): void {
    switch (message.type) {
      case 'ready':
        if (message.version !== WORKER_VERSION) throw new BreachError('it is of another version')
        if (this.#isReady) throw new BreachError('it began twice')
        this.#isReady = true
        this.#options.onBegun(message.cage)
        this.#onReady?.resolve()
        return
      case 'pong':
        // A worker cannot answer ahead.
        if (this.#answered < message.number && message.number <= this.#sent) {
          this.#answered = message.number
          this.#options.onDelay?.(message.delayMs)
        }
        this.#delayMs = Math.max(this.#delayMs, message.delayMs)
        return
      case 'closed':
        this.#closed(message.connection)
        return
      case 'drained':
        this.#onDrained?.()
        return
      case 'ask':
        void this.#answer(message, reader)
    }
  }

  async #answer(message: FromWorker & { type: 'ask' }, reader: MessageReader): Promise<void> {
    const { id, method, request } = message
    const bytes = reader.memoryOf(message)
    this.#requests++
    this.#requestBytes += bytes
    if (this.#requests >= MAX_REQUESTS) this.#isFull = true
    try {
      const answer = await this.#seat.ask(method, request)
      if (method === 'dial') await this.#passTarget(answer as DialAnswer)
      this.#send({ type: 'answer', id, answer })
    } catch (error) {
      if (error instanceof BreachError) this.#breach(error)
      else this.#send({ type: 'failure', id, message: (error as Error).message })
    } finally {
      // The answer comes after the disk has the bytes; of other requests the gate may keep some.
      if (method === 'appendRecording') reader.release(message)
      this.#requests--
      this.#requestBytes -= bytes
      const isFree = this.#isFull && this.#requests <= MAX_REQUESTS / 2
      if (isFree) this.#isFull = false
      if (isFree || bytes > 0) this.#balance()
    }
  }

  /** Passes a connection to a target on, under its number. */
  async #passTarget(answer: DialAnswer): Promise<void> {
    if (answer.result !== 'connected') return
    const handle = await takeDialled(answer.connection)
    const message: PassedTarget = { dialled: answer.connection }
    const isPassed = this.#reason === undefined && this.#options.pass(this.#handles, handle.fd, message)
    handle.close()
    if (!isPassed) throw new Error('the connection to the target could not be passed on')
  }

  #closed(connection: number): void {
    const source = this.#connections.get(connection)
    if (!source) return
    this.#connections.delete(connection)
    this.#seat.left(source)
  }

  /** Ends a worker that hangs, or takes too much memory. */
  #look(): void {
    this.#reports = MAX_REPORTS
    const { maxMemory } = this.#options
    this.#residentBytes = residentOf(this.pid)
    if (this.#residentBytes > maxMemory) {
      this.destroy(`took more than ${Math.round(maxMemory / 1024 ** 2)} MiB of memory, and was ended`)
      return
    }
    if (this.#isFull || this.#requestBytes >= 2 * MAX_REQUEST_BYTES) this.#answered = this.#sent
    if (this.#sent - this.#answered >= MAX_UNANSWERED) {
      const silentMs = MAX_UNANSWERED * (this.#options.pingMs ?? PING_MS)
      this.destroy(`did not answer for ${silentMs / 1000} s, and was ended`)
      return
    }
    // Loading its code may take longer than an answer.
    if (this.#isReady) this.#send({ type: 'ping', number: ++this.#sent })
  }

  /** Logs what the worker wrote on standard error; a worker that was taken over cannot fill the log. */
  #report(text: Buffer): void {
    if (this.#reports-- <= 0) return
    const said = text.toString('utf8', 0, MAX_REPORT)
    this.#options.warn('a session worker reports a fault', { pid: this.pid, said })
  }
}

function setReading(socket: Socket, isReading: boolean): void {
  if (isReading) socket.resume()
  else socket.pause()
}

/** Whether the process exists; its end may not have been reported yet. */
function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Returns the resident bytes of a process, or NaN if the system does not tell. */
function residentOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE
  } catch {
    return Number.NaN
  }
}
