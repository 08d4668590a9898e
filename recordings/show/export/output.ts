/**
 * What a session has shown, for whoever plays it in a terminal: filtered (terminal-filter.ts) unless it is wanted as it
 * was, each channel for itself. Where several channels are shown, a line says which one goes on.
 */
import { FRAME, type Frame } from '../../container/frames.ts'
import { channelOpenOf } from '../../decode/frames/channel.ts'
import { StreamDecoders } from '../../decode/frames/payload.ts'
import { harmless, TERMINAL_RESET, TerminalFilter } from '../../decode/terminal/filter.ts'

/** Characters of a command that are shown of a channel. */
const MAX_COMMAND = 200

export class ChannelOutput {
  readonly #decoders = new StreamDecoders()
  readonly #filters = new Map<string, TerminalFilter>()
  readonly #names = new Map<number, string>()
  readonly #isRaw: boolean
  readonly #isNamed: boolean
  #last: number | undefined

  /** `isNamed`: frames of several channels come. */
  constructor({ isRaw, isNamed }: { isRaw: boolean; isNamed: boolean }) {
    this.#isRaw = isRaw
    this.#isNamed = isNamed
  }

  /** A channel opens or closes; nothing else is looked at. */
  see({ type, channel, payload }: Frame): void {
    if (type === FRAME.channelOpen && this.#isNamed) {
      const { kind, command } = channelOpenOf(payload)
      const words = [kind, ...(command === undefined ? [] : [command.slice(0, MAX_COMMAND)])]
      this.#names.set(channel, harmless(`channel ${channel}: ${words.join(' ')}`))
    }
    if (type !== FRAME.channelClose) return
    this.#decoders.close(channel)
    this.#names.delete(channel)
    for (const stream of ['input', 'output']) this.#filters.delete(`${channel}/${stream}`)
  }

  /** What of a piece of output may be shown. */
  shown({ type, channel, payload }: Frame): string {
    const text = this.#filtered(channel, 'output', this.#decoders.decode(channel, type, payload))
    if (!this.#isNamed || channel === this.#last) return text
    this.#last = channel
    return `${TERMINAL_RESET}\r\n[${this.#names.get(channel) ?? `channel ${channel}`}]\r\n${text}`
  }

  /** What of a piece of input may be shown. */
  typed({ type, channel, payload }: Frame): string {
    return this.#filtered(channel, 'input', this.#decoders.decode(channel, type, payload))
  }

  /** U+FFFD for what was cut in the middle of a character. */
  finish(): string {
    return this.#decoders.finish()
  }

  #filtered(channel: number, stream: 'input' | 'output', text: string): string {
    if (this.#isRaw) return text
    const name = `${channel}/${stream}`
    let filter = this.#filters.get(name)
    if (!filter) {
      filter = new TerminalFilter()
      this.#filters.set(name, filter)
    }
    return filter.push(text)
  }
}
