/** One watched session: which watchers wait for a keyframe, which have one, and the messages sent to them. */
import { Buffer } from 'node:buffer'
import { isStream } from '../../recordings/container/frames.ts'
import { fieldsOf, frameName } from '../../recordings/decode/describe.ts'
import { channelOpenOf } from '../../recordings/decode/frames/channel.ts'
import { jsonOf } from '../../recordings/decode/frames/payload.ts'
import type { PictureChange } from '../../recordings/show/screens/desktop.ts'
import type { Drawer, Drawn } from '../../recordings/show/screens/drawer.ts'
import type { ChannelState } from '../../recordings/show/screens/screen.ts'
import type { GateNotice, LiveFrame, LiveRequest } from '../contract/gate.ts'
import { jsonText } from '../model/json-text.ts'
import { DesktopFeed, isTold } from './live-desktop.ts'

/** Limit of a watcher's unsent bytes, besides its keyframe. */
export const MAX_WATCHER_BACKLOG = 4 * 1024 * 1024
/**
 * Limit, in characters, of messages that wait for a keyframe; beyond it they are dropped and a later keyframe
 * replaces them. They are sent right after the keyframe, so they must fit into the backlog of a watcher that
 * does read.
 */
export const MAX_WAITING = MAX_WATCHER_BACKLOG / 2
/** Milliseconds from frames that were left out to the next keyframe. */
export const RESYNC_MS = 500
/**
 * Limit of a watcher's unsent bytes for pictures of changes; beyond it the watcher gets the whole desktop
 * later.
 */
export const MAX_PICTURE_BACKLOG = 1024 * 1024

/** Why a watcher gets no more: the session has ended, the watcher reads too slowly, or drawing failed. */
export type WatchEnd = 'session_over' | 'too_slow' | 'failed'

/** A viewer of a session. */
export interface Watcher {
  name: string
  /** The user that watches; absent for an API key, also for one that acts for a user. */
  readonly userId?: string | undefined
  /** Sends a message: one JSON object. */
  send(message: string): void
  /** Bytes of messages not yet sent. */
  readonly backlog: number
  /** Ends the watching. */
  stop(why: WatchEnd): void
}

export type LiveDrawer = Pick<Drawer, 'state' | 'feed' | 'listen' | 'forget'>

export interface LiveSessionOptions {
  drawn: Drawn
  drawer: LiveDrawer
  notify: (notice: GateNotice) => void
  /** Called when a watcher has been removed. */
  onLeft: (watcher: Watcher) => void
}

interface Place {
  /**
   * Notice whose keyframe, or a later one, the watcher waits for. Undefined if the watcher gets frames
   * directly.
   */
  sync: number | undefined
  /** The watcher had a keyframe before, and has missed frames since. */
  isBehind: boolean
  /**
   * Length of the watcher's last keyframe. It is not counted against the watcher, since the target decides
   * how much there is to draw.
   */
  keyframe: number
}

/** A keyframe that is being drawn. */
interface Drawing {
  sync: number
  /** Later frames were dropped: watchers that get this keyframe need another one. */
  isStale: boolean
}

export class LiveSession {
  readonly #options: LiveSessionOptions
  readonly #places = new Map<Watcher, Place>()
  /** Number of notices sent. */
  #syncs = 0
  /** Messages since the first waiting watcher came, each with the number of its frame. */
  #waiting: { after: number; message: string }[] = []
  #waitingLength = 0
  #resync: NodeJS.Timeout | undefined
  /** Only one at a time, so that drawings of a busy session do not queue up. */
  #drawing: Drawing | undefined
  #next: { sync: number; frames: number } | undefined
  /** Set for a session with a desktop. */
  readonly #feed: DesktopFeed | undefined

