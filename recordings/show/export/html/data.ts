/**
 * The session's data for the page's player: lines of JSON, `[type, microseconds, channel, …]`. `o` is text of
 * output, `r` columns and rows, `k` a keyframe (columns, rows, snapshot), `t` a line of the transcript.
 */
import { FRAME, type Frame } from '../../../container/frames.ts'
import { describeFrame } from '../../../decode/describe.ts'
import { StreamDecoders, sizeOf } from '../../../decode/frames/payload.ts'
import { FOR_EMULATOR, TerminalFilter } from '../../../decode/terminal/filter.ts'
import { harmlessLines, Transcript } from '../../../decode/text/text.ts'
import type { Replay } from '../../replay/replay.ts'

/** Characters of a block. */
const BLOCK = 256 * 1024

/** Yields blocks of whole lines. */
export async function* pageData(replay: Replay): AsyncGenerator<string> {
  const keyframes = [...replay.directory.keyframes]
  const channels = new Channels()
  let block = ''
  for await (const { place, frames } of replay.groups()) {
    for (let frame = keyframes[0]; frame && frame.place.group <= place.group; frame = keyframes[0]) {
      keyframes.shift()
      const snapshot = await replay.snapshot(frame)
      const { time, channel, columns, rows } = frame
      if (snapshot !== undefined) block += line(['k', time, channel, columns, rows, snapshot])
    }
    for (const frame of frames) block += channels.linesOf(frame)
    if (block.length < BLOCK) continue
    yield block
    block = ''
  }
  yield block + channels.finish()
}

class Channels {
  readonly #decoders = new StreamDecoders()
  readonly #open = new Map<number, { filter: TerminalFilter; page: Transcript; last: number }>()

  linesOf(frame: Frame): string {
    const { type, channel, time } = frame
    if (type === FRAME.channelOpen) {
      this.#open.set(channel, {
        filter: new TerminalFilter(FOR_EMULATOR),
        page: new Transcript(),
        last: time,
      })
    }
    const open = this.#open.get(channel)
    if (!open) return ''
    open.last = time
    if (type === FRAME.output || type === FRAME.errorOutput) {
      const text = this.#decoders.decode(channel, type, frame.payload)
      open.page.push(text)
      const passed = open.filter.push(text)
      return (passed === '' ? '' : line(['o', time, channel, passed])) + transcript(open.page, time, channel)
    }
    if (type === FRAME.resize) {
      const size = sizeOf(frame.payload)
      return size ? line(['r', time, channel, size.columns, size.rows]) : ''
    }
    if (type === FRAME.input || type === FRAME.inputWithheld) return ''
    open.page.breakLine()
    open.page.line(describeFrame(frame))
    const said = transcript(open.page, time, channel)
    if (type !== FRAME.channelClose) return said
    this.#decoders.close(channel)
    this.#open.delete(channel)
    return said
  }

  finish(): string {
    let text = ''
    for (const [channel, { page, last }] of this.#open) {
      page.breakLine()
      text += transcript(page, last, channel)
    }
    return text
  }
}

function transcript(page: Transcript, time: number, channel: number): string {
  const text = page.take()
  return text === '' ? '' : line(['t', time, channel, harmlessLines(text.slice(0, -1))])
}

function line(values: readonly unknown[]): string {
  return `${JSON.stringify(values)}\n`
}
