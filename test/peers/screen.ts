/** Displays without a monitor for programs with windows, and pictures of any display. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Daemon, run, startDaemon } from './process.ts'
import { findProgram } from './program.ts'

/** The programs that it needs, for describeWithPeers. */
export const SCREEN_PEERS = ['Xvfb', 'import', 'display'] as const

/** X servers print the free number that they found on a line of its own. */
export const DISPLAY_LINE = /^(\d+)$/m

const WAIT_MS = 45_000

/** Three bytes per pixel, red first, row by row. */
export interface Picture {
  width: number
  height: number
  rgb: Buffer
}

export interface Screen {
  /** For DISPLAY, such as `:7`. */
  display: string
  pid: number
  picture(): Promise<Picture>
  stop(): Promise<void>
}

/** Starts an X server of 1024 × 768 by default with 24 bits; without a window manager. */
export async function startScreen(width = 1024, height = 768): Promise<Screen> {
  const args = ['-displayfd', '1', '-screen', '0', `${width}x${height}x24`, '-ac', '-nolisten', 'tcp']
  // Without -noreset the server resets when its last client disconnects, and drops a client that connects
  // then.
  const more = ['-nocursor', '-noreset']
  const daemon = await startDaemon(findProgram('Xvfb'), [...args, ...more], DISPLAY_LINE)
  return screenOf(daemon)
}

/** Returns the display of an X server that was started with `-displayfd 1`. */
export function screenOf(daemon: Daemon): Screen {
  const display = `:${DISPLAY_LINE.exec(daemon.log())?.[1]}`
  return {
    display,
    pid: daemon.pid,
    picture: () => pictureOf(display),
    stop: () => daemon.stop(),
  }
}

/** Returns the whole display, without its cursor. */
export async function pictureOf(display: string): Promise<Picture> {
  const taken = await run(findProgram('import'), [
    '-display',
    display,
    '-window',
    'root',
    '-depth',
    '8',
    'ppm:-',
  ])
  if (taken.code !== 0) throw new Error(`import of ${display}: ${taken.stderr}`)
  return readPpm(taken.bytes)
}

/** Reads a binary PPM with eight bits for each colour, as written by ImageMagick. */
export function readPpm(bytes: Buffer): Picture {
  const header = /^P6\s+(\d+)\s+(\d+)\s+255\s/.exec(bytes.subarray(0, 64).toString('latin1'))
  if (!header) throw new Error('this is not a PPM')
  const [width, height] = [Number(header[1]), Number(header[2])]
  const rgb = bytes.subarray(header[0].length)
  if (rgb.length !== width * height * 3) throw new Error(`${width}×${height} pixels in ${rgb.length} bytes`)
  return { width, height, rgb }
}

/** Returns a part of a picture. */
export function cut(picture: Picture, x: number, y: number, width: number, height: number): Picture {
  const rgb = Buffer.alloc(width * height * 3)
  for (let row = 0; row < height; row++) {
    const begin = ((y + row) * picture.width + x) * 3
    picture.rgb.copy(rgb, row * width * 3, begin, begin + width * 3)
  }
  return { width, height, rgb }
}

/** Counts the pixels that differ; in pictures of different sizes, all do. */
export function differingPixels(one: Picture, other: Picture): number {
  if (one.width !== other.width || one.height !== other.height) {
    return Math.max(one.width * one.height, other.width * other.height)
  }
  let count = 0
  for (let at = 0; at < one.rgb.length; at += 3) {
    if (one.rgb.readUIntBE(at, 3) !== other.rgb.readUIntBE(at, 3)) count++
  }
  return count
}

/** Whether the picture contains the other one unchanged. */
export function isWithin(picture: Picture, part: Picture): boolean {
  const row = part.rgb.subarray(0, part.width * 3)
  for (let at = picture.rgb.indexOf(row); at >= 0; at = picture.rgb.indexOf(row, at + 1)) {
    const [x, y] = [(at / 3) % picture.width, Math.floor(at / 3 / picture.width)]
    if (at % 3 !== 0 || x + part.width > picture.width || y + part.height > picture.height) continue
    if (differingPixels(cut(picture, x, y, part.width, part.height), part) === 0) return true
  }
  return false
}

/** Paints the display's background. The painting stays until the next one. */
export async function paint(display: string, { width, height, rgb }: Picture): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-paint-'))
  const file = join(folder, 'picture.ppm')
  writeFileSync(file, Buffer.concat([Buffer.from(`P6 ${width} ${height} 255\n`), rgb]))
  const done = await run(findProgram('display'), ['-display', display, '-window', 'root', file])
  rmSync(folder, { recursive: true })
  // `display` exits with 1 even on success.
  if (done.stderr !== '') throw new Error(`display on ${display}: ${done.stderr}`)
}

/** Waits until the display's picture passes the check, and returns it. */
export async function shows(
  display: string,
  what: (picture: Picture) => boolean,
  timeout = WAIT_MS,
): Promise<Picture> {
  for (const end = Date.now() + timeout; ; await sleep(50)) {
    const picture = await pictureOf(display)
    if (what(picture)) return picture
    if (Date.now() > end) throw new Error(`${display} does not show it in ${timeout} ms`)
  }
}

/** Waits until the display has not changed for a while, and returns its picture. */
export async function settled(display: string, timeout = WAIT_MS): Promise<Picture> {
  let last = await pictureOf(display)
  for (const end = Date.now() + timeout; Date.now() < end; ) {
    await sleep(300)
    const now = await pictureOf(display)
    if (differingPixels(last, now) === 0) return now
    last = now
  }
  throw new Error(`${display} keeps changing for ${timeout} ms`)
}
