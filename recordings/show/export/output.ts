/**
 * A session's output for replay in a terminal: filtered (TerminalFilter) unless raw output is requested, each
 * channel separately. If several channels are shown, a line announces each change of channel.
 */
import { FRAME, type Frame } from '../../container/frames.ts'
import { channelOpenOf } from '../../decode/frames/channel.ts'
import { StreamDecoders } from '../../decode/frames/payload.ts'
import { harmless, TERMINAL_RESET, TerminalFilter } from '../../decode/terminal/filter.ts'

/** Limit of the characters of a channel's command that are shown. */
const MAX_COMMAND = 200

export class ChannelOutput {
  readonly #decoders = new StreamDecoders()
  readonly #filters = new Map<string, TerminalFilter>()
  readonly #names = new Map<number, string>()
  readonly #isRaw: boolean
  readonly #isNamed: boolean
  #last: number | undefined

  /** `isNamed`: frames of several channels are shown. */
  constructor({ isRaw, isNamed }: { isRaw: boolean; isNamed: boolean }) {
    this.#isRaw = isRaw
    this.#isNamed = isNamed
  }

  /** Reads openings and closings of channels and ignores other frames. */
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

  /** Returns the part of a piece of output that may be shown. */
  shown({ type, channel, payload }: Frame): string {
    const text = this.#filtered(channel, 'output', this.#decoders.decode(channel, type, payload))
    if (!this.#isNamed || channel === this.#last) return text
    this.#last = channel
    return `${TERMINAL_RESET}\r\n[${this.#names.get(channel) ?? `channel ${channel}`}]\r\n${text}`
  }

  /** Returns the part of a piece of input that may be shown. */
  typed({ type, channel, payload }: Frame): string {
    return this.#filtered(channel, 'input', this.#decoders.decode(channel, type, payload))
  }

  /** Returns U+FFFD for each stream that was cut within a character. */
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
