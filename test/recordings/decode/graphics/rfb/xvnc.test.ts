/** The stream of TigerVNC's server, drawn: equal to its own display, pixel by pixel. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ENCODING } from '../../../../../proxies/vnc/codec/encodings.ts'
import { type PixelFormat, RGB888 } from '../../../../../proxies/vnc/codec/pixel-format.ts'
import { FRAME } from '../../../../../recordings/container/frames.ts'
import { RfbPainter } from '../../../../../recordings/decode/graphics/rfb/painter.ts'
import { describeWithPeers } from '../../../../peers/program.ts'
import { differingPixels, type Picture, paint, settled } from '../../../../peers/screen.ts'
import { Capture } from '../../../../peers/vnc/capture.ts'
import { startX11vnc, startXvnc, X11VNC_PEERS, XVNC_PEERS, type Xvnc } from '../../../../peers/vnc/servers.ts'

const [WIDTH, HEIGHT] = [300, 200]

/** Text-like, flat, smooth and noisy parts, so that servers use all kinds of an encoding. */
function scene(seed: number): Picture {
  const rgb = Buffer.alloc(WIDTH * HEIGHT * 3)
  for (let y = 0; y < HEIGHT; y++) {
    for (let x = 0; x < WIDTH; x++) {
      const at = (y * WIDTH + x) * 3
      const kind = (Math.floor(x / 75) + Math.floor(y / 50) + seed) % 4
      const hash = (Math.imul(x * 31 + y * 17 + seed, 2654435761) >>> 8) & 0xffffff
      const colour =
        kind === 0
          ? 0x2040a0 + seed * 0x101
          : kind === 1
            ? (hash & 7) === 0
              ? 0xffffff
              : 0x101010
            : kind === 2
              ? ((x * 255) / WIDTH) * 0x10000 + y * 0x100 + ((x + y) & 0xff)
              : hash
      rgb.writeUIntBE(Math.floor(colour) & 0xffffff, at, 3)
    }
  }
  return { width: WIDTH, height: HEIGHT, rgb }
}

function draw(capture: Capture): RfbPainter {
  const painter = new RfbPainter(capture)
  for (const frame of capture.frames) painter.apply(frame)
  expect(painter.stopped).toBeUndefined()
  return painter
}

function pictureOf({ framebuffer: { width, height, bytes } }: RfbPainter): Picture {
  const rgb = Buffer.alloc(width * height * 3)
  for (let at = 0; at < width * height; at++) rgb.set(bytes.subarray(at * 4, at * 4 + 3), at * 3)
  return { width, height, rgb }
}

/**
 * Draws up to a place that allows a snapshot, then continues from the snapshot; `tries`: number of places to
 * try.
 */
function drawnBySnapshots(capture: Capture, tries: number): RfbPainter[] {
  const graphics = capture.frames.filter(({ type }) => type === FRAME.graphics)
  const bytes = Buffer.concat(graphics.map(({ payload }) => payload))
  const first = new RfbPainter(capture)
  first.apply(capture.frames[0]!)
  const restored: RfbPainter[] = []
  for (let at = 0; at < bytes.length; ) {
    at += first.paint(bytes.subarray(at, at + 1000))
    const state = at > (bytes.length * (restored.length + 1)) / (tries + 1) ? first.snapshot() : undefined
    if (!state) continue
    const painter = RfbPainter.restore(JSON.parse(JSON.stringify(state)), first.framebuffer.clone())
    painter.apply({ type: FRAME.graphics, payload: bytes.subarray(at) })
    restored.push(painter)
  }
  return restored
}

const BIG: PixelFormat = { ...RGB888, isBigEndian: true, redShift: 24, greenShift: 16, blueShift: 8 }
const RGB565: PixelFormat = {
  ...RGB888,
  bitsPerPixel: 16,
  depth: 16,
  redMax: 31,
  greenMax: 63,
  blueMax: 31,
  redShift: 11,
  greenShift: 5,
}
const lossless = [
  ['raw', ENCODING.RAW, RGB888],
  ['RRE', ENCODING.RRE, RGB888],
  ['Hextile', ENCODING.HEXTILE, RGB888],
  ['ZRLE', ENCODING.ZRLE, RGB888],
  ['ZRLE, big-endian', ENCODING.ZRLE, BIG],
  ['Tight without JPEG', ENCODING.TIGHT, RGB888],
  ['Tight without JPEG, big-endian', ENCODING.TIGHT, BIG],
] as const

describeWithPeers('what Xtigervnc and x11vnc send', [...XVNC_PEERS, ...X11VNC_PEERS, 'display'], () => {
  let server: Xvnc
  beforeAll(async () => {
    server = await startXvnc({ types: ['None'], password: 'unused12', width: WIDTH, height: HEIGHT })
  })
  afterAll(() => server.stop())

  async function captured(encodings: readonly number[], format?: PixelFormat, port = server.port) {
    await paint(server.display, scene(0))
    const capture = await Capture.open({ port, encodings, ...(format && { format }) })
    try {
      await capture.updated()
      for (let seed = 1; seed < 4; seed++) {
        const next = capture.updated()
        await paint(server.display, scene(seed))
        await next
      }
      const shown = await settled(server.display)
      return { capture, painter: draw(capture), shown }
    } finally {
      await capture.close()
    }
  }

  test.each(lossless)('%s', async (_name, encoding, format) => {
    const { capture, painter, shown } = await captured([encoding, ENCODING.COPY_RECT], format)
    expect(differingPixels(pictureOf(painter), shown)).toBe(0)
    const restored = drawnBySnapshots(capture, 3)
    expect(restored.length).toBeGreaterThanOrEqual(2)
    for (const one of restored) {
      expect(one.stopped).toBeUndefined()
      expect(differingPixels(pictureOf(one), shown)).toBe(0)
    }
  })

  test('colours of 16 bits as the viewer of TigerVNC shows them', async () => {
    const { painter, shown } = await captured([ENCODING.ZRLE], RGB565)
    for (let at = 0; at < shown.rgb.length; at += 3) {
      for (const [part, bits] of [5, 6, 5].entries()) {
        const max = 2 ** bits - 1
        shown.rgb[at + part] = Math.floor((Math.floor((shown.rgb[at + part]! * max + 128) / 255) * 255) / max)
      }
    }
    expect(differingPixels(pictureOf(painter), shown)).toBe(0)
  })

  test.each([
    ['Zlib', [ENCODING.ZLIB], RGB888],
    ['Tight', [ENCODING.TIGHT, -247], RGB888],
  ] as const)('x11vnc: %s', async (_name, encodings, format) => {
    const x11vnc = await startX11vnc(server.display, { args: ['-wait', '10', '-defer', '10'] })
    try {
      const { painter, shown } = await captured(encodings, format, x11vnc.port)
      expect(differingPixels(pictureOf(painter), shown)).toBe(0)
    } finally {
      await x11vnc.stop()
    }
  })

  test('a JPEG is decoded as libjpeg-turbo does', async () => {
    const { painter, shown } = await captured([ENCODING.TIGHT, -23])
    const picture = pictureOf(painter)
    let sum = 0
    for (const [at, value] of picture.rgb.entries()) sum += Math.abs(value - shown.rgb[at]!)
    expect(differingPixels(picture, shown)).toBeGreaterThan(100)
    expect(sum / picture.rgb.length).toBeLessThan(4)
  })
})
