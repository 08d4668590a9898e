/**
 * What a command prints that others may have chosen (names, paths, rows of a database that somebody has changed): into a
 * file as it is, on a terminal without what drives one.
 */
import { harmless } from '../../recordings/decode/terminal/filter.ts'

/** Lines for a stream: on a terminal control characters and those that turn text around are shown as such. */
export function forStream(text: string, { isTTY }: { isTTY?: boolean }): string {
  return isTTY === true ? plain(text) : text
}

/** Text whose only control characters are ends of lines. */
export function plain(text: string): string {
  return text.split('\n').map(harmless).join('\n')
}
