/** Keys and buttons that the viewer holds, to be released when its input is suspended. */
import type { ClientMessage } from '../codec/client-messages.ts'

type Input = Extract<ClientMessage, { kind: 'key' | 'pointer' }>

/** Keys that are released; no keyboard holds more. */
const MAX_PRESSED = 32

export class Pressed {
  readonly #keys = new Map<number, number | undefined>()
  #pointer: { x: number; y: number } | undefined

  /** Notes input that was sent to the target. */
  note(message: Input): void {
    if (message.kind === 'pointer') {
      const { x, y, buttons } = message
      this.#pointer = buttons === 0 ? undefined : { x, y }
    } else if (!message.isDown) this.#keys.delete(message.keysym)
    else if (this.#keys.size < MAX_PRESSED) this.#keys.set(message.keysym, message.keycode)
  }

  /** Returns the input that releases everything. */
  release(): Input[] {
    const inputs: Input[] = [...this.#keys].map(([keysym, keycode]) => ({
      kind: 'key',
      isDown: false,
      keysym,
      keycode,
    }))
    if (this.#pointer) inputs.push({ kind: 'pointer', ...this.#pointer, buttons: 0 })
    this.#keys.clear()
    this.#pointer = undefined
    return inputs
  }
}
