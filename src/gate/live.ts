/**
 * Watched sessions. A watcher first gets a keyframe: the open channels and their screens, drawn from the
 * recording on the disk. Then it gets the frames as the proxy sends them. No session waits for a watcher: one
 * that reads too slowly is dropped, and if a session sends more than can be watched, frames are left out and
 * a new keyframe replaces them.
 */
import { canonicalName } from '../access/targets.ts'
import type { CloseRequest, GateNotice, LiveAnswer, LiveRequest } from '../contract/gate.ts'
import { jsonText } from '../model/json-text.ts'
import type { Id } from '../model/objects.ts'
import { isDesktopProtocol } from '../model/rights.ts'
import { type LiveDrawer, LiveSession, type Watcher } from './live-session.ts'
import type { RunningSession } from './running.ts'

/** Limits of watchers per session and in all. */
export const MAX_WATCHERS_PER_SESSION = 16
export const MAX_WATCHERS = 200

export type Watching =
  | { result: 'watching'; stop: () => void }
  | { result: 'not_running' | 'not_recorded' | 'too_many' | 'runs_elsewhere' }

export interface LiveOptions {
  drawer: LiveDrawer
  notify: (notice: GateNotice) => void
  /** Called for each watcher that has come, and that has left. */
  onWatched?: (session: RunningSession, watcher: Watcher) => void
  onLeft?: (session: RunningSession, watcher: Watcher) => void
}

export class LiveSessions {
  readonly #options: LiveOptions
  readonly #sessions = new Map<Id, LiveSession>()
  #count = 0

  constructor(options: LiveOptions) {
    this.#options = options
  }

  /** Returns why the session cannot be watched now, or undefined if it can. */
  refusal({ id, recording }: RunningSession): 'not_recorded' | 'too_many' | undefined {
    if (!recording) return 'not_recorded'
    const own = this.#sessions.get(id)?.size ?? 0
    return own >= MAX_WATCHERS_PER_SESSION || this.#count >= MAX_WATCHERS ? 'too_many' : undefined
  }

  watch(session: RunningSession, watcher: Watcher): Watching {
    const refusal = this.refusal(session)
    if (refusal || !session.recording) return { result: refusal ?? 'not_recorded' }
    const live = this.#sessions.get(session.id) ?? this.#begin(session, session.recording)
    this.#count++
    watcher.send(header(session))
    live.add(watcher)
    this.#tell(session, `${watcher.name} watches this session`)
    this.#options.onWatched?.(session, watcher)
    return { result: 'watching', stop: () => live.remove(watcher) }
  }

  take(request: LiveRequest): LiveAnswer {
    const live = this.#sessions.get(request.session)
    live?.take(request)
    return { watched: this.#sessions.has(request.session) }
  }

  /** Reports the end of the session to its watchers. */
  onClosed(session: Id, { result, reason }: Pick<CloseRequest, 'result' | 'reason'>): void {
    const message = { type: 'end', result, ...(reason !== undefined && { reason }) }
    this.#sessions.get(session)?.onClosed(jsonText(message))
  }

  #begin(session: RunningSession, { path, key }: NonNullable<RunningSession['recording']>): LiveSession {
    const live = new LiveSession({
      ...this.#options,
      drawn: {
        session: session.id,
        path,
        key: key.reveal(),
        isGraphic: isDesktopProtocol(session.target.protocol),
      },
      onLeft: (watcher) => {
        const { name } = watcher
        this.#count--
        if (live.size === 0) this.#sessions.delete(session.id)
        this.#tell(session, `${name} no longer watches this session`)
        this.#options.onLeft?.(session, watcher)
      },
    })
    this.#sessions.set(session.id, live)
    return live
  }

  #tell(session: RunningSession, text: string): void {
    if (session.tellsWatched) this.#options.notify({ type: 'tell', session: session.id, text })
  }
}

function header({ id, user, begin, target }: RunningSession): string {
  return jsonText({
    type: 'header',
    session: id,
    user,
    target: canonicalName(target),
    protocol: target.protocol,
    begin: new Date(begin).toISOString(),
  })
}
