/** One guest in a session: the viewer's requests and the guest's rights. */
import type { Size } from '../../../recordings/decode/graphics/rectangle.ts'
import type { Area, ClientMessage } from '../codec/client-messages.ts'
import type { PixelFormat } from '../codec/pixel-format.ts'
import type { ViewerState } from '../local/display.ts'
import type { ToThread } from './messages.ts'

export type GuestMode = 'view' | 'control'

export type InputMessage = Extract<ClientMessage, { kind: 'key' | 'pointer' }>

/** The guest, as admitted by the gate. */
export interface Invited {
  /** The invitation's id. */
  invitation: string
  name: string
  mode: GuestMode
}

export interface GuestOptions extends Invited {
  /** Counted from 1 in the session. */
  participant: number
  stream: { write(bytes: Uint8Array): void; readonly congested: boolean }
  state: ViewerState
  post: (message: ToThread) => void
  input: (participant: number, message: InputMessage) => void
  /** Called when the guest has to leave, with the reason. */
  onOut: (viewer: GuestViewer, reason: string) => void
}

/** The state of a guest's viewer. */
export interface GuestViewer {
  size: Size
  format: PixelFormat
  encodings: readonly number[]
}

/** Keys that a guest may hold at the same time. */
const MAX_HELD = 32

export class Guest {
  readonly #options: GuestOptions
  #mode: GuestMode
  #viewer: GuestViewer
  /** Changes of format and encodings not sent to the thread yet: they wait for the next request. */
  #changes: { format?: PixelFormat; encodings?: readonly number[] } = {}
  /** The request that the thread has not answered. */
  #asked: 'nothing' | 'change' | 'everything' = 'nothing'
  /** A request made while the stream was congested, or before the last update. */
  #request: { isIncremental: boolean; area: Area } | undefined
  /** Keys pressed and not released. */
  readonly #keys = new Set<number>()
  #pointer = { x: 0, y: 0, buttons: 0 }

  constructor(options: GuestOptions) {
    this.#options = options
    this.#mode = options.mode
    const { size, format, encodings, request } = options.state
    this.#viewer = { size, format, encodings }
    this.#changes = { format, encodings }
    options.post({ kind: 'join', guest: options.participant, ...size })
    if (request) this.#ask({ ...request, isIncremental: false })
  }

  get participant(): number {
    return this.#options.participant
  }

  get invitation(): string {
    return this.#options.invitation
  }

  get name(): string {
    return this.#options.name
  }

  get mode(): GuestMode {
    return this.#mode
  }

  set mode(mode: GuestMode) {
    if (mode === 'view') this.release()
    this.#mode = mode
  }

  /** Handles a message of the viewer. */
  message(message: ClientMessage): void {
    switch (message.kind) {
      case 'set-pixel-format':
        this.#viewer.format = this.#changes.format = message.format
        return
      case 'set-encodings':
        this.#viewer.encodings = this.#changes.encodings = message.encodings
        return
      case 'update-request': {
        const { isIncremental, x, y, width, height } = message
        this.#ask({ isIncremental, area: { x, y, width, height } })
        return
      }
      case 'key':
      case 'pointer':
        if (this.#mode === 'control') this.#input(message)
        return
      default:
        // Guests have no clipboard and no extensions.
        return
    }
  }

  /** Sends an update that the thread has drawn. */
  update(bytes: Uint8Array, size: Size): void {
    this.#viewer.size = size
    this.#asked = 'nothing'
    this.#options.stream.write(bytes)
    this.drained()
  }

  /** Called when the stream accepts data again. */
  drained(): void {
    const request = this.#request
    this.#request = undefined
    if (request) this.#ask(request)
  }

  /** Releases the keys and buttons that the guest holds. */
  release(): void {
    const { input, participant } = this.#options
    for (const keysym of this.#keys) {
      input(participant, { kind: 'key', isDown: false, keysym, keycode: undefined })
    }
    this.#keys.clear()
    if (this.#pointer.buttons === 0) return
    this.#pointer = { ...this.#pointer, buttons: 0 }
    input(participant, { kind: 'pointer', ...this.#pointer })
  }

  /** Removes the guest, with a reason to show. */
  out(reason: string): void {
    this.#options.onOut(this.#viewer, reason)
  }

  /** Keeps at most two requests before the thread, however many the viewer sends. */
  #ask(request: { isIncremental: boolean; area: Area }): void {
    const { stream, post, participant: guest } = this.#options
    const isNew = this.#asked === 'nothing' || (this.#asked === 'change' && !request.isIncremental)
    if (isNew && !stream.congested) {
      const { format, encodings } = this.#changes
      this.#changes = {}
      if (format) post({ kind: 'format', guest, format })
      if (encodings) post({ kind: 'encodings', guest, encodings })
      post({ kind: 'request', guest, ...request })
      this.#asked = request.isIncremental ? 'change' : 'everything'
      return
    }
    // Joins the requests: the last area counts, and any request for everything.
    const isIncremental = request.isIncremental && this.#request?.isIncremental !== false
    this.#request = { ...request, isIncremental }
  }

  #input(message: InputMessage): void {
    if (message.kind === 'pointer') {
      const { x, y, buttons } = message
      this.#pointer = { x, y, buttons }
    } else if (!message.isDown) this.#keys.delete(message.keysym)
    else if (this.#keys.size < MAX_HELD || this.#keys.has(message.keysym)) this.#keys.add(message.keysym)
    else return
    this.#options.input(this.participant, message)
  }
}
