/**
 * Has the screens of watched sessions drawn by a thread of its own, started when somebody watches: to replay a
 * session costs more than to relay it.
 */
import { Questions } from '../../../src/threads/questions.ts'
import { programBeside, Thread } from '../../../src/threads/thread.ts'
import type { PictureChange } from './desktop.ts'
import type { FollowedFrame } from './follower.ts'
import type { FromDrawer, ToDrawer } from './messages.ts'
import type { ChannelState } from './screen.ts'

/**
 * How long a drawing may take: a recording is read at some hundred megabytes a second, and a desktop drawn at some ten.
 */
export const DRAWING_MS = 15_000
export const DESKTOP_DRAWING_MS = 120_000

/** What of a recording a drawer needs. */
export interface Drawn {
  session: string
  /** Of `session.rec`. */
  path: string
  key: Uint8Array
  /** It shows a desktop. */
  isGraphic: boolean
}

/** Gets what changes on a session's desktop; undefined: there will be nothing more until the next state. */
export type ChangesListener = (changes: PictureChange[] | undefined) => void

export class Drawer {
  readonly #listeners = new Map<string, ChangesListener>()
  readonly #questions = new Questions<ChannelState[]>()
  readonly #thread = new Thread<ToDrawer, FromDrawer>('screens', {
    program: programBeside(import.meta.url, 'worker'),
    onAnswer: (message) => this.#answered(message),
    onLost: () => this.#lost(),
  })

  /** The open channels and their screens after the first `frames` frames. Rejects when they cannot be drawn in time. */
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

  /** Frames behind those of a state: what they change on the desktop is told, ten times a second at most. */
  feed(session: string, frames: readonly FollowedFrame[]): void {
    this.#thread.send({ kind: 'frames', session, frames })
  }

  /** Until `forget`. */
  listen(session: string, listener: ChangesListener): void {
    this.#listeners.set(session, listener)
  }

  /** Frees what is kept of a session. */
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
