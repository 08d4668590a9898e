/**
 * Draws the screens of watched sessions in a separate thread, which starts with the first viewer: replaying a
 * session costs more than relaying it.
 */
import { Questions } from '../../../src/threads/questions.ts'
import { programBeside, Thread } from '../../../src/threads/thread.ts'
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
  readonly #questions = new Questions<ChannelState[]>()
  readonly #thread = new Thread<ToDrawer, FromDrawer>('screens', {
    program: programBeside(import.meta.url, 'worker'),
    onAnswer: (message) => this.#answered(message),
    onLost: () => this.#lost(),
  })

  /**
   * Returns the open channels and their screens after the first `frames` frames. Rejects if they cannot be
   * drawn in time.
   */
  async state({ session, path, key, isGraphic }: Drawn, frames: number): Promise<ChannelState[]> {
    const limit = isGraphic ? DESKTOP_DRAWING_MS : DRAWING_MS
    let timer: NodeJS.Timeout | undefined
    try {
      return await this.#questions.ask((request) => {
        this.#thread.post({ kind: 'state', request, session, path, key, frames })
        const late = new Error(`the screen was not drawn within ${limit} ms`)
        timer = setTimeout(() => this.#questions.fail(request, late), limit)
      })
    } finally {
      clearTimeout(timer)
    }
  }

  /** Sends frames that follow a state: the desktop's changes are reported at most ten times a second. */
  feed(session: string, frames: readonly FollowedFrame[]): void {
    this.#thread.send({ kind: 'frames', session, frames })
  }

  /** Listens until `forget`. */
  listen(session: string, listener: ChangesListener): void {
    this.#listeners.set(session, listener)
  }

  /** Releases a session's state. */
  forget(session: string): void {
    this.#listeners.delete(session)
    this.#thread.send({ kind: 'forget', session })
  }

  async close(): Promise<void> {
    await this.#thread.destroy()
  }

  #answered(message: FromDrawer): void {
    if (message.kind === 'state') this.#questions.answer(message.request, message.channels)
    else if (message.kind === 'failed') this.#questions.fail(message.request, new Error(message.reason))
    else this.#listeners.get(message.session)?.(message.kind === 'changes' ? message.changes : undefined)
  }

  #lost(): void {
    this.#questions.failAll(new Error('the thread that draws screens has ended'))
    for (const listener of [...this.#listeners.values()]) listener(undefined)
  }
}
