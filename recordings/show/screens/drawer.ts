/**
 * Draws the screens of watched sessions in a separate thread, which starts with the first viewer: replaying a
 * session costs more than relaying it.
 */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { PictureChange } from './desktop.ts'
import type { FollowedFrame } from './follower.ts'
import type { FromDrawer, ToDrawer } from './messages.ts'
import type { ChannelState } from './screen.ts'

/**
 * Time limit of a drawing: a recording is read at about a hundred megabytes a second, and a desktop drawn at
 * about ten.
 */
export const DRAWING_MS = 15_000
export const DESKTOP_DRAWING_MS = 120_000

/** In the built package the worker is JavaScript, beside this file as it is here. */
const THREAD = new URL(`./worker${extname(import.meta.url)}`, import.meta.url)

interface Waiting {
  resolve: (channels: ChannelState[]) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
}

/** The data that a drawer needs of a recording. */
export interface Drawn {
  session: string
  /** Path of `session.rec`. */
  path: string
  key: Uint8Array
  /** Set if the session shows a desktop. */
  isGraphic: boolean
}

/** Receives the changes of a session's desktop. Undefined if no more follow until the next state. */
export type ChangesListener = (changes: PictureChange[] | undefined) => void

export class Drawer {
  readonly #listeners = new Map<string, ChangesListener>()
  #worker: Worker | undefined
  #requests = 0
  readonly #waiting = new Map<number, Waiting>()

  /**
   * Returns the open channels and their screens after the first `frames` frames. Rejects if they cannot be
   * drawn in time.
   */
  state({ session, path, key, isGraphic }: Drawn, frames: number): Promise<ChannelState[]> {
    const request = this.#requests++
    const limit = isGraphic ? DESKTOP_DRAWING_MS : DRAWING_MS
    this.#post({ kind: 'state', request, session, path, key, frames })
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => this.#take(request)?.reject(new Error(`the screen was not drawn within ${limit} ms`)),
        limit,
      )
      this.#waiting.set(request, { resolve, reject, timer })
    })
  }

  /** Sends frames that follow a state: the desktop's changes are reported at most ten times a second. */
  feed(session: string, frames: readonly FollowedFrame[]): void {
    this.#worker?.postMessage({ kind: 'frames', session, frames } satisfies ToDrawer)
  }

  /** Listens until `forget`. */
  listen(session: string, listener: ChangesListener): void {
    this.#listeners.set(session, listener)
  }

  /** Releases a session's state. */
  forget(session: string): void {
    this.#listeners.delete(session)
    this.#worker?.postMessage({ kind: 'forget', session } satisfies ToDrawer)
  }

  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  #post(message: ToDrawer): void {
    this.#worker ??= this.#start()
    this.#worker.postMessage(message)
  }

  #start(): Worker {
    const worker = new Worker(THREAD)
    worker.unref()
    worker.on('message', (message: FromDrawer) => {
      if (message.kind === 'changes' || message.kind === 'lost') {
        const changes = message.kind === 'changes' ? message.changes : undefined
        this.#listeners.get(message.session)?.(changes)
        return
      }
      const waiting = this.#take(message.request)
      if (message.kind === 'state') waiting?.resolve(message.channels)
      else waiting?.reject(new Error(message.reason))
    })
    worker.on('error', () => this.#lost(worker))
    worker.on('exit', () => this.#lost(worker))
    return worker
  }

  #take(request: number): Waiting | undefined {
    const waiting = this.#waiting.get(request)
    this.#waiting.delete(request)
    clearTimeout(waiting?.timer)
    return waiting
  }

  /** Handles the loss of the worker: the next request starts another. */
  #lost(worker: Worker): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    for (const request of [...this.#waiting.keys()])
      this.#take(request)?.reject(new Error('the thread that draws screens has ended'))
    for (const listener of [...this.#listeners.values()]) listener(undefined)
  }
}
