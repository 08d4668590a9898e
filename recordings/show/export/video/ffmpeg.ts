/** Encodes video with an installed ffmpeg: pictures go in, the file comes out, and neither is kept. */

import type { Buffer } from 'node:buffer'
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { letGiveWay } from '../../../../src/threads/priority.ts'
import { type Film, RATE } from './film.ts'

export type VideoFormat = 'mp4' | 'webm'

/** Containers that are written in one pass, so that they can be streamed. */
const ENCODERS: Record<VideoFormat, readonly string[]> = {
  mp4: [
    ...['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '24', '-pix_fmt', 'yuv420p'],
    ...['-movflags', 'frag_keyframe+empty_moov+default_base_moof', '-f', 'mp4'],
  ],
  webm: [
    ...['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-crf', '32', '-b:v', '0'],
    ...['-pix_fmt', 'yuv420p', '-f', 'webm'],
  ],
}
/** Of 19: sessions take precedence over videos. */
const NICENESS = 15
/** Limit of the kept characters of ffmpeg's errors. */
const MAX_COMPLAINT = 1000

/** Returns the path of ffmpeg, or undefined if it is not installed. `path` is a PATH. */
export function findFfmpeg(path = process.env['PATH'] ?? ''): string | undefined {
  return path
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, 'ffmpeg'))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK)
        return statSync(file).isFile()
      } catch {
        return false
      }
    })
}

/**
 * Yields the video's bytes; `title` goes into its metadata. Throws if ffmpeg fails. Stops ffmpeg when the
 * consumer stops reading.
 */
export async function* exportVideo(
  { width, height, pixels, pictures }: Film,
  format: VideoFormat,
  ffmpeg: string,
  title: string,
): AsyncGenerator<Buffer> {
  const input = [
    '-f',
    'rawvideo',
    '-pix_fmt',
    pixels,
    '-s',
    `${width}x${height}`,
    '-r',
    String(RATE),
    '-i',
    'pipe:0',
  ]
  const quiet = ['-hide_banner', '-loglevel', 'error', '-nostdin', '-threads', '1']
  const child = spawn(
    ffmpeg,
    [...quiet, ...input, '-an', '-metadata', `title=${title}`, ...ENCODERS[format], 'pipe:1'],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
      // Keep the broker's environment from ffmpeg.
      env: { PATH: process.env['PATH'] },
    },
  )
  const exit = new Promise<string | number>((resolve) => {
    child.on('error', (error) => resolve(error.message))
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'nothing'))
  })
  if (child.pid !== undefined) letGiveWay(child.pid, NICENESS)
  let complaint = ''
  child.stderr.on('data', (data: Buffer) => {
    complaint = (complaint + data).slice(-MAX_COMPLAINT)
  })
  const feeding = feed(child, pictures)
  try {
    yield* child.stdout as AsyncIterable<Buffer>
    await feeding
    const code = await exit
    if (code !== 0) throw new Error(`ffmpeg ended with ${code}: ${complaint.trim()}`)
  } finally {
    child.kill('SIGKILL')
    await feeding.catch(() => undefined)
  }
}

async function feed(child: ChildProcess, pictures: AsyncGenerator<Buffer>): Promise<void> {
  const { stdin } = child
  if (!stdin) return
  let failure: Error | undefined
  // Its end is reported by its exit code.
  stdin.on('error', (error) => {
    failure = error
  })
  for await (const picture of pictures) {
    if (failure || stdin.destroyed) break
    await new Promise<void>((resolve) => stdin.write(picture, () => resolve()))
  }
  stdin.end()
}
