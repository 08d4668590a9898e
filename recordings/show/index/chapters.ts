/** Chapters of a session, for a list to jump by. */

import { FRAME, type Frame, UNREAD_LINE } from '../../container/frames.ts'
import { channelOpenOf } from '../../decode/frames/channel.ts'
import { jsonOf } from '../../decode/frames/payload.ts'
import { harmless } from '../../decode/terminal/filter.ts'
import { type Chapter, MAX_CHAPTER_TEXT } from './directory.ts'

/** Returns the chapter that a frame begins, or undefined for most frames. Its text is safe to show. */
export function chapterOf(frame: Frame): Chapter | undefined {
  const { time, channel } = frame
  const fields = () => {
    const value = jsonOf(frame.payload)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  }
  const chapter = (type: Chapter['type'], words: readonly unknown[]): Chapter => {
    const text = words.filter((word) => word !== undefined && word !== '').join(' ')
    return { type, time, channel, text: harmless(text.slice(0, MAX_CHAPTER_TEXT)).slice(0, MAX_CHAPTER_TEXT) }
  }
  switch (frame.type) {
    case FRAME.channelOpen:
      return chapter('channel', [fields()['kind'], channelOpenOf(frame.payload).command])
    case FRAME.command: {
      const { line, confidence, denied } = fields()
      const shown = confidence === 'unread' ? UNREAD_LINE : line
      return chapter('command', [shown, denied === true ? '(denied)' : undefined])
    }
    case FRAME.file: {
      const { operation, path, target, result } = fields()
      return chapter('file', [operation, path, target, result === 'ok' ? undefined : result])
    }
    case FRAME.denied: {
      const { what, reason } = fields()
      return chapter('denied', [what, reason])
    }
    default:
      return undefined
  }
}
