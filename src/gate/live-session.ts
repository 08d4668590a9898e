/** One session that somebody watches: who waits for a keyframe, who has one, and what goes to them. */
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

/** Bytes that a watcher may be behind, beside the keyframe that it got. */
export const MAX_WATCHER_BACKLOG = 4 * 1024 * 1024
/**
 * Characters of messages that wait for a keyframe; past that a later keyframe makes up for them. They are sent at
 * once behind it, so they have to leave room in the backlog of somebody who does read.
 */
export const MAX_WAITING = MAX_WATCHER_BACKLOG / 2
/** Milliseconds from frames that were left out to the next keyframe. */
export const RESYNC_MS = 500
/** Bytes that a watcher may be behind and still gets what changes on a desktop; past that it gets the whole of it later. */
export const MAX_PICTURE_BACKLOG = 1024 * 1024

/** Why a watcher gets no more: the session has ended, it does not take what it is sent, or nothing can be drawn. */
export type WatchEnd = 'session_over' | 'too_slow' | 'failed'

/** Somebody who watches. */
export interface Watcher {
  name: string
  /** Takes a message: one JSON object. */
  send(message: string): void
  /** Bytes of messages that are not with it yet. */
  readonly backlog: number
  /** There is nothing more to see. */
  stop(why: WatchEnd): void
}

export type LiveDrawer = Pick<Drawer, 'state' | 'feed' | 'listen' | 'forget'>

export interface LiveSessionOptions {
  drawn: Drawn
  drawer: LiveDrawer
  notify: (notice: GateNotice) => void
  /** A watcher is no longer there. */
  onLeft: (watcher: Watcher) => void
}

interface Place {
  /** It waits for the keyframe of this notice, or a later one; undefined: it gets frames as they come. */
  sync: number | undefined
  /** It had a keyframe before, and misses what came since. */
  isBehind: boolean
  /** Length of its last keyframe: how much there is to draw is the target's doing, not the watcher's. */
  keyframe: number
}

/** A keyframe that is being drawn. */
interface Drawing {
  sync: number
  /** Frames after it were left out: those who get it wait for the next one. */
  isStale: boolean
}

export class LiveSession {
  readonly #options: LiveSessionOptions
  readonly #places = new Map<Watcher, Place>()
  /** Notices so far. */
  #syncs = 0
  /** Messages since the first of those who wait began to, each with the number of its frame. */
  #waiting: { after: number; message: string }[] = []
  #waitingLength = 0
  #resync: NodeJS.Timeout | undefined
  /** One at a time: a session that says too much must not make drawings wait for drawings. */
  #drawing: Drawing | undefined
  #next: { sync: number; frames: number } | undefined
  /** Of a session that shows a desktop. */
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
    // The last one may just have been dropped.
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

  /** The session has ended; `message` says how. */
  onClosed(message: string): void {
    for (const watcher of [...this.#places.keys()]) {
      watcher.send(message)
      this.#drop(watcher, 'session_over')
    }
  }

  /** Asks for the frames from now on, and for a keyframe for those who wait. */
  #ask(): void {
    this.#options.notify({ type: 'watch', session: this.#options.drawn.session, sync: ++this.#syncs })
  }

  /** Frames are missing: all get a keyframe, a little later. */
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

  /** Nobody who waits for a keyframe of the desktop could take it. */
  get #isHeldUp(): boolean {
    if (!this.#feed) return false
    return [...this.#places].every(([watcher, { sync }]) => sync === undefined || isSlow(watcher))
  }

  /** What has changed on the desktop; undefined: that is not known. */
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

/** As in the JSON export of a recording, but that streams are bytes: a piece may end within a character. */
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
