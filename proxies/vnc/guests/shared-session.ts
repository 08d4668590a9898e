/** A session that guests may join: its guests, their rights, and the thread that draws for them. */
import type { Participant } from '../../../recordings/container/frames.ts'
import type { Size } from '../../../recordings/decode/graphics/rectangle.ts'
import { programBeside, Thread } from '../../../src/threads/thread.ts'
import type { GuestChange } from '../../session/session.ts'
import { Guest, type GuestOptions, type InputMessage, type Invited } from './guest.ts'
import type { FromThread, ToThread } from './messages.ts'
import type { GraphicsTap } from './tap.ts'

/** Guests of a session at the same time. */
export const MAX_GUESTS = 8

/** Invitations with an early change, whose guest has not joined. */
const MAX_EARLY = 64

/** The relay of the session. */
export interface SharedDesktop {
  readonly size: Size
  readonly isRecorded: boolean
  /** The name of the desktop, without its guests. */
  readonly name: string
  /** Sends the target's graphics to the thread as well, until `unshare`. */
  share(post: (message: ToThread) => void): GraphicsTap
  unshare(): void
  input(participant: number, message: InputMessage): void
  /** Shows the session's user the name, with the guests. */
  rename(name: string): void
  record(entry: Participant): void
}

export class SharedSession {
  readonly #desktop: SharedDesktop
  readonly #guests = new Map<number, Guest>()
  #count = 0
  #thread: Thread<ToThread, FromThread> | undefined
  #tap: GraphicsTap | undefined
  /** Changes for guests that have not joined yet: the latest of each. */
  readonly #early = new Map<string, GuestChange>()
  /** Set when the session has ended. */
  #isClosed = false

  constructor(desktop: SharedDesktop) {
    this.#desktop = desktop
  }

  get size(): Size {
    return this.#desktop.size
  }

  get isRecorded(): boolean {
    return this.#desktop.isRecorded
  }

  get name(): string {
    return this.#desktop.name
  }

  /** Returns why no guest can join now, or undefined if one can. */
  get refusal(): string | undefined {
    if (this.#isClosed) return 'the session has ended'
    return this.#guests.size < MAX_GUESTS
      ? undefined
      : `there are ${MAX_GUESTS} guests in the session already`
  }

  /**
   * Adds a guest; the caller has checked `refusal`. Calls `onOut` at once if the guest was removed already.
   */
  join(options: Invited & Pick<GuestOptions, 'stream' | 'state' | 'onOut'>): Guest {
    const participant = ++this.#count
    this.#open()
    const guest = new Guest({
      ...options,
      participant,
      post: (message) => this.#thread?.send(message),
      input: (who, message) => this.#desktop.input(who, message),
    })
    this.#guests.set(participant, guest)
    const { name, mode } = guest
    this.#desktop.record({ participant, name, what: 'joined', mode })
    this.#rename()
    const change = this.#early.get(guest.invitation)
    this.#early.delete(guest.invitation)
    if (change) this.change(guest.invitation, change)
    return guest
  }

  /** Removes a guest whose viewer has closed. */
  onGuestClosed(guest: Guest): void {
    this.#left(guest, 'left')
  }

  /** Applies the broker's change for the guest of an invitation. */
  change(invitation: string, change: GuestChange): void {
    const guests = [...this.#guests.values()].filter((one) => one.invitation === invitation)
    if (guests.length === 0) this.#keep(invitation, change)
    for (const guest of guests) {
      if ('out' in change) {
        this.#left(guest, 'thrown_out', change.by)
        guest.out(change.out)
      } else if (change.mode !== guest.mode) {
        guest.mode = change.mode
        const { participant, name } = guest
        const what = change.mode === 'control' ? 'took_control' : 'gave_control'
        this.#desktop.record({ participant, name, what, mode: change.mode, by: change.by })
        this.#rename()
      }
    }
  }

  #keep(invitation: string, change: GuestChange): void {
    this.#early.set(invitation, change)
    const [oldest] = this.#early.keys()
    if (this.#early.size > MAX_EARLY && oldest !== undefined) this.#early.delete(oldest)
  }

  /** Forwards a recorded pointer movement. */
  pointer(payload: Uint8Array): void {
    this.#tap?.pointer(payload)
  }

  /** Releases the keys and buttons that guests hold. */
  release(): void {
    for (const guest of this.#guests.values()) guest.release()
  }

  /** Ends the guests' part at the end of the session. */
  close(reason: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const guest of [...this.#guests.values()]) {
      this.#left(guest, 'left')
      guest.out(reason)
    }
  }

  #left(guest: Guest, what: 'left' | 'thrown_out', by?: string): void {
    const { participant, name } = guest
    if (!this.#guests.delete(participant)) return
    guest.release()
    this.#thread?.send({ kind: 'leave', guest: participant })
    this.#desktop.record({ participant, name, what, ...(by !== undefined && { by }) })
    if (this.#guests.size === 0) this.#shut()
    if (!this.#isClosed) this.#rename()
  }

  #open(): void {
    if (this.#thread) return
    const thread = new Thread<ToThread, FromThread>('guests', {
      program: programBeside(import.meta.url, 'worker'),
      onAnswer: (message) => this.#drawn(message),
      onLost: (error) => {
        if (this.#thread === thread) this.#empty(error.message)
      },
    })
    thread.start()
    this.#thread = thread
    this.#tap = this.#desktop.share((message) => thread.send(message))
  }

  #shut(): void {
    const thread = this.#thread
    this.#thread = undefined
    this.#tap = undefined
    this.#desktop.unshare()
    void thread?.destroy()
  }

  #drawn(message: FromThread): void {
    switch (message.kind) {
      case 'update': {
        const { width, height } = message
        this.#guests.get(message.guest)?.update(message.bytes, { width, height })
        return
      }
      case 'drawn':
        this.#tap?.drawn(message.bytes)
        return
      case 'stopped':
        this.#empty(`the desktop cannot be drawn for guests: ${message.reason}`)
    }
  }

  /** Removes all guests, because nothing more can be drawn for them; the session continues. */
  #empty(reason: string): void {
    for (const guest of [...this.#guests.values()]) {
      this.#left(guest, 'left')
      guest.out(reason)
    }
  }

  #rename(): void {
    const guests = [...this.#guests.values()].map(({ name, mode }) =>
      mode === 'control' ? `${name} (control)` : name,
    )
    const name = guests.length === 0 ? this.name : `${this.name}, with ${guests.join(', ')}`
    this.#desktop.rename(name)
    this.#thread?.send({ kind: 'name', name })
  }
}