  constructor(options: LiveSessionOptions) {
    this.#options = options
    const { drawer, drawn } = options
    if (!drawn.isGraphic) return
    this.#feed = new DesktopFeed((frames) => drawer.feed(drawn.session, frames))
    drawer.listen(drawn.session, (changes) => this.#changed(changes))
  }

  get size(): number {
    return this.#places.size
  }

  add(watcher: Watcher): void {
    this.#places.set(watcher, { sync: this.#syncs + 1, isBehind: false, keyframe: 0 })
    this.#ask()
  }

  remove(watcher: Watcher): void {
    if (!this.#places.delete(watcher)) return
    if (this.#places.size === 0) this.#forget()
    this.#options.onLeft(watcher)
  }

  take({ frames, synced, lost }: LiveRequest): void {
    const isAwaited = this.#isAwaited
    for (const frame of frames.filter(isTold)) {
      const message = frameMessage(frame)
      if (isAwaited) {
        this.#waiting.push({ after: frame.after, message })
        this.#waitingLength += message.length
      }
      for (const [watcher, { sync }] of this.#places) if (sync === undefined) this.#send(watcher, message)
    }
    // The loop above may have dropped the last watcher.
    if (this.#places.size === 0) return
    if (synced) {
      this.#next = synced
      this.#draw()
    }
    const isFed = this.#feed?.push(frames) ?? true
    if (lost || !isFed || this.#waitingLength > MAX_WAITING) this.#fallBack()
  }

  get #isAwaited(): boolean {
    for (const { sync } of this.#places.values()) if (sync !== undefined) return true
    return false
  }

  /** Reports the end of the session to the watchers with this message. */
  onClosed(message: string): void {
    for (const watcher of [...this.#places.keys()]) {
      watcher.send(message)
      this.#drop(watcher, 'session_over')
    }
  }

  /** Requests frames from now on, and a keyframe for the watchers that wait. */
  #ask(): void {
    this.#options.notify({ type: 'watch', session: this.#options.drawn.session, sync: ++this.#syncs })
  }

  /** Frames are missing: schedules a new keyframe for all watchers. */
  #fallBack(): void {
    for (const place of this.#places.values()) {
      place.isBehind ||= place.sync === undefined
      place.sync ??= this.#syncs + 1
    }
    this.#clear()
    this.#feed?.clear()
    this.#next = undefined
    if (this.#drawing) this.#drawing.isStale = true
    else this.#askLater()
  }

  #askLater(): void {
    this.#resync ??= setTimeout(() => {
      this.#resync = undefined
      if (this.#isHeldUp) this.#askLater()
      else this.#ask()
    }, RESYNC_MS)
  }

  /** Whether all watchers that wait for a keyframe of the desktop are too slow to get one. */
  get #isHeldUp(): boolean {
    if (!this.#feed) return false
    return [...this.#places].every(([watcher, { sync }]) => sync === undefined || isSlow(watcher))
  }

  /** Sends changes of the desktop. Undefined if the changes are unknown. */
  #changed(changes: readonly PictureChange[] | undefined): void {
    if (!changes) {
      this.#fallBack()
      return
    }
    const messages = changes.map(pictureMessage)
    for (const [watcher, place] of this.#places) {
      if (place.sync !== undefined) continue
      if (isSlow(watcher)) {
        Object.assign(place, { sync: this.#syncs + 1, isBehind: true })
        this.#askLater()
      } else for (const message of messages) this.#send(watcher, message)
    }
  }

  #draw(): void {
    if (this.#drawing || !this.#next) return
    const { drawer, drawn } = this.#options
    const { sync, frames } = this.#next
    const drawing: Drawing = { sync, isStale: false }
    this.#next = undefined
    this.#drawing = drawing
    this.#feed?.hold()
    drawer.state(drawn, frames).then(
      (channels) => {
        this.#drawing = undefined
        this.#drawn(drawing, channels, frames)
        this.#feed?.release()
        if (drawing.isStale && this.#places.size > 0) this.#askLater()
        this.#draw()
      },
      () => {
        this.#drawing = undefined
        this.#feed?.release()
        for (const [watcher, place] of [...this.#places])
          if (place.sync !== undefined) this.#drop(watcher, 'failed')
      },
    )
  }

  #drawn({ sync, isStale }: Drawing, channels: readonly ChannelState[], frames: number): void {
    const later = isStale ? [] : this.#waiting.filter(({ after }) => after > frames)
    for (const [watcher, place] of this.#places) {
      if (place.sync === undefined || place.sync > sync) continue
      if (this.#feed && isSlow(watcher)) {
        place.sync = this.#syncs + 1
        this.#askLater()
        continue
      }
      const message = keyframe(channels, place.isBehind)
      place.keyframe = message.length
      this.#send(watcher, message)
      for (const one of later) this.#send(watcher, one.message)
      place.sync = isStale ? this.#syncs + 1 : undefined
      place.isBehind = isStale
    }
    if (!this.#isAwaited) this.#clear()
  }

  #send(watcher: Watcher, message: string): void {
    const place = this.#places.get(watcher)
    if (!place) return
    if (watcher.backlog > MAX_WATCHER_BACKLOG + place.keyframe) this.#drop(watcher, 'too_slow')
    else watcher.send(message)
  }

  #drop(watcher: Watcher, why: WatchEnd): void {
    this.remove(watcher)
    watcher.stop(why)
  }

  #forget(): void {
    clearTimeout(this.#resync)
    this.#resync = undefined
    this.#next = undefined
    this.#clear()
    this.#options.drawer.forget(this.#options.drawn.session)
  }

  #clear(): void {
    this.#waiting = []
    this.#waitingLength = 0
  }
}

const isSlow = ({ backlog }: Watcher) => backlog > MAX_PICTURE_BACKLOG

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')

/**
 * Formats a frame as the JSON export of a recording does, except that streams are bytes: a piece may end
 * within a character.
 */
function frameMessage(frame: LiveFrame): string {
  const { time, channel, type, payload } = frame
  const fields = isStream(type) ? undefined : fieldsOf(frame)
  return jsonText({
    type: frameName(type),
    time: time / 1e6,
    channel,
    ...(fields ? { data: fields } : { base64: base64(payload) }),
  })
}

function pictureMessage({ channel, width, height, time, parts }: PictureChange): string {
  const rectangles = parts.map(({ png, ...area }) => ({ ...area, png: base64(png) }))
  return jsonText({ type: 'picture', time: time / 1e6, channel, width, height, rectangles })
}

function keyframe(channels: readonly ChannelState[], isGap: boolean): string {
  return jsonText({
    type: 'keyframe',
    gap: isGap,
    channels: channels.map(({ channel, open, screen, desktop }) => ({
      channel,
      data: jsonOf(open) ?? channelOpenOf(open),
      ...(screen && {
        columns: screen.columns,
        rows: screen.rows,
        base64: base64(screen.drawing),
      }),
      ...(desktop && { ...desktop, png: base64(desktop.png) }),
    })),
  })
}
