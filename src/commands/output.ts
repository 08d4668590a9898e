/**
 * The output of commands, parts of which others may have chosen (names, paths, rows of a changed database):
 * unchanged into a file, without control characters on a terminal.
 */
import { harmless } from '../../recordings/decode/terminal/filter.ts'

/** Formats lines for a stream: on a terminal, control characters and direction marks are escaped. */
export function forStream(text: string, { isTTY }: { isTTY?: boolean }): string {
  return isTTY === true ? plain(text) : text
}

/** Returns text in which line ends are the only control characters. */
export function plain(text: string): string {
  return text.split('\n').map(harmless).join('\n')
}
