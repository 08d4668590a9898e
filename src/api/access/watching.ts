/** One WebSocket that watches a session: its outgoing and incoming messages, and whether it may continue. */
import type { WebSocket } from 'ws'
import type { WatchEnd, Watcher } from '../../gate/live-session.ts'
import { ApiError, type ErrorCode, errorBody } from '../http/errors.ts'
import { MAX_SOCKET_MESSAGES, WATCH_REVIEW_MS } from '../http/limits.ts'
import { closeSocket } from '../http/websockets.ts'
import type { Caller } from './caller.ts'

/** Close codes (RFC 6455 7.4), as docs/api.md lists them. */
export const CLOSE_CODES = {
  session_over: 1000,
  malformed: 1008,
  signed_out: 4401,
  forbidden: 4403,
  too_slow: 4408,
  refused: 4409,
  failed: 4500,
} as const
export type CloseCode = keyof typeof CLOSE_CODES

/** Characters of a reason to kill, as in `POST /sessions/{ref}/kill`. */
const MAX_REASON = 256

export interface WatchingOptions {
  /** The user that watches; undefined for an API key, also for one that acts for a user. */
  userId: string | undefined
  socket: WebSocket
  /** Returns the caller as authenticated anew. @throws ApiError if the sign-in is no longer valid */
  caller: () => Promise<Caller>
  mayWatch: (caller: Caller) => boolean
  mayKill: (caller: Caller) => boolean
  /** Returns false if the session no longer runs. */
  kill: (reason: string, by: Caller) => Promise<boolean>
  /** Called when the broker begins to close the WebSocket: the watcher sees no more. */
  onLeaving: () => void
  /** Called when the WebSocket has closed; `reason` is set if the broker closed it. */
  onClosed: (reason: string | undefined) => void
}

export class WatchingSocket implements Watcher {
  readonly name: string
  readonly userId: string | undefined
  readonly #options: WatchingOptions
  readonly #reviews: NodeJS.Timeout
  #reason: string | undefined
  #messages = 0
  /** Handles incoming messages one after the other. */
  #turn: Promise<void> = Promise.resolve()

  constructor(name: string, options: WatchingOptions) {
    this.name = name
    this.userId = options.userId
    this.#options = options
    this.#reviews = setInterval(() => void this.review(), WATCH_REVIEW_MS)
    const { socket } = options
    socket.on('message', (data, isBinary) => this.#received(String(data), isBinary))
    socket.once('close', () => {
      clearInterval(this.#reviews)
      options.onClosed(this.#reason)
    })
  }

  get backlog(): number {
    return this.#options.socket.bufferedAmount
  }

  send(message: string): void {
    this.#options.socket.send(message)
  }

  stop(why: WatchEnd): void {
    this.close(why, ENDS[why])
  }

  close(code: CloseCode, reason: string): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    clearInterval(this.#reviews)
    this.#options.onLeaving()
    closeSocket(this.#options.socket, CLOSE_CODES[code], reason)
  }

  /** Ends the watching if the right or the sign-in is gone. */
  async review(): Promise<void> {
    const caller = await this.#caller()
    if (caller && !this.#options.mayWatch(caller)) this.close('forbidden', 'the right to watch was withdrawn')
  }

  async #caller(): Promise<Caller | undefined> {
    try {
      return await this.#options.caller()
    } catch (error) {
      if (error instanceof ApiError) this.close('signed_out', 'no longer signed in')
      else this.close('failed', 'the right to watch could not be asked')
      return undefined
    }
  }

  #received(text: string, isBinary: boolean): void {
    const reason = isBinary ? undefined : killReasonOf(text)
    this.#messages++
    if (reason === undefined || this.#messages > MAX_SOCKET_MESSAGES) {
      this.close('malformed', 'expected {"type":"kill","reason":"…"}')
      return
    }
    this.#turn = this.#turn.then(() => this.#kill(reason)).catch(() => this.#refuse('audit_unavailable'))
  }

  async #kill(reason: string): Promise<void> {
    const { mayKill, kill } = this.#options
    const caller = await this.#caller()
    if (!caller) return
    if (!mayKill(caller)) this.#refuse('forbidden')
    else if (!(await kill(reason, caller))) this.#refuse('not_running')
  }

  #refuse(code: ErrorCode): void {
    this.send(JSON.stringify({ type: 'error', ...errorBody(code) }))
  }
}

const ENDS: Readonly<Record<WatchEnd, string>> = {
  session_over: 'the session has ended',
  too_slow: 'too much is waiting to be read',
  failed: 'the screen could not be drawn',
}

/** Returns the reason of `{"type":"kill","reason":"…"}`, or undefined for any other message. */
function killReasonOf(text: string): string | undefined {
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof message !== 'object' || message === null) return undefined
  const { type, reason, ...rest } = message as Record<string, unknown>
  const isKill = type === 'kill' && Object.keys(rest).length === 0
  return isKill && typeof reason === 'string' && reason.length > 0 && reason.length <= MAX_REASON
    ? reason
    : undefined
}
