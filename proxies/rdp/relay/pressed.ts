/** Keys and buttons that the client holds, to be released when its input is suspended. */
import { type InputEvent, POINTER_FLAG } from '../codec/input.ts'

/** Keys that are released; no keyboard holds more. */
const MAX_PRESSED = 32
const BUTTONS = POINTER_FLAG.left | POINTER_FLAG.right | POINTER_FLAG.middle
/** PTRXFLAGS of buttons four and five. */
const EXTENDED_BUTTONS = 0x0003

export class Pressed {
  readonly #events = new Map<string, InputEvent>()

  /** Notes input that was sent to the target. */
  note(events: readonly InputEvent[]): void {
    for (const event of events) {
      const release = releaseOf(event)
      if (!release) continue
      const { key, isDown } = release
      if (!isDown) this.#events.delete(key)
      else if (this.#events.size < MAX_PRESSED) this.#events.set(key, release.event)
    }
  }

  /** Returns the input that releases everything, and forgets it. */
  release(): InputEvent[] {
    const events = [...this.#events.values()]
    this.#events.clear()
    return events
  }
}

/** Returns the event that undoes a press, or undefined for events that press nothing. */
function releaseOf(event: InputEvent): { key: string; isDown: boolean; event: InputEvent } | undefined {
  switch (event.kind) {
    case 'key':
      return {
        key: `key ${event.extended} ${event.code}`,
        isDown: event.isDown,
        event: { ...event, isDown: false },
      }
    case 'character':
      return { key: `character ${event.code}`, isDown: event.isDown, event: { ...event, isDown: false } }
    case 'pointer':
    case 'pointer-extended': {
      const button = event.flags & (event.kind === 'pointer' ? BUTTONS : EXTENDED_BUTTONS)
      if (button === 0) return undefined
      const isDown = (event.flags & POINTER_FLAG.down) !== 0
      return { key: `${event.kind} ${button}`, isDown, event: { ...event, flags: button } }
    }
    default:
      return undefined
  }
}
