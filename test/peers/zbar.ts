/** Reads QR codes by zbarimg, a reader of other authors. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from './process.ts'
import { findProgram } from './program.ts'
import type { Picture } from './screen.ts'

/** Returns the text of the QR code in a picture, or undefined if there is none. */
export async function qrText({ width, height, rgb }: Picture): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-qr-'))
  try {
    const file = join(folder, 'picture.ppm')
    writeFileSync(file, Buffer.concat([Buffer.from(`P6\n${width} ${height}\n255\n`), rgb]))
    const args = ['--quiet', '--raw', '-S*.disable', '-Sqrcode.enable', file]
    const { code, stdout } = await run(findProgram('zbarimg'), args)
    return code === 0 ? stdout.trimEnd() : undefined
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Draws the half blocks of a terminal's lines, light on a dark ground, with this many pixels a square. */
export function pictureOfBlocks(lines: readonly string[], pixels = 4): Picture {
  const width = Math.max(...lines.map((line) => line.length)) * pixels
  const height = 2 * lines.length * pixels
  const rgb = Buffer.alloc(width * height * 3)
  for (let y = 0; y < height; y++) {
    const row = Math.floor(y / pixels)
    const light = row % 2 === 0 ? '▀█' : '▄█'
    for (let x = 0; x < width; x++) {
      const block = lines[row >> 1]![Math.floor(x / pixels)] ?? ' '
      if (light.includes(block)) rgb.fill(0xff, (y * width + x) * 3, (y * width + x + 1) * 3)
    }
  }
  return { width, height, rgb }
}
