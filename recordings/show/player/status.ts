/** The player's last line. */
import { harmless } from '../../decode/terminal/filter.ts'

export interface Status {
  isPlaying: boolean
  time: string
  speed: number
  /** Empty if there is no channel to name. */
  channel: string
  cropped: string
  message: string
}

export const HELP =
  'space pause  + - speed  arrows seek, command  g time  / n N search  tab channel  i idle  q quit'

/** Returns a line that is exactly `columns` wide. */
export function statusLine(columns: number, status: Status): string {
  const speed = status.speed === 1 ? '' : `${status.speed >= 1 ? status.speed : `1/${1 / status.speed}`}x`
  const words = [
    status.isPlaying ? 'playing' : 'paused ',
    status.time,
    speed,
    status.channel,
    status.message || status.cropped || '? help',
  ]
  const text = harmless(words.filter((word) => word !== '').join('  '))
  return `\x1b[7m${[...` ${text}`].slice(0, columns).join('').padEnd(columns)}\x1b[m`
}
