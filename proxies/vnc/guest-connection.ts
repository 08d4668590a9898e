/**
 * A guest's connection after the sign-in: the notice of recording, the session, and the reason for the end.
 */
import type { Gate, GuestIdentity } from '../../src/contract/gate.ts'
import { NOTICE_SECONDS } from '../desktop/screens/limits.ts'
import { failureMessage, recordedNotice } from '../desktop/screens/message.ts'
import type { Size } from '../desktop/screens/screen.ts'
import { end } from '../net/disconnect.ts'
import type { ProxyConnection } from '../session/connections.ts'
import type { SessionResult } from '../session/session.ts'
import { RGB888 } from './codec/pixel-format.ts'
import { encodeServerInit } from './codec/server-init.ts'
import type { SignedInViewer } from './front.ts'
import type { Guest, GuestViewer } from './guests/guest.ts'
import type { SharedSession } from './guests/shared-session.ts'
import { LocalDisplay } from './local/display.ts'
import { OWN_SIZE } from './relay/limits.ts'
import { Viewer } from './relay/viewer.ts'

export interface GuestConnectionOptions extends Pick<SignedInViewer, 'identity' | 'stream'> {
  gate: Pick<Gate, 'leave'>
  guest: GuestIdentity
  bastion: string
  rooms: ReadonlyMap<string, SharedSession>
  /** Called when nothing is left of the connection. */
  onClosed: () => void
}

export class GuestConnection implements ProxyConnection {
  readonly #options: GuestConnectionOptions
  readonly #viewer: Viewer
  #display: LocalDisplay | undefined
  #room: SharedSession | undefined
  #guest: Guest | undefined
  #isLeaving = false

  constructor(options: GuestConnectionOptions) {
    this.#options = options
    this.#viewer = new Viewer(options.stream)
    this.#viewer.onMessage = (message) => {
      if (this.#guest) this.#guest.message(message)
      else this.#display?.message(message)
    }
    this.#viewer.onBroken = () => this.#leave()
    options.stream.onClosed = () => this.#leave()
    options.stream.onDrain = () => {
      this.#display?.drained()
      this.#guest?.drained()
    }
    this.#run().catch(() => this.#leave())
  }

  /** Called when the broker is stopping. */
  stop(_result: SessionResult, reason: string): void {
    if (this.#guest) this.#room?.change(this.#guest.invitation, { out: reason })
    else this.#leave()
  }

  async #run(): Promise<void> {
    const { guest, rooms, bastion } = this.#options
    const room = rooms.get(guest.session)
    if (!room || room.refusal !== undefined) {
      await this.#refuse(room?.refusal ?? 'the desktop is not there yet: ask for another invitation')
      return
    }
    const size = room.size
    const display = this.#begin(size, room.name)
    const of = { bastion, user: guest.name, target: room.name, seconds: NOTICE_SECONDS }
    if (room.isRecorded) await display.ask(recordedNotice(of, size))
    const state = await display.release()
    if (this.#isLeaving) return
    if (room.refusal !== undefined) {
      this.#lastWords(state, room.refusal)
      return
    }
    this.#room = room
    this.#display = undefined
    this.#guest = room.join({
      ...guest,
      stream: this.#options.stream,
      state,
      onOut: (viewer, reason) => {
        this.#guest = undefined
        // Called before `join` has returned: the guest is not kept then.
        this.#room = undefined
        this.#lastWords(viewer, reason)
      },
    })
    if (this.#room === undefined) this.#guest = undefined
  }

  #begin(size: Size, name: string): LocalDisplay {
    const { stream } = this.#options
    const display = new LocalDisplay({ stream, size, format: RGB888, mayResize: false })
    this.#display = display
    this.#viewer.begin(encodeServerInit({ ...size, format: RGB888, name }))
    return display
  }

  /** Shows why the guest cannot enter. */
  async #refuse(text: string): Promise<void> {
    const { bastion, guest } = this.#options
    const display = this.#begin(OWN_SIZE, bastion)
    await display.ask(failureMessage({ bastion, user: guest.name, heading: 'No session', text }, OWN_SIZE))
    this.#leave()
  }

  /** Shows why the guest is no longer in the session. */
  #lastWords({ size, format, encodings }: GuestViewer, text: string): void {
    if (this.#isLeaving) return
    const { bastion, guest, stream } = this.#options
    const display = new LocalDisplay({ stream, size, format, mayResize: false })
    this.#display = display
    display.message({ kind: 'set-encodings', encodings: [...encodings] })
    display.message({ kind: 'update-request', isIncremental: false, x: 0, y: 0, ...size })
    const words = {
      bastion,
      user: guest.name,
      heading: 'You are no longer in the session',
      text,
      isSudden: true,
    }
    display.show(failureMessage(words, size), () => this.#leave())
  }

  /** Ends everything on this connection. */
  #leave(): void {
    if (this.#isLeaving) return
    this.#isLeaving = true
    const { stream, gate, identity, onClosed } = this.#options
    this.#display?.close()
    if (this.#guest) this.#room?.onGuestClosed(this.#guest)
    this.#guest = undefined
    end(stream)
    // If the broker has gone, there is no recipient.
    gate.leave({ identity: identity.token }).then(onClosed, onClosed)
  }
}
