/** The pointer of a display, which its pictures lack: by the XFixes extension. */
import { Buffer } from 'node:buffer'
import koffi from 'koffi'
import { type Cursor, drawCursor } from '../../recordings/decode/graphics/cursor.ts'
import { Framebuffer } from '../../recordings/decode/graphics/framebuffer.ts'
import { libraryFile } from './program.ts'
import type { Picture } from './screen.ts'

/** The programs that it needs, for describeWithPeers. */
export const CURSOR_PEERS = ['libx11', 'libxfixes'] as const

export interface ShownCursor {
  /** Position of its hot spot. */
  x: number
  y: number
  /** The pixels are 0xAABBGGRR, multiplied by alpha. */
  cursor: Cursor
}

function load() {
  const x11 = koffi.load(libraryFile('libx11'))
  const xfixes = koffi.load(libraryFile('libxfixes'))
  // Pixels are longs, whose lower half is used.
  koffi.struct('XFixesCursorImage', {
    ...{ x: 'short', y: 'short', width: 'uint16_t', height: 'uint16_t', xhot: 'uint16_t', yhot: 'uint16_t' },
    ...{ serial: 'unsigned long', pixels: 'void *', atom: 'unsigned long', name: 'void *' },
  })
  return {
    open: x11.func('void *XOpenDisplay(const char *)'),
    close: x11.func('int XCloseDisplay(void *)'),
    free: x11.func('int XFree(void *)'),
    image: xfixes.func('XFixesCursorImage *XFixesGetCursorImage(void *)'),
  }
}

let loaded: ReturnType<typeof load> | undefined

export function cursorOf(display: string): ShownCursor {
  loaded ??= load()
  const connection: unknown = loaded.open(display)
  if (!connection) throw new Error(`no display ${display}`)
  const image: unknown = loaded.image(connection)
  const { x, y, width, height, xhot, yhot, pixels } = koffi.decode(image, 'XFixesCursorImage')
  const longs: bigint[] = koffi.decode(pixels, koffi.array('uint64_t', width * height, 'Array'))
  const colours = Uint32Array.from(longs, (long) => swapped(Number(BigInt(long) & 0xffff_ffffn)))
  loaded.free(image)
  loaded.close(connection)
  return { x, y, cursor: { width, height, hotX: xhot, hotY: yhot, pixels: colours } }
}

/** Converts 0xAARRGGBB to 0xAABBGGRR. */
const swapped = (argb: number): number =>
  ((argb & 0xff00ff00) | ((argb & 0xff) << 16) | ((argb >>> 16) & 0xff)) >>> 0

/** Returns the picture with the pointer, as a user at the display sees it. */
export function withCursor({ width, height, rgb }: Picture, { x, y, cursor }: ShownCursor): Picture {
  const framebuffer = new Framebuffer({ width, height })
  for (let at = 0; at < width * height; at++) {
    framebuffer.pixels[at] = swapped(0xff000000 | rgb.readUIntBE(3 * at, 3))
  }
  drawCursor(framebuffer, cursor, { x, y })
  const seen = Buffer.alloc(rgb.length)
  for (let at = 0; at < width * height; at++) {
    seen.writeUIntBE(swapped(framebuffer.pixels[at]!) & 0xffffff, 3 * at, 3)
  }
  return { width, height, rgb: seen }
}
