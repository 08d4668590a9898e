/** Runs the player on the terminal of this process. */
import type { ReadStream, WriteStream } from 'node:tty'
import { Player, type PlayerOptions } from './player.ts'

export interface Terminal {
  stdin: ReadStream
  stdout: WriteStream
}

/** Plays until the viewer quits, `signal` stops it, or the terminal is closed. */
export async function playOn(
  { stdin, stdout }: Terminal,
  options: Omit<PlayerOptions, 'viewer'>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const player = new Player({
    ...options,
    viewer: {
      size: () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 }),
      // A closed terminal accepts nothing, and stops the replay by its events.
      write: (text) => new Promise((resolve) => stdout.write(text, () => resolve())),
      now: () => performance.now(),
    },
  })
  const input = (text: string) => player.input(text)
  const resized = () => player.resized()
  const stop = () => player.stop()
  stdin.setEncoding('utf8')
  stdin.setRawMode(true)
  stdin.on('data', input).on('end', stop).on('error', stop)
  stdout.on('resize', resized).on('error', stop)
  signal?.addEventListener('abort', stop)
  try {
    await player.run()
  } finally {
    signal?.removeEventListener('abort', stop)
    // Pending writes may fail later: keep the error listeners.
    stdout.off('resize', resized)
    stdin.off('data', input).off('end', stop)
    if (!stdin.destroyed) stdin.setRawMode(false)
    stdin.pause()
  }
}
